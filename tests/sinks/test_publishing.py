"""What a commit leaves for the log is in the log once, also when several threads publish.

Method: commits of a small view with a sink, without Spark; a log that lets another thread in at the
worst moment.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.ledger.entries import MAIN, Commit, Emission, Progress, Telling
from headrace.log import EmbeddedLog, Partition
from headrace.plan.tables import Rows, Table, TableColumn
from headrace.schema.types import parse_type
from headrace.sinks.publishing import Publisher
from headrace.store.duckdb import DuckDBStore
from headrace.testing.log_suite import rows
from headrace.testing.store_samples import (
    PLACE,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import NEVER

STRING, BIGINT = parse_type("STRING"), parse_type("BIGINT")
NOTES = Table(
    "notes",
    "v1",
    (
        TableColumn("k", STRING),
        TableColumn("_events", BIGINT, "{old} + {new}"),
        TableColumn("note", STRING, "{new}"),
    ),
    ("k", "note", "_events", "false AS _closed"),
    rows=Rows(("k",), "SELECT k FROM {delta}", (("k", "k", STRING),), (("note", STRING),)),
)
SINK = Telling("out", "notes", "v1", "rows", "upsert")
TOLD = Emission("out", "rows", "upsert", NOTES, NEVER, NEVER)


class Watched(EmbeddedLog):
    """A log that calls `before_append` before each append."""

    before_append: Callable[[], None] = staticmethod(lambda: None)

    def append(self, *arguments: Any, **options: Any) -> Any:
        self.before_append()
        return super().append(*arguments, **options)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Watched]:
    log = Watched(tmp_path / "log", sync=False)
    log.create_topic("rows", partitions=1)
    yield log
    log.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDBStore]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


def begin(store: DuckDBStore) -> int:
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(NOTES)], {MAIN: {PLACE: Progress()}})
    store.prepare(NOTES)
    store.show(epoch, MAIN, [NOTES])
    store.tell(epoch, [(SINK, TOLD)])
    return epoch


def noted(epoch: int, turn: int, **notes: str) -> Commit:
    """Return a turn that writes notes by their keys, and tells the sink of them."""
    written = delta(NOTES, *((key, 1, note) for key, note in notes.items()))
    return turn_of(planned(epoch, turn), {NOTES: (written,)}, emissions=(TOLD,))


def notes_told(log: EmbeddedLog) -> list[str]:
    return [json.loads(row["value"])["note"] for row in rows(log, Partition("rows", 0))]


def test_threads_that_publish_at_the_same_time_publish_nothing_twice(
    log: Watched, store: DuckDBStore
) -> None:
    epoch = begin(store)
    publisher = Publisher(log, store)
    second = threading.Thread(target=publisher.publish, args=(epoch,))
    looked_up, first_appended = threading.Event(), threading.Event()

    def let_the_other_in() -> None:
        if threading.current_thread() is second:
            looked_up.set()
            first_appended.wait()
        elif not second.ident:
            store.commit(noted(epoch, 2, b="two", c="three"))
            second.start()
            # It gets as far as this, unless it has to wait until the first one is done.
            looked_up.wait(0.2)
        elif looked_up.is_set():
            first_appended.set()
            second.join()

    log.before_append = let_the_other_in
    store.commit(noted(epoch, 1, a="one"))
    publisher.publish(epoch)
    first_appended.set()
    second.join()
    assert notes_told(log) == ["one", "two", "three"]
