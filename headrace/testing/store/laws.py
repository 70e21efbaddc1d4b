"""The store's suite: the laws of the words that plans and stores share, `Merge` and `Placement`."""

# ruff: noqa: D102 (the name of a test is its sentence)

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from headrace.aggregates.words import Merge
from headrace.ledger.entries import Progress
from headrace.model.nodes import Window
from headrace.plan.tables import Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    StoreSuite,
    delta,
    outputs_of,
    planned,
    turn_of,
)
from headrace.time.clocks import NEVER, Clock
from headrace.time.placement import Forever, OfRecord, Placement, placement_of

__all__ = ["LawContract"]

_BIGINT, _TIMESTAMP = parse_type("BIGINT"), parse_type("TIMESTAMP")
_MOST = 3  # items of a list

#: For every merge: the type of a state, some states, and what they make together.
MERGES: dict[Merge, tuple[str, Sequence[Any], Any]] = {
    Merge.COUNT: ("BIGINT", [3, 0, 5, 1], 9),
    Merge.ADD: ("DECIMAL(38,2)", [Decimal("0.10"), None, Decimal("-7.25"), Decimal(4)], "-3.15"),
    Merge.ADD_SIZED: (
        "STRUCT<total: DOUBLE, size: DOUBLE>",
        [
            {"total": 1e9, "size": 1e9},
            {"total": -1e9, "size": 1e9},
            {"total": None, "size": None},
            {"total": 0.25, "size": 0.25},
        ],
        {"total": 0.25, "size": 2e9 + 0.25},
    ),
    Merge.LEAST: ("STRING", ["b", None, "a", "c"], "a"),
    Merge.GREATEST: ("STRUCT<by: INT, at: INT>", [{"by": 1, "at": 9}, None, {"by": 2, "at": 0},
                                                  {"by": 2, "at": 3}], {"by": 2, "at": 3}),
    Merge.ALL: ("BOOLEAN", [True, None, False, True], False),
    Merge.ANY: ("BOOLEAN", [False, None, False, False], False),
    Merge.BIT_AND: ("SMALLINT", [-1, None, 0b1110, 0b0111], 0b0110),
    Merge.BIT_OR: ("SMALLINT", [0b0001, None, 0b1000, -0x8000], 0b1001 - 0x8000),
    Merge.BIT_XOR: ("BIGINT", [0b0011, None, 0b0110, -1], -0b0110),
    Merge.MOMENTS: (
        "STRUCT<n: BIGINT, mean: DOUBLE, m2: DOUBLE>",
        # Of 1; of nothing; of 2 and 4; of 5: their mean is 3, their squared distances add up to 10.
        [{"n": 1, "mean": 1.0, "m2": 0.0}, None, {"n": 2, "mean": 3.0, "m2": 2.0},
         {"n": 1, "mean": 5.0, "m2": 0.0}],
        {"n": 4, "mean": 3.0, "m2": 10.0},
    ),
    Merge.POWERS: (
        "STRUCT<n: BIGINT, mean: DOUBLE, m2: DOUBLE, m3: DOUBLE, m4: DOUBLE>",
        # Of 1; of nothing; of 2 and 4; of 9: their mean is 4, their distances -3, -2, 0 and 5.
        [{"n": 1, "mean": 1.0, "m2": 0.0, "m3": 0.0, "m4": 0.0}, None,
         {"n": 2, "mean": 3.0, "m2": 2.0, "m3": 0.0, "m4": 2.0},
         {"n": 1, "mean": 9.0, "m2": 0.0, "m3": 0.0, "m4": 0.0}],
        {"n": 4, "mean": 4.0, "m2": 38.0, "m3": 90.0, "m4": 722.0},
    ),
    Merge.CO_MOMENTS: (
        "STRUCT<n: BIGINT, mean_a: DOUBLE, mean_b: DOUBLE, m2_a: DOUBLE, m2_b: DOUBLE, c2: DOUBLE>",
        # Of (1, 4); of nothing; of (2, 1) and (4, 3); of (5, 0): the means are 3 and 2.
        [{"n": 1, "mean_a": 1.0, "mean_b": 4.0, "m2_a": 0.0, "m2_b": 0.0, "c2": 0.0}, None,
         {"n": 2, "mean_a": 3.0, "mean_b": 2.0, "m2_a": 2.0, "m2_b": 2.0, "c2": 2.0},
         {"n": 1, "mean_a": 5.0, "mean_b": 0.0, "m2_a": 0.0, "m2_b": 0.0, "c2": 0.0}],
        {"n": 4, "mean_a": 3.0, "mean_b": 2.0, "m2_a": 10.0, "m2_b": 10.0, "c2": -6.0},
    ),
    Merge.LEAST_N: ("ARRAY<INT>", [[4, 8], [], [1, 9], [2]], [1, 2, 4]),
    Merge.GREATEST_N: ("ARRAY<INT>", [[8, 4], [], [9, 1], [2]], [9, 8, 4]),
}  # fmt: skip

