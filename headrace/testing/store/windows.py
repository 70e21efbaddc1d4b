"""The suite of the store about windows: panes that are combined, and rows that leave in time."""

# ruff: noqa: D102 (the name of a test is its sentence)

from typing import Any

from headrace.aggregates.words import Merge
from headrace.ledger.entries import Progress
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
    read,
    turn_of,
)
from headrace.time.clocks import NEVER, Clock
from headrace.time.placement import InPanes
from headrace.time.windows import Cut

__all__ = ["WindowContract"]

_BIGINT = parse_type("BIGINT")
_COLUMNS = (
    TableColumn("pane", _BIGINT),
    TableColumn("first_window", _BIGINT),
    TableColumn("k", parse_type("STRING")),
    TableColumn("_events", _BIGINT, Merge.COUNT),
    TableColumn("most", _BIGINT, Merge.GREATEST),
)
#: Windows of 30 microseconds, every 10: a pane is 10 long, and in three windows.
_CUT = Cut(30, 10, 0, cumulative=False, overlaps=True, zone=None)


def _panes(retention_us: int | None = None) -> Table:
    timestamp = parse_type("TIMESTAMP")
    begin = Output("begin", Reference("window_start", timestamp), timestamp)
    outputs = (begin, *outputs_of(_COLUMNS[2:]))
    placement = InPanes(_CUT)
    return Table("hits", "v1", _COLUMNS, placement, outputs=outputs, retention_us=retention_us)


def _windows(store: Store) -> list[tuple[Any, ...]]:
    with store.open() as snapshot:
        rows = snapshot.query(
            "SELECT epoch_us(begin) AS begin, k, _events, most FROM hits ORDER BY ALL"
        ).to_pylist()
    return [tuple(row.values()) for row in rows]


class WindowContract(StoreSuite):
    """Panes and retention."""

    def test_windows_are_put_together_from_panes(self, store: Store) -> None:
        table = _panes()
        epoch = self.begin(store, table)
        # A record of pane 5 is in the windows 3, 4 and 5, of pane 6 in 4, 5 and 6. One came when
        # only window 5 was open to it.
        rows = delta(table, (5, 3, "a", 2, 7), (6, 4, "a", 1, 9), (5, 5, "a", 1, 50))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
        assert _windows(store) == [
            (30, "a", 2, 7),
            (40, "a", 3, 9),
            (50, "a", 4, 50),
            (60, "a", 1, 9),
        ]
        # Keys have windows of their own, and a record far away adds only its own windows.
        rows = delta(table, (5, 3, None, 1, 1), (10**12, 10**12 - 2, "a", 1, 1))
        store.commit(turn_of(planned(epoch, 2), {table: (rows,)}))
        assert [row for row in _windows(store) if row[1] is None] == [
            (start, None, 1, 1) for start in (30, 40, 50)
        ]
        assert [row[0] for row in _windows(store) if row[0] > 60] == [
            number * 10 for number in range(10**12 - 2, 10**12 + 1)
        ]

    def test_rows_of_a_delta_with_the_same_key_are_combined(self, store: Store) -> None:
        table = _panes()
        epoch = self.begin(store, table)
        twice = delta(table, (5, 4, "a", 1, 3), (5, 4, "a", 1, 8), (5, 4, None, 1, None))
        for turn in (1, 2):
            store.commit(turn_of(planned(epoch, turn), {table: (twice, twice)}))
        assert read(store, table) == [(5, 4, "a", 8, 8), (5, 4, None, 4, None)]

    def test_rows_leave_when_w_has_passed_their_retention(self, store: Store) -> None:
        table = _panes(retention_us=100)
        epoch = self.begin(store, table)
        rows = delta(table, (5, 3, "a", 1, 1), (6, 4, "a", 1, 1))
        # The last windows of the panes end at 80 and 90, so they leave at 180 and at 190.
        clocks = [NEVER, 169, 170, 179, 180, 180, 190]
        left = []
        shown = []
        for turn, clock in enumerate(clocks, 1):
            progress = {PARTITION_0: Progress(turn, Clock(clock, clock))}
            deltas = {table: (rows,) if turn == 1 else ()}
            store.commit(turn_of(planned(epoch, turn), deltas, progress=progress))
            left.append(len(read(store, table)))
            shown.append([row[0] for row in _windows(store)])
        assert left == [2, 2, 2, 2, 1, 1, 0]
        # A window leaves by itself, also while panes of it are needed for others.
        assert shown[:3] == [[30, 40, 50, 60], [40, 50, 60], [50, 60]]
        assert shown[3:] == [[50, 60], [60], [60], []]

    def test_what_comes_and_leaves_in_one_turn_was_never_there(self, store: Store) -> None:
        table = _panes(retention_us=100)
        epoch = self.begin(store, table)
        rows = delta(table, (5, 3, "a", 1, 1), (20, 18, "a", 1, 1))
        progress = {PARTITION_0: Progress(1, Clock(250, 250))}
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}, progress=progress))
        assert read(store, table) == [(20, 18, "a", 1, 1)]

    def test_the_bytes_of_rows_are_estimated_by_their_types_and_some_values(
        self, store: Store
    ) -> None:
        table = _panes()
        epoch = self.begin(store, table)
        rows = delta(table, *((number, number, "x" * 100, 1, 1) for number in range(10)))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
        with store.open() as snapshot:
            assert snapshot.state_bytes() == {"hits__v1": 10 * (4 * 8 + 100)}
