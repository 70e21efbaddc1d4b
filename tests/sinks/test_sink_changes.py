"""What sinks hold is the view, in every mode and policy, whatever crashes and whoever takes over.

Method: random turns and swaps of a view of every placement, without Spark; what sinks wait for is
published now and then, with a crash before, between or after appends, to a real embedded log; a
reader of each topic folds it as its users do. Changes are put together in memory or in the store,
at random, so that the rest of what a crash left often comes the other way. What sinks have is noted
at once or later, at random, and what is in memory only is forgotten now and then, as by a crash.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from soaking import SOAKING, seeded, times

from headrace import faults
from headrace.ledger.following import Followers, SinkEntry
from headrace.log import EmbeddedLog, Partition
from headrace.model.validate.sinks import MODES as KNOWN_MODES
from headrace.schema.envelopes import MODES
from headrace.serve.http.values import plain
from headrace.sinks import changes
from headrace.sinks.publishing import Publisher
from headrace.store.base import Store
from headrace.store.duckdb.changes import keeping, publishing
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.log.suite import rows
from headrace.testing.store.changing import PLACEMENTS, History

STEPS = 14 if SOAKING else 9
SINKS = {mode: SinkEntry(mode, "hits", f"{mode}.rows", mode) for mode in MODES}


def text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def shown(store: Store, *, closed: bool) -> Counter[str]:
    with store.open() as snapshot:
        found = snapshot.query("SELECT * EXCLUDE (_events) FROM hits", max_rows=None).to_pylist()
    return Counter(text(plain(row)) for row in found if row["_closed"] or not closed)


def held(log: EmbeddedLog, mode: str) -> Counter[str]:
    """Return the rows that a reader of a topic ends with."""
    newest: dict[bytes, Any] = {}
    found: Counter[str] = Counter()
    for record in rows(log, Partition(f"{mode}.rows", 0)):
        key, value = record["key"], record["value"]
        said = None if value is None else json.loads(value)
        if mode == "upsert":
            newest[key] = said
        elif mode == "retract":
            change = said.pop("_change")
            found[text(said)] += 1 if change == "insert" else -1
            assert found[text(said)] >= 0, "a row is retracted that was never told"
        elif said is None:
            assert newest[key] is None, "a tombstone follows a delete"
        else:
            assert said["before"] == newest.get(key), "before is what was told last"
            assert said["op"] == {(True, False): "d", (True, True): "u"}.get(
                (said["before"] is not None, said["after"] is not None), said["op"]
            )
            assert (said["before"] is None) == (said["op"] in ("c", "r"))
            newest[key] = said["after"]
    return +found + Counter(text(row) for row in newest.values() if row is not None)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "emit"),
    [
        (kind, emit)
        for kind in PLACEMENTS
        for emit in ("changes", "every", "final")
        if (kind, emit) != ("forever", "final")  # no such row is ever final
    ],
)
def test_what_sinks_hold_is_the_view(
    tmp_path: Path, kind: str, emit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "COMPACT_ROWS", 5)
    monkeypatch.setattr(keeping, "_TOLD_COMMITS", 4)
    monkeypatch.setattr(changes, "_PIECE_ROWS", 2)
    for case in range(times(1)):
        draw = seeded(100 * case + len(kind) * 10 + len(emit))
        log = EmbeddedLog(tmp_path / f"log{case}", sync=False)
        store = DuckDBStore(tmp_path / f"{case}.duckdb")
        for mode in MODES:
            log.create_topic(f"{mode}.rows", partitions=1)
        try:
            play(log, store, History(store, kind, draw), emit, monkeypatch)
        finally:
            faults.disarm()
            store.close()
            log.close()


def crash_after(point: str, passes: int) -> None:
    """Let the engine die when a point is passed so many times more."""

    def count_down() -> None:
        if passes:
            crash_after(point, passes - 1)
        else:
            raise faults.Crash(point)

    faults.arm(point, count_down)


def play(
    log: EmbeddedLog,
    store: DuckDBStore,
    history: History,
    emit: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher, draw = Publisher(log, store), history.draw
    entries = [SinkEntry(each.name, "hits", each.topic, each.mode, emit) for each in SINKS.values()]
    joined: list[SinkEntry] = []
    for step in range(STEPS):
        if draw.random() < 0.12 and step:
            history.swap(wide=draw.random() < 0.5)
        else:
            history.turn()
        if len(joined) < len(entries) and draw.random() < 0.5:
            publisher.publish(history.epoch)
            joined.append(entries[len(joined)])
            store.set_followers(history.epoch, Followers(tuple(joined)), {"hits": history.table})
        if draw.random() < 0.5:
            monkeypatch.setattr(publishing, "FEW_ROWS", draw.choice([0, 3, 8_192]))
            if draw.random() < 0.4:
                point = draw.choice(["sink_before_append", "sink_after_append"])
                crash_after(point, draw.randrange(4) if point == "sink_before_append" else 0)
            try:
                publisher.publish(history.epoch, may_wait=draw.random() < 0.6)
            except faults.Crash:
                continue  # what is in the log, and what is not, is found out next time
            finally:
                faults.disarm()
            assert_all_hold(log, store, joined, emit)
            if draw.random() < 0.2:
                forget(store)
    publisher.publish(history.epoch)
    assert_all_hold(log, store, joined, emit)


def assert_all_hold(log: EmbeddedLog, store: Store, sinks: list[SinkEntry], emit: str) -> None:
    expected = shown(store, closed=emit == "final")
    for sink in sinks:
        assert held(log, sink.mode) == expected


def forget(store: DuckDBStore) -> None:
    """Let a store know of its followers what another process would."""
    store._keeping = keeping.ChangeKeeping(store._file)


def test_what_sinks_have_is_noted_for_several_commits_at_once(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "tumbling", seeded(1))
    history.turn()
    publisher, entry = Publisher(log, store), SINKS["upsert"]
    log.create_topic(entry.topic, partitions=1)
    store.set_followers(history.epoch, Followers((entry,)), {"hits": history.table})
    publisher.publish(history.epoch)
    noted = in_ledger(store)

    def publish_later() -> int:
        history.turn()
        publisher.publish(history.epoch, may_wait=True)
        with store.open() as snapshot:
            [state] = snapshot.sinks()
            assert state.told == snapshot.commits(), "snapshots show it at once"
            assert snapshot.waiting_changes() == {entry.topic: 0}
            return snapshot.commits()

    while (head := publish_later()) - noted < keeping._TOLD_COMMITS:
        assert in_ledger(store) == noted
    assert in_ledger(store) == head
    stored = len(list(rows(log, Partition(entry.topic, 0))))
    assert stored

    last = publish_later()
    assert in_ledger(store) == head
    forget(store)
    before = len(list(rows(log, Partition(entry.topic, 0))))
    publisher.publish(history.epoch, may_wait=True)
    assert len(list(rows(log, Partition(entry.topic, 0)))) == before, "nothing is stored twice"
    publisher.settle()
    assert in_ledger(store) == last
    store.close()
    log.close()


def in_ledger(store: DuckDBStore) -> int:
    with store.open() as snapshot:
        return int(snapshot._fetch("SELECT told FROM headrace.sinks")[0][0])


def test_every_mode_that_a_definition_may_have_can_be_written() -> None:
    assert MODES == KNOWN_MODES