#: For every placement in time: its window, the place of a row, and the edges of its only window.
PLACES: dict[str, tuple[Window, tuple[object, ...], int, int]] = {
    "InWindow": (Window(60), (120,), 120, 180),
    "InWindow of a zone": (Window(86_400_000_000, zone="UTC"), (0, 86_400_000_000), 0,
                           86_400_000_000),
    "InPanes": (Window(30, "hopping", 10), (5, 5), 50, 80),
    "InPanes, cumulative": (Window(30, "cumulative", 10), (5, 6), 30, 60),
    "InSession": (Window(60, "session"), (100, 130), 100, 190),
}  # fmt: skip


def _at(time_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)


def _close(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_close(found[name], value) for name, value in expected.items())
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-12)
    return bool(found == (Decimal(expected) if isinstance(found, Decimal) else expected))


def _kinds(kind: type[Placement]) -> set[str]:
    own = set() if kind.__name__.startswith("_") else {kind.__name__}
    return own.union(*(_kinds(each) for each in kind.__subclasses__()))


class LawContract(StoreSuite):
    """Merges give one answer in every order, at once or in turn; rows stand where they belong."""

    def test_every_word_is_tried(self) -> None:
        assert set(MERGES) == set(Merge)
        tried = {name.split()[0].rstrip(",") for name in PLACES} | {"Forever", "OfRecord"}
        assert tried == _kinds(Placement) - {"Placement"}

    @pytest.mark.parametrize("merge", Merge)
    def test_states_merge_in_any_order_to_the_same(self, store: Store, merge: Merge) -> None:
        type, states, expected = MERGES[merge]
        column = TableColumn("s", parse_type(type), merge, _MOST)
        columns = (TableColumn("k", parse_type("INT")), column)
        events = TableColumn("_events", _BIGINT, Merge.COUNT)
        table = Table("laws", "v1", (*columns, events), Forever(), outputs=outputs_of(columns))
        epoch = self.begin(store, table)
        # Each order is a group of its own. Every other turn brings two states at once.
        orders = list(permutations(states))
        for turn, taken in enumerate(([0], [1, 2], [3]), 1):
            deltas = [
                delta(table, *((k, order[each], 1) for k, order in enumerate(orders)))
                for each in taken
            ]
            staged = tuple(store.stage(table, each) for each in deltas)
            store.commit(turn_of(planned(epoch, turn), {table: staged}))
        with store.open() as snapshot:
            found = snapshot.states(table)["s"].to_pylist()
        assert len(found) == len(orders)
        assert [each for each in found if not _close(each, expected)] == []

    @pytest.mark.parametrize("merge", Merge)
    def test_states_that_are_put_together_when_read_are_the_same(
        self, store: Store, merge: Merge
    ) -> None:
        type, states, expected = MERGES[merge]
        window = placement_of(Window(40, "hopping", 10))
        column = TableColumn("s", parse_type(type), merge, _MOST)
        places = tuple(TableColumn(each.name, each.type) for each in window.columns)
        columns = (*places, column, TableColumn("_events", _BIGINT, Merge.COUNT))
        table = Table("laws", "v1", columns, window, outputs=outputs_of([column]))
        epoch = self.begin(store, table)
        # One state in each of the four panes of the window that begins at 30.
        rows = delta(table, *((3 + at, 3, state, 1) for at, state in enumerate(states)))
        store.commit(turn_of(planned(epoch, 1), {table: (store.stage(table, rows),)}))
        with store.open() as snapshot:
            found = snapshot.query("SELECT s FROM laws WHERE _events = 4").to_pylist()
        assert len(found) == 1
        assert _close(found[0]["s"], expected)

    @pytest.mark.parametrize("name", PLACES)
    def test_a_row_in_time_closes_with_its_window_and_leaves_after_its_retention(
        self, store: Store, name: str
    ) -> None:
        window, place, start_us, end_us = PLACES[name]
        placement, retention_us = placement_of(window), 1_000
        columns = (
            *(TableColumn(each.name, each.type, Merge.GREATEST if each.latest else None)
              for each in placement.columns),
            TableColumn("_events", _BIGINT, Merge.COUNT),
        )  # fmt: skip
        outputs = tuple(
            Output(edge, Reference(edge, _TIMESTAMP), _TIMESTAMP)
            for edge in ("window_start", "window_end", "window_time")
        )
        table = Table("laws", "v1", columns, placement, outputs=outputs, retention_us=retention_us)
        epoch = self.begin(store, table)
        values = [
            _at(value) if column.type == _TIMESTAMP and isinstance(value, int) else value
            for column, value in zip(columns, place, strict=False)
        ]
        closed = {"window_start": _at(start_us), "window_end": _at(end_us),
                  "window_time": _at(end_us - 1), "_events": 1, "_closed": True}  # fmt: skip
        seen = []
        for turn, clock in enumerate((NEVER, end_us - 1, end_us, end_us + 999, end_us + 1_000), 1):
            deltas = (delta(table, (*values, 1)),) if turn == 1 else ()
            progress = {PARTITION_0: Progress(turn, Clock(clock, clock))}
            store.commit(turn_of(planned(epoch, turn), {table: deltas}, progress=progress))
            with store.open() as snapshot:
                seen.append(snapshot.query("SELECT * FROM laws ORDER BY 1").to_pylist()[:1])
                if turn == 1:
                    assert snapshot.last_end(table) is not None
        opened = closed | {"_closed": False}
        assert seen == [[opened], [opened], [closed], [closed], []]
        with store.open() as snapshot:
            assert snapshot.states(table).num_rows == 0

    def test_a_row_of_a_record_is_closed_and_a_row_for_ever_never_is(self, store: Store) -> None:
        records = tuple(TableColumn(each.name, each.type) for each in OfRecord().columns)
        events = (TableColumn("_events", _BIGINT, Merge.COUNT),)
        tables = (
            Table("records", "v1", records, OfRecord(), outputs=outputs_of(records)),
            Table("ever", "v1", events, Forever()),
        )
        epoch = self.begin(store, *tables)
        rows: tuple[pa.Table, ...] = (delta(tables[0], (0, 7)), delta(tables[1], (1,)))
        deltas = {table: (row,) for table, row in zip(tables, rows, strict=True)}
        far = {PARTITION_0: Progress(1, Clock(10**12, 10**12))}
        store.commit(turn_of(planned(epoch, 1), deltas, progress=far))
        with store.open() as snapshot:
            assert snapshot.query("SELECT _closed FROM records").to_pylist() == [{"_closed": True}]
            assert snapshot.query("SELECT _closed FROM ever").to_pylist() == [{"_closed": False}]
            assert [snapshot.last_end(table) for table in tables] == [None, None]
