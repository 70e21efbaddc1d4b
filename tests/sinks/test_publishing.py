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
from headrace.ledger.entries import MAIN, Commit, HoldingState, Progress
from headrace.ledger.following import Followers, SinkEntry
from headrace.log import MAX_RECORD_BYTES, EmbeddedLog, Partition
from headrace.plan.tables import KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.sinks import changes
from headrace.sinks.publishing import Publisher
from headrace.store.duckdb.changes.sizes import SOURCE_BYTES
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
from headrace.time.clocks import Clock
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
TOLD = SinkEntry("out", "notes", "rows", "upsert")


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


def begin(store: DuckDBStore, *sinks: SinkEntry) -> int:
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(NOTES)], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(NOTES)
    store.show(epoch, MAIN, [NOTES])
    store.set_followers(epoch, Followers(sinks or (TOLD,)), {"notes": NOTES})
    return epoch


def noted(epoch: int, turn: int, **notes: str) -> Commit:
    """Return a turn that writes notes by their keys."""
    written = delta(NOTES, *((key, 1, note) for key, note in notes.items()))
    return turn_of(planned(epoch, turn), {NOTES: (written,)})


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


@pytest.mark.parametrize("mode", ["upsert", "retract", "debezium"])
def test_a_row_that_no_record_can_hold_is_refused_before_the_commit(
    log: Watched, store: DuckDBStore, mode: str
) -> None:
    epoch = begin(store, replace(TOLD, mode=mode))
    sizes = {"upsert": '{"k":"é"}' + '{"note":"","_closed":false}'}
    sizes["retract"] = sizes["upsert"] + '"_change":"retract",'
    # In an envelope it may stand twice, before and after, beside what the changes are of.
    room = MAX_RECORD_BYTES - (SOURCE_BYTES if mode == "debezium" else 0)
    sizes["debezium"] = sizes["upsert"] + '{"note":"","_closed":false}'
    sizes["debezium"] += '{"before":null,"after":null,"op":"u","source":}'
    largest = "x" * ((room - len(sizes[mode].encode())) // (2 if mode == "debezium" else 1))
    with pytest.raises(MergeFailed) as refused:
        store.commit(noted(epoch, 1, é=largest + "x", b="b"))
    assert refused.value.view == "notes"
    assert 'view notes: the row {"k":"é"} has 10485' in str(refused.value)
    store.commit(noted(epoch, 1, é=largest))
    store.commit(noted(epoch, 2, é="short"))
    Publisher(log, store).publish(epoch)
    [last] = rows(log, Partition("rows", 0))[-1:]
    assert b'"note":"short"' in last["value"]


def test_rows_are_published_in_pieces_of_bounded_size(
    log: Watched, store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_PIECE_ROWS", 4)
    monkeypatch.setattr(changes, "_PIECE_BYTES", 1_000)
    epoch = begin(store)
    sizes = [1, 1, 1, 1, 1, 600, 600, 600, 600, 2_000, 1]
    notes = {letter: letter * size for letter, size in zip("abcdefghijk", sizes, strict=True)}
    store.commit(noted(epoch, 1, **notes))
    Publisher(log, store).publish(epoch)
    assert notes_told(log) == list(notes.values())
    # The last row of a piece may go past the bound: so even one that is larger is published.
    assert log.appended == [4, 3, 1, 2, 1]


def test_a_sink_that_is_gone_holds_no_other_up(log: Watched, store: DuckDBStore) -> None:
    kept = SinkEntry("kept", "notes", "kept", "upsert")
    epoch = begin(store, kept, TOLD)
    store.commit(noted(epoch, 1, a="one"))
    store.set_followers(epoch, Followers((replace(kept, name="renamed"),)), {"notes": NOTES})
    Publisher(log, store).publish(epoch)
    assert notes_told(log) == []
    assert sum(extent.end_offset for extent in log.extents("kept").values()) == 1
    with store.open() as snapshot:
        assert snapshot.waiting_changes() == {"kept": 0}
        assert snapshot.kept_changes()["notes"].rows == 0


def test_a_topic_that_is_gone_is_made_again_and_gets_what_follows(
    log: Watched, store: DuckDBStore
) -> None:
    epoch = begin(store)
    publisher = Publisher(log, store)
    store.commit(noted(epoch, 1, a="one"))
    publisher.publish(epoch)
    log.delete_topic("rows")
    store.commit(noted(epoch, 2, b="two"))
    publisher.publish(epoch)
    [record] = [row for number in range(4) for row in rows(log, Partition("rows", number))]
    assert json.loads(record["value"])["note"] == "two"


def test_a_sink_of_rows_that_no_record_can_hold_is_refused_and_nothing_is_entered(
    log: Watched, store: DuckDBStore
) -> None:
    epoch = begin(store, replace(TOLD, topic="others", view="none"))
    store.commit(noted(epoch, 1, a="x" * (MAX_RECORD_BYTES + 1)))
    with pytest.raises(MergeFailed) as refused:
        store.set_followers(epoch, Followers((TOLD,)), {"notes": NOTES})
    assert 'the row {"k":"a"} has 1048' in str(refused.value)
    with store.open() as snapshot:
        assert [state.sink.topic for state in snapshot.sinks()] == ["others"]


def test_a_sink_waits_for_a_version_that_has_its_key(log: Watched, store: DuckDBStore) -> None:
    epoch = begin(store)
    store.commit(noted(epoch, 1, a="one"))
    keyed = replace(TOLD, topic="keyed", mode="retract", key=("again",))
    store.set_followers(epoch, Followers((keyed,)), {"notes": NOTES})
    publisher = Publisher(log, store)
    store.commit(noted(epoch, 2, b="two"))
    publisher.publish(epoch)
    again = Output("again", Reference("note", STRING), STRING)
    wide = replace(NOTES, version="v2", outputs=(*NOTES.outputs, again))
    unit = "view:notes@v2"
    held = holding(wide, unit, state=HoldingState.BUILDING)
    store.hold(epoch, [held], {unit: {PARTITION_0: Progress()}})
    store.prepare(wide)
    rows_of_both = delta(wide, ("a", 1, "one"), ("b", 1, "two"))
    built = turn_of(planned(epoch, 1, unit=unit), {wide: (rows_of_both,)})
    place = {PARTITION_0: Progress(20, Clock(20_000, 20_000))}
    store.commit(replace(built, progress=place))
    store.show(epoch, unit, [wide], [NOTES])
    publisher.publish(epoch)
    found = [row for number in range(4) for row in rows(log, Partition("keyed", number))]
    assert sorted(json.loads(row["key"])["again"] for row in found) == ["one", "two"]


def test_sinks_of_another_view_or_of_one_that_comes_back_begin_anew(
    log: Watched, store: DuckDBStore
) -> None:
    epoch = begin(store, replace(TOLD, view="none"))
    publisher = Publisher(log, store)
    store.commit(noted(epoch, 1, a="one"))
    store.set_followers(epoch, Followers((TOLD,)), {"notes": NOTES})
    publisher.publish(epoch)
    assert notes_told(log) == ["one"]
    with store.open() as snapshot:
        held = [each for each in snapshot.holdings() if each.kind == "view"]
    store.drop(epoch, held)
    with store.open() as snapshot:
        assert snapshot.sinks() == []


def test_rows_that_exchange_their_keys_leave_before_they_come(
    log: Watched, store: DuckDBStore
) -> None:
    newest = replace(
        NOTES,
        columns=(*NOTES.columns[:2], TableColumn("note", STRING, Merge.GREATEST)),
        outputs=(Output("note", Reference("note", STRING), STRING),),
    )
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(newest)], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(newest)
    store.show(epoch, MAIN, [newest])
    sink = replace(TOLD, mode="debezium", key=("note",))
    store.set_followers(epoch, Followers((sink,)), {"notes": newest})
    publisher = Publisher(log, store)
    for turn, notes in enumerate([{"a": "1", "b": "2"}, {"a": "2", "b": "3"}], 1):
        written = delta(newest, *((key, 1, note) for key, note in notes.items()))
        store.commit(turn_of(planned(epoch, turn), {newest: (written,)}))
        publisher.publish(epoch)
    held: dict[str, object] = {}
    for row in rows(log, Partition("rows", 0)):
        said = None if row["value"] is None else json.loads(row["value"])["after"]
        held[json.loads(row["key"])["note"]] = said
    assert [note for note, row in held.items() if row is not None] == ["2", "3"]
