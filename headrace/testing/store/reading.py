"""The store's suite, second part: snapshots, versions and units, queries from outside."""

# ruff: noqa: D102 (the name of a test is its sentence)

import threading
import time

import pyarrow as pa
import pytest

from headrace.errors import EngineFenced, QueryRefused, StoreError
from headrace.ledger.entries import (
    MAIN,
    HoldingState,
    Owner,
    Progress,
    Seed,
    SetAside,
    StreamPartition,
)
from headrace.ledger.laws import VIEW_COUNTERS, totals_of
from headrace.plan.tables import Table
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    STREAM,
    StoreSuite,
    counts,
    delta,
    holding,
    planned,
    read,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import Clock

__all__ = ["ReadingContract"]


class ReadingContract(StoreSuite):
    """A reader sees one committed state; a swap is one step; queries only read."""

    # Snapshots.

    def test_a_snapshot_does_not_see_what_is_committed_after_it_was_opened(
        self, store: Store
    ) -> None:
        one, two = counts("one"), counts("two")
        epoch = self.begin(store, one, two)

        def deltas(n: int) -> dict[Table, tuple[pa.Table, ...]]:
            return {table: (delta(table, ("a", n, n, n, n)),) for table in (one, two)}

        store.commit(turn_of(planned(epoch, 1), deltas(1)))
        with store.open() as before:
            # Nothing was read through it yet; it must be at the first turn all the same. And many
            # turns pass while it is open: none of them may be held up.
            for turn in range(2, 8):
                store.journal(planned(epoch, turn))
                store.commit(turn_of(planned(epoch, turn), deltas(1)))
            assert before.units() == {MAIN: 1}
            answer = before.query(
                "SELECT o._events AS a, t._events AS b FROM one o, two t"
            ).to_pylist()
            assert list(answer[0].values()) == [1, 1]
            assert before.progress(MAIN)[PARTITION_0].offset == 10
        with store.open() as after:
            assert after.units() == {MAIN: 7}
            assert after.query("SELECT _events AS n FROM two").to_pylist() == [{"n": 7}]

    def test_what_readers_see_is_handed_out_by_columns(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        rows = delta(table, ("a", 1, 1, 1, 1), ("b", 2, 3, 4, 5))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
        with store.open() as snapshot:
            store.commit(turn_of(planned(epoch, 2), {table: (rows,)}))
            shown = {each.name: each for each in snapshot.public_tables()}
            assert set(shown) == {"hits", "hits.errors"}
            names = [column.name for column in shown["hits"].columns]
            assert names == ["k", "total", "least", "greatest", "_events", "_closed"]
            with snapshot.public_rows("hits", ["greatest", "k"]) as found:
                columns = pa.Table.from_batches(found.batches, found.schema)
            assert columns.column_names == ["greatest", "k"]
            assert sorted(columns.to_pylist(), key=str) == [
                {"greatest": 1, "k": "a"},
                {"greatest": 5, "k": "b"},
            ]
            with snapshot.public_rows("hits", ["_events"]) as found:
                assert sum(sum(batch[0].to_pylist()) for batch in found.batches) == 3
            # Two values of 8 bytes in two rows; unless that is known to be little enough.
            wide = ["least", "greatest"]
            assert snapshot.least_bytes(shown["hits"], wide, most=31) == 32
            assert snapshot.least_bytes(shown["hits"], wide, most=32) == 0

    def test_a_snapshot_outlives_the_version_that_it_reads(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        store.commit(turn_of(planned(epoch, 1), {old: (delta(old, ("a", 1, 1, 1, 1)),)}))
        with store.open() as before:
            self.build(store, epoch, new)
            store.show(epoch, "view:hits@v2", [new])
            assert before.query("SELECT _events AS n FROM hits").to_pylist() == [{"n": 1}]
            assert [held.version for held in before.holdings()] == ["s1", "v1"]

    def test_readers_do_not_wait_for_a_commit_and_see_every_view_at_one_turn(
        self, store: Store
    ) -> None:
        tables = [counts("one"), counts("two")]
        epoch = self.begin(store, *tables)
        stop = threading.Event()
        failures: list[BaseException] = []
        seen: set[int] = set()

        def watch() -> None:
            try:
                while not stop.is_set():
                    with store.open() as snapshot:
                        turn = snapshot.units()[MAIN]
                        sums = [
                            snapshot.query(f"SELECT sum(_events) AS n FROM {view}")
                            for view in ("one", "two")
                        ]
                        found = {answer.to_pylist()[0]["n"] or 0 for answer in sums}
                        assert found == {turn}
                        seen.add(turn)
            except BaseException as error:  # noqa: BLE001 - the test raises it
                failures.append(error)

        readers = [threading.Thread(target=watch) for _ in range(3)]
        for reader in readers:
            reader.start()
        for turn in range(1, 16):
            deltas = {table: (delta(table, ("a", 1, 1, 1, 1)),) for table in tables}
            store.commit(turn_of(planned(epoch, turn), deltas))
        stop.set()
        for reader in readers:
            reader.join()
        assert failures == []
        assert seen

    def test_the_rows_of_every_table_are_counted(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        rows = [(f"key {n}", 1, 1, 1, 1) for n in range(3_000)]
        store.commit(turn_of(planned(epoch, 1), {table: (delta(table, *rows),)}))
        with store.open() as snapshot:
            assert snapshot.state_rows() == {"hits__v1": 3_000}

    # Versions and units.

    def test_a_new_version_takes_over_the_public_name_in_one_step(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        store.commit(turn_of(planned(epoch, 1), {old: (delta(old, ("a", 1, 1, 1, 1)),)}))
        unit = self.build(store, epoch, new)
        with store.open() as snapshot:
            assert snapshot.query("SELECT _events AS n FROM hits").to_pylist() == [{"n": 1}]
            assert snapshot.units() == {MAIN: 1, unit: 1}
        store.show(epoch, unit, [new])
        with store.open() as snapshot:
            assert snapshot.query("SELECT _events AS n FROM hits").to_pylist() == [{"n": 100}]
            assert snapshot.units() == {MAIN: 1}
            assert snapshot.holdings() == [stream_holding(), holding(new)]
            assert snapshot.state_rows() == {"hits__v2": 1}
            with pytest.raises(StoreError):
                snapshot.states(old)
        store.commit(turn_of(planned(epoch, 2), {new: (delta(new, ("a", 1, 1, 1, 1)),)}))

    def test_a_unit_that_is_not_level_is_not_swapped_in(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        store.commit(turn_of(planned(epoch, 1)))
        unit = self.build(store, epoch, new, offset=9)
        with pytest.raises(StoreError, match="stands at clicks/0@9 and the main unit at @10"):
            store.show(epoch, unit, [new])
        with store.open() as snapshot:
            assert snapshot.units() == {MAIN: 1, unit: 1}
            assert {held.version for held in snapshot.holdings()} == {"s1", "v1", "v2"}

    def test_a_new_version_of_a_stream_brings_its_position(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        store.commit(
            turn_of(
                planned(epoch, 1),
                counters={STREAM: {"read": 1, "accepted": 1, "dead": 0, "duplicate": 0}},
                progress={StreamPartition("clicks", n): Progress(50, Clock(1)) for n in (0, 1)},
                seeds=(Seed("clicks", "s1", 0, Progress(1, Clock(1))),),
            )
        )
        unit = "stream:clicks@s2"
        building = HoldingState.BUILDING
        held = [stream_holding("s2", unit, state=building), holding(new, unit, state=building)]
        store.hold(epoch, held, {unit: {PARTITION_0: Progress(7, Clock(7))}})
        store.prepare(new)
        store.show(epoch, unit, [new])
        with store.open() as snapshot:
            assert snapshot.progress(MAIN) == {PARTITION_0: Progress(7, Clock(7))}
            assert snapshot.holdings() == [stream_holding("s2"), holding(new)]
            assert snapshot.counters() == {}
        assert store.seeds("clicks", "s1") == []

    def test_a_failing_view_is_set_aside_where_the_turn_began(self, store: Store) -> None:
        good, bad = counts("good"), counts("bad")
        epoch = self.begin(store, good, bad)
        both = {table: (delta(table, ("a", 1, 1, 1, 1)),) for table in (good, bad)}
        store.commit(turn_of(planned(epoch, 1), both))
        aside = SetAside("bad", "v1", "it divides by zero", HoldingState.FAILED)
        store.commit(turn_of(planned(epoch, 2), {good: both[good]}, set_aside=(aside,)))
        unit = "view:bad@v1"
        with store.open() as snapshot:
            held = {held.name: held for held in snapshot.holdings() if held.kind == "view"}
            assert held["good"] == holding(good)
            reason = "it divides by zero"
            assert held["bad"] == holding(bad, unit, state=HoldingState.FAILED, reason=reason)
            assert snapshot.progress(unit) == {PARTITION_0: Progress(10, Clock(10_000, 10_000))}
            assert snapshot.progress(MAIN) == {PARTITION_0: Progress(20, Clock(20_000, 20_000))}
            assert snapshot.query("SELECT _events AS n FROM bad").to_pylist() == [{"n": 1}]
        # Fixed from outside, it goes on by itself, becomes level and joins the others again.
        store.hold(epoch, [holding(bad, unit, state=HoldingState.BUILDING)], {})
        place = {PARTITION_0: Progress(20, Clock(20_000, 20_000))}
        store.commit(turn_of(planned(epoch, 1, unit=unit), {bad: both[bad]}, progress=place))
        store.show(epoch, unit, [bad])
        with store.open() as snapshot:
            assert holding(bad) in snapshot.holdings()
            assert snapshot.units() == {MAIN: 2}
            assert snapshot.query("SELECT _events AS n FROM bad").to_pylist() == [{"n": 2}]

    def test_a_paused_view_is_set_aside_where_its_unit_stands(self, store: Store) -> None:
        other, paused = counts("other"), counts("paused")
        epoch = self.begin(store, other, paused)
        both = {table: (delta(table, ("a", 1, 1, 1, 1)),) for table in (other, paused)}
        store.commit(turn_of(planned(epoch, 1), both))
        aside = SetAside("paused", "v1", "", HoldingState.PAUSED)
        with pytest.raises(EngineFenced):
            store.set_aside(epoch - 1, MAIN, [aside])
        store.set_aside(epoch, MAIN, [aside])
        store.commit(turn_of(planned(epoch, 2), {other: both[other]}))
        with store.open() as snapshot:
            unit = "view:paused@v1"
            assert holding(paused, unit, state=HoldingState.PAUSED) in snapshot.holdings()
            assert snapshot.progress(unit) == {PARTITION_0: Progress(10, Clock(10_000, 10_000))}
            assert snapshot.progress(MAIN) == {PARTITION_0: Progress(20, Clock(20_000, 20_000))}

    def test_a_view_that_fails_alone_stays_in_its_unit(self, store: Store) -> None:
        table = counts(version="v2")
        epoch = self.begin(store, counts(version="v1"))
        unit = self.build(store, epoch, table)
        aside = SetAside("hits", "v2", "why", HoldingState.FAILED)
        plan = planned(epoch, 2, unit=unit)
        store.commit(turn_of(plan, progress={}, set_aside=(aside,)))
        with store.open() as snapshot:
            held = next(held for held in snapshot.holdings() if held.version == "v2")
            assert (held.unit, held.state, held.reason) == (unit, HoldingState.FAILED, "why")
            assert snapshot.progress(unit) == {PARTITION_0: Progress(10, Clock(10))}

    def test_the_unit_of_a_replaced_failed_version_is_forgotten(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        aside = SetAside("hits", "v1", "why", HoldingState.FAILED)
        store.commit(turn_of(planned(epoch, 1), set_aside=(aside,)))
        unit = self.build(store, epoch, new)
        store.show(epoch, unit, [new])
        with store.open() as snapshot:
            assert snapshot.units() == {MAIN: 1}
            assert snapshot.progress("view:hits@v1") == {}
            assert snapshot.holdings() == [stream_holding(), holding(new)]

    def test_what_is_dropped_leaves_nothing_behind(self, store: Store) -> None:
        kept, gone = counts("kept"), counts("gone")
        building = counts("kept", version="v2")
        epoch = self.begin(store, kept, gone)
        counters = dict.fromkeys(VIEW_COUNTERS, 0)
        owners = {Owner("view", name, "v1"): counters for name in ("kept", "gone")}
        store.commit(turn_of(planned(epoch, 1), counters=owners))
        unit = self.build(store, epoch, building)
        store.drop(epoch, [holding(gone), holding(building, unit)])
        with store.open() as snapshot:
            assert snapshot.holdings() == [stream_holding(), holding(kept)]
            assert set(totals_of(snapshot.counters())) == {Owner("view", "kept", "v1")}
            assert set(snapshot.state_rows()) == {"kept__v1"}
            assert snapshot.units() == {MAIN: 1}
            assert snapshot.query("SELECT * FROM kept").num_rows == 0
            with pytest.raises(QueryRefused, match="gone"):
                snapshot.query("SELECT * FROM gone")

    # Queries from outside.

    def test_a_query_only_reads(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        store.commit(turn_of(planned(epoch, 1), {table: (delta(table, ("a", 1, 1, 1, 1)),)}))
        for sql in (
            "DELETE FROM hits",
            "INSERT INTO hits VALUES (1)",
            "CREATE TABLE t (a INT)",
            "DROP VIEW hits",
            "SELECT 1; SELECT 2",
            "",
            "not SQL",
        ):
            with store.open() as snapshot, pytest.raises(QueryRefused):
                snapshot.query(sql)
        assert read(store, table) == [("a", 1, 1, 1, 1)]

    def test_a_query_is_limited_in_rows(self, store: Store) -> None:
        many = "SELECT * FROM generate_series(1, 100000) AS s(n)"
        with store.open() as snapshot:
            with pytest.raises(QueryRefused, match="more than 10 rows; add LIMIT 10"):
                snapshot.query(many, max_rows=10)
            assert snapshot.query(f"{many} LIMIT 10", max_rows=10).num_rows == 10
            assert snapshot.query(many, max_rows=None).num_rows == 100_000

    def test_a_query_is_limited_in_time_and_the_next_one_is_answered(self, store: Store) -> None:
        endless = (
            "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000)"
        )
        with store.open() as snapshot:
            begin = time.monotonic()
            with pytest.raises(QueryRefused, match=r"took more than 0\.2 seconds"):
                snapshot.query(endless, max_seconds=0.2)
            assert time.monotonic() - begin < 5
        with store.open() as snapshot:
            assert snapshot.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]
