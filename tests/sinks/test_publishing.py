"""What a commit leaves for the log is in the log once, also when several threads publish.

Method: commits of a small view with a sink, without Spark; a log that lets another thread in at the
worst moment.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.aggregates.words import Merge
from headrace.errors import MergeFailed
from headrace.ledger.entries import MAIN, Commit, Emission, Progress, SinkEntry
from headrace.log import MAX_RECORD_BYTES, EmbeddedLog, Partition
from headrace.plan.tables import KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.sinks import paging
from headrace.sinks.publishing import Publisher
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.log.suite import rows
from headrace.testing.store.samples import (
    PARTITION_0,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import NEVER
from headrace.time.placement import Forever

STRING, BIGINT = parse_type("STRING"), parse_type("BIGINT")
NOTES = Table(
    "notes",
    "v1",
    (
        TableColumn("k", STRING),
        TableColumn("_events", BIGINT, Merge.COUNT),
        TableColumn("note", STRING, Merge.LEAST),
    ),
    Forever(),
    outputs=(Output("note", Reference("note", STRING), STRING),),
    key=(KeyPart("k", "k", STRING),),
)
TOLD = Emission("out", "rows", "upsert", NOTES, NEVER, NEVER)


class Watched(EmbeddedLog):
    """A log that calls `before_append` before each append, and counts the records of each."""

    appended: list[int]
    before_append: Callable[[], None] = staticmethod(lambda: None)

    def append(self, topic: str, table: pa.Table, **options: Any) -> Any:
        self.before_append()
        self.appended.append(table.num_rows)
        return super().append(topic, table, **options)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Watched]:
    log = Watched(tmp_path / "log", sync=False)
    log.appended = []
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
    store.hold(epoch, [stream_holding(), holding(NOTES)], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(NOTES)
    store.show(epoch, MAIN, [NOTES])
    return epoch


def noted(epoch: int, turn: int, *, told: Emission = TOLD, **notes: str) -> Commit:
    """Return a turn that writes notes by their keys, and tells a sink of them."""
    written = delta(NOTES, *((key, 1, note) for key, note in notes.items()))
    return turn_of(planned(epoch, turn), {NOTES: (written,)}, emissions=(told,))


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


@pytest.mark.parametrize("mode", ["upsert", "retract"])
def test_a_row_that_no_record_can_hold_is_refused_before_the_commit(
    log: Watched, store: DuckDBStore, mode: str
) -> None:
    epoch = begin(store)
    told = replace(TOLD, mode=mode)
    sizes = {"upsert": '{"k":"é"}' + '{"note":"","_events":1,"_closed":false}'}
    sizes["retract"] = sizes["upsert"] + '"_change":"retract",'
    largest = "x" * (MAX_RECORD_BYTES - len(sizes[mode].encode()))
    with pytest.raises(MergeFailed) as refused:
        store.commit(noted(epoch, 1, told=told, é=largest + "x", b="b"))
    assert refused.value.view == "notes"
    assert 'view notes: the row {"k":"é"} has 1048577 bytes' in str(refused.value)
    store.commit(noted(epoch, 1, told=told, é=largest))
    store.commit(noted(epoch, 2, told=told, é="short"))
    Publisher(log, store).publish(epoch)
    assert notes_told(log) == [largest, *[largest] * (mode == "retract"), "short"]


def test_rows_are_published_in_pieces_of_bounded_size(
    log: Watched, store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "_PAGE_ROWS", 4)
    monkeypatch.setattr(paging, "_PAGE_BYTES", 1_000)
    epoch = begin(store)
    sizes = [1, 1, 1, 1, 1, 600, 600, 600, 600, 2_000, 1]
    notes = {letter: letter * size for letter, size in zip("abcdefghijk", sizes, strict=True)}
    store.commit(noted(epoch, 1, **notes))
    Publisher(log, store).publish(epoch)
    assert notes_told(log) == list(notes.values())
    # The last row of a piece may go past the bound: so even one that is larger is published.
    assert log.appended == [4, 3, 2, 1, 1]


def test_what_waits_for_a_topic_that_no_sink_has_any_more_is_let_go(
    log: Watched, store: DuckDBStore, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = begin(store)
    kept = SinkEntry("kept", "notes", "v1", "kept", "upsert", final=False)
    out = SinkEntry("out", "notes", "v1", "rows", "upsert", final=False)
    store.set_sinks(epoch, [(kept, None), (out, None)])
    store.commit(noted(epoch, 1, told=replace(TOLD, sink="kept", topic="kept"), a="one"))
    store.commit(noted(epoch, 2, b="two", c="three"))
    store.set_sinks(epoch, [(replace(kept, sink="renamed"), None)])
    Publisher(log, store).publish(epoch)
    assert notes_told(log) == []
    assert sum(extent.end_offset for extent in log.extents("kept").values()) == 1
    assert "let go of 2 rows that waited for the topic rows" in caplog.text
