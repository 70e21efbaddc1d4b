"""The store's suite, first part: the commit, epochs and turns, deltas, the ledger."""

# ruff: noqa: D102 (the name of a test is its sentence)

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from headrace import faults
from headrace.errors import EngineError, EngineFenced, MergeFailed, StoreError
from headrace.ledger.entries import (
    MAIN,
    Owner,
    PlannedTurn,
    Progress,
    Seed,
    StreamPartition,
    StreamRange,
    TurnReport,
)
from headrace.ledger.laws import totals_of
from headrace.log.base import Partition, Range
from headrace.model.nodes import Window
from headrace.plan.tables import Table, TableColumn
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    STREAM,
    StoreSuite,
    counts,
    delta,
    entry,
    holding,
    kept_items,
    outputs_of,
    planned,
    read,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import NEVER, Clock
from headrace.time.placement import OfRecord, placement_of

__all__ = ["TurnContract"]

WRITER = """
import importlib, sys
from decimal import Decimal
from pathlib import Path
module, name, path = sys.argv[1:]
suite = getattr(importlib.import_module(module), name)()
suite.write_forever(Path(path))
"""


class TurnContract(StoreSuite):
    """A turn is committed whole, once, in order, by the newest epoch."""

    # One commit.

    def test_how_long_a_turn_took_is_kept_after_its_commit(self, store: Store) -> None:
        """A commit cannot know how long it takes itself; only the newest engine may add it."""
        table = counts()
        epoch = self.begin(store, table)
        commit = turn_of(planned(epoch, 1))
        store.journal(commit.planned)
        store.commit(commit)
        timed = replace(commit.report, milliseconds={"fold": 1.5, "commit": 2.5})
        store.keep_times(epoch, [timed])
        with store.open() as snapshot:
            assert snapshot.turns(MAIN) == [timed]
        newer = store.begin_epoch()
        with pytest.raises(EngineFenced):
            store.keep_times(epoch, [commit.report])
        store.keep_times(newer, [])
        with store.open() as snapshot:
            assert snapshot.turns(MAIN) == [timed]

    @pytest.mark.parametrize("point", ["before_commit", "after_commit"])
    def test_a_crash_around_the_commit_leaves_all_of_a_turn_or_nothing(
        self, path: Path, point: str
    ) -> None:
        table = counts()
        turn = 1
        store = self.make_store(path)
        epoch = self.begin(store, table)
        # Several crashes, one after the other: the second finds what the first left behind.
        for _ in range(3):
            plan = planned(epoch, turn)
            store.journal(plan)
            faults.arm(point)
            with pytest.raises(faults.Crash):
                store.commit(
                    turn_of(
                        plan,
                        {table: (delta(table, ("a", 1, 1, 1, 1)),)},
                        {STREAM: {"read": 10, "accepted": 10, "dead": 0, "duplicate": 0}},
                        outbox=(entry(turn),),
                        seeds=(Seed("clicks", "s1", 0, Progress(turn)),),
                    )
                )
            store.close()
            store = self.make_store(path)
            epoch = store.begin_epoch()
            done = turn if point == "after_commit" else 0
            with store.open() as snapshot:
                assert snapshot.units() == {MAIN: done}
                assert snapshot.progress(MAIN)[PARTITION_0].offset == done * 10
                assert [row["_events"] for row in snapshot.states(table).to_pylist()] == (
                    [done] if done else []
                )
                assert totals_of(snapshot.counters()).get(STREAM, {}).get("read", 0) == done * 10
                assert len(snapshot.outbox()) == done
                assert [report.turn for report in snapshot.turns(MAIN, last=9)] == (
                    list(range(done, 0, -1))
                )
            assert len(store.seeds("clicks", "s1")) == done
            journalled = store.journalled(MAIN)
            if done:
                assert journalled is None
                turn += 1
            else:
                assert journalled is not None
                assert journalled.ranges == plan.ranges
        store.close()

    def test_a_killed_writer_leaves_exactly_the_turns_that_it_committed(self, path: Path) -> None:
        kind = type(self)
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, kind.__module__, kind.__qualname__, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdout is not None
        noted = [int(process.stdout.readline()) for _ in range(5)]
        time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        noted += [int(line) for line in process.stdout.read().split()]
        process.wait()
        process.stdout.close()
        table = counts()
        store = self.make_store(path)
        with store.open() as snapshot:
            turn = snapshot.units()[MAIN]
            # The last commit may have been made and not noted.
            assert turn in (noted[-1], noted[-1] + 1)
            assert snapshot.progress(MAIN)[PARTITION_0].offset == turn * 10
            assert totals_of(snapshot.counters())[STREAM]["read"] == turn * 10
            assert len(snapshot.outbox()) == turn
        assert read(store, table) == [("a", turn, turn, -turn, turn)]
        epoch = store.begin_epoch()
        store.commit(turn_of(planned(epoch, turn + 1)))
        store.close()

    def write_forever(self, path: Path) -> None:
        """Commit turn after turn, and print the number of each once it is committed."""
        store = self.make_store(path)
        table = counts()
        epoch = self.begin(store, table)
        turn = 1
        while True:
            plan = planned(epoch, turn)
            store.journal(plan)
            rows = delta(table, ("a", 1, 1, -turn, turn))
            counters = {STREAM: {"read": 10, "accepted": 10, "dead": 0, "duplicate": 0}}
            store.commit(turn_of(plan, {table: (rows,)}, counters, outbox=(entry(turn),)))
            print(turn, flush=True)
            turn += 1

    # Epochs and turns.

    def test_an_older_epoch_can_do_nothing_any_more(self, store: Store) -> None:
        table = counts()
        old = self.begin(store, table)
        new = store.begin_epoch()
        assert new > old
        with pytest.raises(EngineFenced, match=f"epoch {old} may not write any more"):
            store.journal(planned(old, 1))
        with pytest.raises(EngineFenced):
            store.commit(turn_of(planned(old, 1)))
        with pytest.raises(EngineFenced):
            store.hold(old, [holding(table)], {})
        with pytest.raises(EngineFenced):
            store.show(old, MAIN, [table])
        with pytest.raises(EngineFenced):
            store.drop(old, [holding(table)])
        store.commit(turn_of(planned(new, 1)))

    def test_an_epoch_is_newer_after_a_restart(self, store: Store, path: Path) -> None:
        old = store.begin_epoch()
        store.close()
        again = self.make_store(path)
        assert again.begin_epoch() > old
        again.close()

    def test_turns_commit_once_and_in_order(self, store: Store) -> None:
        epoch = self.begin(store)
        with pytest.raises(EngineFenced, match="turn 2 does not follow turn 0"):
            store.journal(planned(epoch, 2))
        store.commit(turn_of(planned(epoch, 1)))
        with pytest.raises(EngineFenced, match="turn 1 does not follow turn 1"):
            store.commit(turn_of(planned(epoch, 1)))
        with pytest.raises(EngineFenced, match="turn 3 does not follow turn 1"):
            store.commit(turn_of(planned(epoch, 3)))
        store.commit(turn_of(planned(epoch, 2)))

    def test_a_unit_that_is_gone_cannot_turn(self, store: Store) -> None:
        epoch = self.begin(store)
        with pytest.raises(EngineFenced, match="no such unit"):
            store.journal(planned(epoch, 1, unit="view:gone@v1"))

    def test_a_unit_that_begins_anew_knows_no_marker_and_no_plan(self, store: Store) -> None:
        epoch = self.begin(store)
        store.commit(replace(turn_of(planned(epoch, 1)), time_offset=7))
        store.journal(planned(epoch, 2))
        store.drop(epoch, [stream_holding()])
        store.hold(epoch, [stream_holding()], {MAIN: {PARTITION_0: Progress()}})
        assert store.journalled(MAIN) is None
        with store.open() as snapshot:
            assert snapshot.time_offset(MAIN) == 0
            assert snapshot.units() == {MAIN: 1}

    def test_a_planned_turn_is_found_until_it_is_committed(self, store: Store) -> None:
        epoch = self.begin(store)
        assert store.journalled(MAIN) is None
        ranges = (
            StreamRange("clicks", Range(Partition("topic-1", 0), 3, 2**50)),
            StreamRange("clicks", Range(Partition("topic-1", 7), 0, 1)),
        )
        plan = PlannedTurn(MAIN, 1, epoch, ranges)
        store.journal(replace(plan, ranges=ranges[:1]))
        store.journal(plan)
        assert store.journalled(MAIN) == plan
        store.commit(turn_of(plan))
        assert store.journalled(MAIN) is None

    def test_the_last_reports_are_kept_newest_first(self, store: Store) -> None:
        epoch = self.begin(store)
        for turn in (1, 2, 3):
            store.commit(turn_of(planned(epoch, turn)))
        with store.open() as snapshot:
            reports = snapshot.turns(MAIN, last=2)
        assert reports == [
            TurnReport(MAIN, turn, "short", 10, 0, 0, {"fold": 1.5}) for turn in (3, 2)
        ]

    # Deltas.

    def test_deltas_merge_by_key_and_null_is_a_key(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        first = delta(table, ("a", 2, Decimal("1.50"), 4, 9), (None, 1, None, None, None))
        second = delta(table, ("a", 1, None, 3, 7), ("b", 1, Decimal("-2.00"), -1, -1))
        store.commit(turn_of(planned(epoch, 1), {table: (first, second)}))
        third = delta(table, (None, 4, Decimal("0.25"), 0, 0), ("a", 1, Decimal("0.01"), None, 10))
        store.commit(turn_of(planned(epoch, 2), {table: (third,)}))
        rows = [
            (k, n, None if t is None else str(t), low, high)
            for k, n, t, low, high in read(store, table)
        ]
        assert rows == [
            ("a", 4, "1.51", 3, 10),
            ("b", 1, "-2.00", -1, -1),
            (None, 5, "0.25", 0, 0),
        ]

    def test_a_table_without_keys_has_one_row(self, store: Store) -> None:
        table = counts(keyed=False)
        epoch = self.begin(store, table)
        deltas = tuple(delta(table, (1, n, n, n)) for n in (5, -5, 7))
        store.commit(turn_of(planned(epoch, 1), {table: deltas}))
        store.commit(turn_of(planned(epoch, 2), {table: deltas}))
        assert read(store, table) == [(6, 14, -5, 7)]

    def test_items_merge_beside_their_table_and_are_counted_with_it(self, store: Store) -> None:
        items = kept_items(counts(), keep=None)
        table = replace(counts(), children=(items,))
        epoch = self.begin(store, table)
        rows = (delta(items, ("a", 1, 5), (None, 1, 7)), delta(items, ("a", 1, 3), ("a", 2, 4)))
        for turn, each in enumerate(rows, start=1):
            deltas = {table: (delta(table, ("a", 1, 1, 1, 1)),), items: (each,)}
            store.commit(turn_of(planned(epoch, turn), deltas))
        assert read(store, items) == [("a", 1, 3), ("a", 2, 4), (None, 1, 7)]
        with store.open() as snapshot:
            assert snapshot.state_rows() == {"hits__v1": 4}
        store.drop(epoch, [holding(table)])
        with store.open() as snapshot:
            assert snapshot.state_rows() == {}
            with pytest.raises(StoreError):
                snapshot.states(items)

    def test_of_bounded_items_the_first_of_every_group_are_kept(self, store: Store) -> None:
        items = kept_items(counts(), keep=2)
        table = replace(counts(), children=(items,))
        epoch = self.begin(store, table)
        first = delta(items, ("a", 1, 5), ("a", 2, 6), ("a", 3, 7), ("b", 1, 1), (None, 4, 4))
        store.commit(turn_of(planned(epoch, 1), {items: (first,)}))
        assert read(store, items) == [("a", 1, 5), ("a", 2, 6), ("b", 1, 1), (None, 4, 4)]
        # An earlier place lets an item in, and another one out; other groups stay as they are.
        second = delta(items, ("a", 3, 2), ("a", 9, 9))
        store.commit(turn_of(planned(epoch, 2), {items: (second,)}))
        assert read(store, items) == [("a", 1, 5), ("a", 3, 2), ("b", 1, 1), (None, 4, 4)]

    def test_items_without_states_are_there_once(self, store: Store) -> None:
        # Of panes, where a delta may have rows of one key twice.
        placement = placement_of(Window(30, "hopping", 10))
        items = kept_items(counts(), keep=None)
        places = (TableColumn(each.name, each.type) for each in placement.item_columns)
        items = replace(items, columns=(*places, *items.keys), placement=placement)
        table = replace(counts(), children=(items,))
        epoch = self.begin(store, table)
        for turn in (1, 2):
            rows = delta(items, (5, 3, "a", 1), (5, 3, "a", 1), (5, 3, None, 1))
            store.commit(turn_of(planned(epoch, turn), {items: (rows,)}))
        assert read(store, items) == [(5, 3, "a", 1), (5, 3, None, 1)]

    def test_an_appending_table_keeps_every_row(self, store: Store) -> None:
        columns = tuple(TableColumn(each.name, each.type) for each in OfRecord().columns)
        table = Table("raw", "v1", columns, OfRecord(), outputs=outputs_of(columns))
        epoch = self.begin(store, table)
        store.commit(turn_of(planned(epoch, 1), {table: (delta(table, (0, 1), (0, 2)),)}))
        store.commit(turn_of(planned(epoch, 2), {table: (delta(table, (0, 3)),)}))
        assert read(store, table) == [(0, 1), (0, 2), (0, 3)]

    def test_a_staged_delta_has_the_tables_columns_and_types(self, store: Store) -> None:
        table = counts()
        loose = pa.table(
            {
                "_events": pa.array([1], pa.int32()),
                "k": ["a"],
                "extra": [0],
                "least": [1],
                "greatest": [1],
                "total": pa.array([None], pa.decimal128(20, 2)),
            }
        )
        staged = store.stage(table, loose)
        assert staged.schema == delta(table).schema

    def test_a_delta_that_does_not_merge_names_its_view_and_commits_nothing(
        self, store: Store
    ) -> None:
        good, bad = counts("good"), counts("bad")
        epoch = self.begin(store, good, bad)
        most = Decimal("9" * 36 + ".99")
        once = {
            good: (delta(good, ("a", 1, 1, 1, 1)),),
            bad: (delta(bad, ("a", 1, most, 1, 1)),),
        }
        store.commit(turn_of(planned(epoch, 1), once))
        with pytest.raises(MergeFailed, match="view bad: its delta does not merge") as failure:
            store.commit(turn_of(planned(epoch, 2), once))
        assert failure.value.view == "bad"
        assert read(store, good) == [("a", 1, 1, 1, 1)]
        store.commit(turn_of(planned(epoch, 2), {good: once[good]}))
        assert read(store, good) == [("a", 2, 2, 1, 1)]

    # The ledger.

    def test_counters_add_up_over_turns(self, store: Store) -> None:
        epoch = self.begin(store)
        view = Owner("view", "hits", "v1")
        counters = {
            STREAM: {"read": 10, "accepted": 7, "dead": 3, "duplicate": 0},
            view: {
                "seen": 7,
                "skipped": 1,
                "dead": 1,
                "matched": 5,
                "pairs": 9,
                "folded": 7,
                "late": 2,
                "corrected": 1,
            },
        }
        for turn in range(1, 103):  # past any tidying
            store.commit(turn_of(planned(epoch, turn), counters=counters))
            if turn in (1, 2, 99, 100, 101, 102):
                with store.open() as snapshot:
                    assert totals_of(snapshot.counters()) == {
                        owner: {name: value * turn for name, value in counted.items()}
                        for owner, counted in counters.items()
                    }

    def test_counters_that_lose_a_record_are_refused(self, store: Store) -> None:
        epoch = self.begin(store)
        counters = {STREAM: {"read": 10, "accepted": 9, "dead": 0, "duplicate": 0}}
        with pytest.raises(EngineError, match="read 10 is not accepted 9"):
            store.commit(turn_of(planned(epoch, 1), counters=counters))
        with store.open() as snapshot:
            assert snapshot.units() == {MAIN: 0}
            assert snapshot.counters() == {}

    def test_positions_and_clocks_are_found_again(self, store: Store, path: Path) -> None:
        epoch = self.begin(store)
        places = {
            StreamPartition("clicks", 0): Progress(10, Clock(NEVER)),
            StreamPartition("clicks", 1): Progress(2**62, Clock(-1)),
            StreamPartition("other", 0): Progress(0, Clock(0)),
        }
        store.commit(turn_of(planned(epoch, 1), progress=places))
        store.close()
        again = self.make_store(path)
        with again.open() as snapshot:
            assert snapshot.progress(MAIN) == places
            assert snapshot.progress("nobody") == {}
        again.close()

    def test_seeds_come_in_the_order_of_their_places(self, store: Store) -> None:
        epoch = self.begin(store)
        seeds = [
            Seed("clicks", "s1", *at)
            for at in [
                (1, Progress(5, Clock(50))),
                (0, Progress(20, Clock(9))),
                (0, Progress(10, Clock(NEVER))),
            ]
        ]
        other = Seed("clicks", "s2", 0, Progress(1, Clock(1)))
        store.commit(turn_of(planned(epoch, 1), seeds=(*seeds, other)))
        assert store.seeds("clicks", "s1") == seeds[::-1]
        assert store.seeds("nobody", "s1") == []

    def test_the_outbox_keeps_its_order_and_forgets_what_is_published(self, store: Store) -> None:
        epoch = self.begin(store)
        store.commit(turn_of(planned(epoch, 1), outbox=(entry(3, 5, 9), entry(1, topic="b.late"))))
        store.commit(turn_of(planned(epoch, 2), outbox=(entry(11),)))
        with store.open() as snapshot:
            waiting = snapshot.outbox()
            assert snapshot.outbox_records() == 5
        assert [number for number, _ in waiting] == sorted(number for number, _ in waiting)
        found = [
            (e.topic, e.source, e.producer_id, e.offsets.to_pylist(), e.reasons.to_pylist())
            for _, e in waiting
        ]
        source = Partition("topic", 0)
        assert found == [
            (
                "clicks.dead",
                Range(source, 3, 10),
                "clicks.dead@s1",
                [3, 5, 9],
                ["reason 3", "reason 5", "reason 9"],
            ),
            ("b.late", Range(source, 1, 2), "b.late@s1", [1], ["reason 1"]),
            ("clicks.dead", Range(source, 11, 12), "clicks.dead@s1", [11], ["reason 11"]),
        ]
        store.published([waiting[0][0], waiting[2][0]])
        store.published([])
        with store.open() as snapshot:
            assert [number for number, _ in snapshot.outbox()] == [waiting[1][0]]
            assert snapshot.outbox_records() == 1
