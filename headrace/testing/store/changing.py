"""Random histories of a view, of every placement: what the suites about changes are played with.

A `History` commits turns to a store and swaps versions; `Folded` is a reader that folds changes,
and fails where one does not fit what it holds.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.aggregates.words import Merge
from headrace.ledger.entries import MAIN, HoldingState, Progress
from headrace.ledger.following import Page
from headrace.model.nodes import Window
from headrace.plan.tables import KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import Clock
from headrace.time.placement import Forever, OfRecord, Placement, placement_of

__all__ = ["PLACEMENTS", "Folded", "History", "view_rows"]

_STRING, _BIGINT, _TIMESTAMP = map(parse_type, ("STRING", "BIGINT", "TIMESTAMP"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RETENTION_US = 60

#: Windows are some ten microseconds long, so that a few turns close and end many.
PLACEMENTS: dict[str, Placement] = {
    "forever": Forever(),
    "records": OfRecord(),
    "tumbling": placement_of(Window(20)),
    "hopping": placement_of(Window(30, "hopping", 10)),
    "cumulative": placement_of(Window(30, "cumulative", 10)),
    "session": placement_of(Window(10, "session")),
}


def _at(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def table_of(kind: str, version: str, *, wide: bool = False, retention: bool = True) -> Table:
    """Return a view of one kind of placement; a `wide` one has a column more."""
    placement = PLACEMENTS[kind]
    places = [
        TableColumn(each.name, each.type, Merge.GREATEST if each.latest else None)
        for each in placement.columns
    ]
    if kind == "records":
        columns = (*places, TableColumn("o0", _STRING))
        shown = [("word", "o0", _STRING)]
        key = [("partition", "__partition", parse_type("INT")), ("offset", "__offset", _BIGINT)]
    else:
        columns = (
            *places,
            TableColumn("k", _STRING),
            TableColumn("_events", _BIGINT, Merge.COUNT),
            TableColumn("most", _BIGINT, Merge.GREATEST),
        )
        edges = [] if kind == "forever" else ["window_start", "window_end"]
        shown = [("k", "k", _STRING), ("most", "most", _BIGINT)]
        shown = [*((each, each, _TIMESTAMP) for each in edges), *shown]
        key = [("k", "k", _STRING)]
        if edges:
            ends = edges if kind == "cumulative" else edges[:1]
            key = [*((each, each, _TIMESTAMP) for each in ends), *key]
    if wide:
        shown.append(("again", shown[-1][1], shown[-1][2]))
    return Table(
        "hits",
        version,
        columns,
        placement,
        outputs=tuple(Output(name, Reference(of, type), type) for name, of, type in shown),
        key=tuple(KeyPart(name, of, type) for name, of, type in key),
        retention_us=_RETENTION_US if retention and kind not in ("forever", "records") else None,
    )


class History:
    """A view that turns change at random, and whose versions are swapped."""

    def __init__(self, store: Store, kind: str, draw: random.Random) -> None:
        self.store = store
        self.kind = kind
        self.draw = draw
        self.table = table_of(kind, "v1")
        self.epoch = store.begin_epoch()
        self._turn = 0
        self._watermark_us = self._committed_us = 0
        self._deltas: list[list[tuple[Any, ...]]] = []
        self._versions = 1
        self._replaced: Table | None = None
        held = [stream_holding(), holding(self.table)]
        store.hold(self.epoch, held, {MAIN: {PARTITION_0: Progress()}})
        store.prepare(self.table)
        store.show(self.epoch, MAIN, [self.table])

    def reopen(self, store: Store) -> None:
        """Go on with the same store, opened again."""
        self.store = store
        self.epoch = store.begin_epoch()

    @property
    def offset(self) -> int:
        """The first offset of the next turn."""
        return (self._turn + 1) * 10

    def turn(self) -> frozenset[str]:
        """Commit a turn with some rows, or none, after which W may have moved."""
        self._turn += 1
        count = self.draw.choice([0, 1, 1, 2, 5])
        rows = [self._row(number) for number in range(count)]
        if self.draw.random() < 0.6:
            self._watermark_us += self.draw.choice([1, 5, 10, 25, 150])
        return self._commit(rows, _deltas(self.table, rows))

    def add(self, rows: list[tuple[Any, ...]]) -> frozenset[str]:
        """Commit a turn with these rows, whose keys differ."""
        self._turn += 1
        return self._commit(rows, (delta(self.table, *rows),))

    def _commit(self, rows: list[tuple[Any, ...]], deltas: tuple[pa.Table, ...]) -> frozenset[str]:
        self._deltas.append(rows)
        commit = turn_of(
            planned(self.epoch, self._turn), {self.table: deltas}, progress=self._progress()
        )
        changed = self.store.commit(commit)
        self._committed_us = self._watermark_us
        return changed

    def take_back(self) -> None:
        """Forget a turn that was not committed."""
        self._turn -= 1
        self._deltas.pop()
        self._watermark_us = self._committed_us

    def _progress(self) -> dict[Any, Progress]:
        clock = Clock(self._watermark_us, self._watermark_us)
        return {PARTITION_0: Progress(self._turn * 10, clock)}

    def swap(self, *, wide: bool) -> frozenset[str]:
        """Let another version take over, which some of the turns are not part of.

        It may be the one before this one: an edit is undone.
        """
        self._versions += 1
        table = table_of(self.kind, f"v{self._versions}", wide=wide)
        if self._replaced is not None and self.draw.random() < 0.4:
            table = self._replaced
        self._replaced = self.table
        unit = f"view:hits@{table.version}"
        held = holding(table, unit, state=HoldingState.BUILDING)
        self.store.hold(self.epoch, [held], {unit: {PARTITION_0: Progress()}})
        self.store.prepare(table)
        left = [rows for rows in self._deltas if self.draw.random() < 0.8]
        turn = turn_of(
            planned(self.epoch, 1, unit=unit),
            {table: _deltas(table, [row for rows in left for row in rows])},
            progress=self._progress(),
        )
        self.store.commit(turn)
        changed = self.store.show(self.epoch, unit, [table], [self.table])
        self.table, self._deltas = table, left
        return changed

    def _row(self, number: int) -> tuple[Any, ...]:
        k, most = self.draw.choice(["a", "b", "é", None]), self.draw.randrange(5)
        rest = (k, 1, most)
        # Not older than what retention has left of: such records are late.
        time_us = self._watermark_us + self.draw.randrange(-20, 60)
        match self.kind:
            case "forever":
                return rest
            case "records":
                return (0, self._turn * 10 + number, k)
            case "tumbling":
                return (_at(time_us // 20 * 20), *rest)
            case "hopping":
                pane = time_us // 10
                return (pane, self.draw.randrange(pane - 2, pane + 1), *rest)
            case "cumulative":
                pane = time_us // 10
                last = (pane // 3 + 1) * 3
                return (pane, self.draw.randrange(pane + 1, last + 1), *rest)
        return (_at(time_us), _at(time_us + self.draw.randrange(10)), *rest)


def _deltas(table: Table, rows: list[tuple[Any, ...]]) -> tuple[pa.Table, ...]:
    """Return a delta for each row: within one, no key may stand twice."""
    return tuple(delta(table, row) for row in rows)


def view_rows(store: Store, view: str = "hits") -> Counter[str]:
    """Return the rows of a view, with whether they are closed, as texts."""
    with store.open() as snapshot:
        found = snapshot.query(f"SELECT * EXCLUDE (_events) FROM {view}", max_rows=None)
    return Counter(str(row) for row in found.to_pylist())


class Folded:
    """What a reader of changes holds."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def begin(self, rows: pa.Table) -> None:
        """Begin with all rows; they have a `_key`."""
        self._rows = {str(row.pop("_key")): row for row in rows.to_pylist()}

    def take(self, page: Page) -> None:
        """Fold the changes of a page."""
        for change in page.rows.to_pylist():
            key, sign = str(change.pop("_key")), change.pop("_sign")
            del change["_commit"]
            held = self._rows.get(key)
            if sign < 0:
                assert held == change, f"{change} leaves, and {held} is there"
                del self._rows[key]
            elif sign > 0:
                assert held is None, f"{change} comes, and {held} is there"
                self._rows[key] = change
            else:
                assert held == {**change, "_closed": False}, f"{change} is closed, {held} is there"
                assert change["_closed"]
                self._rows[key] = change

    @property
    def rows(self) -> Counter[str]:
        """The rows, as `view_rows` returns them."""
        shown = ({**row, "_closed": row["_closed"]} for row in self._rows.values())
        return Counter(str(_last(row, "_closed")) for row in shown)


def _last(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a row with one column at its end."""
    return {**{each: value for each, value in row.items() if each != name}, name: row[name]}
