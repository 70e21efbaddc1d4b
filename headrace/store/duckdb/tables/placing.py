"""Where rows stand in DuckDB: what every `Placement` means to those who merge, read and tell rows.

One class for each placement; no other file asks which kind of window a view has. Times are in
microseconds where they are numbers. `watermark` is SQL for W as a TIMESTAMPTZ.
"""

# ruff: noqa: ARG002 (what one placement has to know of a row, another one does not)

from collections.abc import Mapping, Sequence
from functools import singledispatch
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.windows import DAY_US
from headrace.plan.tables import Table
from headrace.store.duckdb.tables.cutting import edge_time, floor, last_window, window_end
from headrace.store.duckdb.tables.names import GROUP, physical, quote
from headrace.store.duckdb.tables.near import near_rows
from headrace.store.duckdb.tables.panes import window_keys, windows_of_panes
from headrace.store.duckdb.tables.running import windows_among
from headrace.time.placement import (
    Forever,
    InPanes,
    InSession,
    InWindow,
    OfRecord,
    Placement,
)

__all__ = ["Near", "Placing", "placing_of"]

#: From when to when: what the rows of a delta reach, the gap around them included.
Span = tuple[int, int]
#: The least and the greatest of some keys, as texts.
Reach = tuple[str, str]


class Near(NamedTuple):
    """A test for rows, and the values of its parameters: the text is the same in every turn.

    With `low` alone it holds for all rows from some time on. `leaving` is a test for rows that are
    gone after the turn.
    """

    test: str
    values: Mapping[str, int] = MappingProxyType({})
    leaving: "Near | None" = None

    @property
    def whole(self) -> "Near":
        """The test for both."""
        if self.leaving is None:
            return self
        either = f"({self.test} OR {self.leaving.test})"
        return Near(either, {**self.values, **self.leaving.values})

    @property
    def is_open(self) -> bool:
        """Whether it holds for all rows that are still to come, too."""
        return "high" not in self.values and self.test != NOWHERE.test

    def covers(self, other: "Near") -> bool:
        """Whether it surely holds for every row that the other one holds for, now or later."""
        if self.test != other.test or not self.is_open or other.leaving is not None:
            return False
        return self.values.get("low", 0) <= other.values.get("low", 0)


#: No row is near.
NOWHERE = Near("false")


class Placing:
    """Rows that are there for ever; what is placed in time says otherwise below."""

    #: Whether items of a group may stand in several rows, and are put together when read.
    combines_items = False
    #: Whether a delta's rows are pieces, which become rows only together with those around them.
    chains = False
    #: The key that grows with the log: by a range of it DuckDB skips the rows of other times.
    growing: str | None = None

    @property
    def references(self) -> Mapping[str, str]:
        """SQL for the edges of a row's window, by the planner's names."""
        return {}

    def source(self, table: Table) -> str:
        """Return what the rows that readers see are read from."""
        return physical(table.name)

    def source_among(self, table: Table, among: str, reach: Reach | None) -> str:
        """Return the rows of the source whose keys are in a table `among` (touching.py).

        `reach` has the least and the greatest of the keys that grow; None: this placement has none.
        """
        rows = self.source(table)
        if reach is not None:
            low, high = reach
            rows = f"(SELECT * FROM {rows} WHERE {self.growing} BETWEEN '{low}' AND '{high}')"
        keys = enumerate(self.keys(table))
        matches = [f"s.{quote(key)} IS NOT DISTINCT FROM x.__r{at}" for at, key in keys]
        on = " AND ".join(matches) or "true"
        return f"(SELECT s.* FROM {rows} AS s SEMI JOIN {among} AS x ON {on})"

    def all_keys(self, table: Table) -> str:
        """Return a relation of the keys of all rows of the source; it may have more columns."""
        return self.source(table)

    def ending(self, table: Table, before_us: int, after_us: int) -> str | None:
        """Return the same of the rows whose windows end in `(before, after]`; None: none does."""
        test = self.closing(before_us, after_us)
        return None if test is None else f"(SELECT * FROM {self.source(table)} WHERE {test})"

    def keys(self, table: Table) -> tuple[str, ...]:
        """Return the columns of the source that tell rows apart."""
        return tuple(column.name for column in table.groups)

    def touched(self, table: Table, delta: str, span: Span) -> str:
        """Return a query for the keys of the rows that a delta changes."""
        return f"SELECT DISTINCT {', '.join(self.keys(table)) or '1 AS __all'} FROM {delta}"

    def near(
        self, delta: pa.Table | None, closing: Span | None, leaving: Span | None
    ) -> Near | None:
        """Return a test for rows near those that a delta changes, or that close.

        Windows end in `(before, after]` of `closing`, and of `leaving` where their rows leave. It
        holds for all of these, for what is later, and, where windows are alike, for few others. In
        terms of columns that grow: DuckDB skips the rows of other times. None: there is no such
        test.
        """
        return NOWHERE if delta is None else Near("true")

    def closed(self, watermark: str) -> str:
        """Return the test whether a row is closed."""
        return "false"

    def closing(self, before_us: int, after_us: int) -> str | None:
        """Return the test for rows whose windows end in `(before, after]`; None: none closes."""
        return None

    def last_end(self) -> str | None:
        """Return when the last window of the physical table ends, as an aggregate over it."""
        return None

    def expired(self, left_us: int) -> str:
        """Return the test for rows whose last window ended at or before that time."""
        raise NotImplementedError  # such rows have no retention

    def items_expired(self, main: Table, items: Table, left_us: int) -> str:
        """Return the same test for rows of items, after the view's own rows have left."""
        return self.expired(left_us)

    def item_matches(self) -> list[str]:
        """Return the tests whether an item `i` is one of the row called `GROUP`."""
        return []


class _Records(Placing):
    growing = "__offset"

    def keys(self, table: Table) -> tuple[str, ...]:
        return tuple(column.name for column in table.keys)

    def touched(self, table: Table, delta: str, span: Span) -> str:
        return f"SELECT {', '.join(self.keys(table))} FROM {delta}"

    def near(
        self, delta: pa.Table | None, closing: Span | None, leaving: Span | None
    ) -> Near | None:
        if delta is None:
            return NOWHERE
        low, high = _bounds(delta, self.growing)
        return Near(f"{self.growing} BETWEEN $low AND $high", {"low": low, "high": high})

    def closed(self, watermark: str) -> str:
        return "true"


class _Timed(Placing):
    """Rows with a window; `growing` is where it begins."""

    growing: str = "window_start"

    @property
    def references(self) -> Mapping[str, str]:
        end = self._end()
        return {
            "window_start": self._start(),
            "window_end": end,
            "window_time": f"{end} - to_microseconds(1)",
        }

    def keys(self, table: Table) -> tuple[str, ...]:
        return (self.growing, *super().keys(table))

    def closed(self, watermark: str) -> str:
        return f"coalesce({self._end()} <= {watermark}, false)"

    def closing(self, before_us: int, after_us: int) -> str | None:
        # In terms of a column itself, where that is possible: DuckDB skips the row groups of other
        # times.
        column, shift = self._closing_column()
        edges = [f"make_timestamptz({edge} - {shift})" for edge in (before_us, after_us)]
        return f"({column} > {edges[0]} AND {column} <= {edges[1]})"

    def _start(self) -> str:
        return "window_start"

    def _end(self) -> str:
        return "window_end"

    def _closing_column(self) -> tuple[str, int]:
        return self._end(), 0


class _Windows(_Timed):
    def __init__(self, placement: InWindow) -> None:
        self._cut = placement.window
        self._size_us = placement.window.size
        self._keeps_ends = placement.window.zone is not None

    def ending(self, table: Table, before_us: int, after_us: int) -> str | None:
        # Most turns are shorter than a window: that none ends costs no statement then.
        first, last = self._cut.ending(before_us, after_us)
        return None if first > last else super().ending(table, before_us, after_us)

    def near(
        self, delta: pa.Table | None, closing: Span | None, leaving: Span | None
    ) -> Near | None:
        if self._keeps_ends and (closing or leaving):
            return None  # where such a window begins is no arithmetic
        first = [] if delta is None else [_least(delta, "window_start")]
        return _later("window_start", first, closing, leaving, self._size_us)

    def _end(self) -> str:
        return (
            "window_end" if self._keeps_ends else f"window_start + to_microseconds({self._size_us})"
        )

    def _closing_column(self) -> tuple[str, int]:
        return super()._closing_column() if self._keeps_ends else ("window_start", self._size_us)

    def last_end(self) -> str:
        if self._keeps_ends:
            return "epoch_us(max(window_end))"
        return f"epoch_us(max(window_start)) + {self._size_us}"

    def expired(self, left_us: int) -> str:
        if self._keeps_ends:
            return f"window_end <= make_timestamptz({left_us})"
        return f"window_start <= make_timestamptz({left_us - self._size_us})"

    def item_matches(self) -> list[str]:
        return [f"i.window_start IS NOT DISTINCT FROM {GROUP}.window_start"]


class _Panes(_Timed):
    combines_items = True
    growing = "number"

    def near(
        self, delta: pa.Table | None, closing: Span | None, leaving: Span | None
    ) -> Near | None:
        return None  # rows are made of panes, and which ones is not for a test to say

    def __init__(self, placement: InPanes) -> None:
        self._cut = placement.window

    def source(self, table: Table) -> str:
        return windows_of_panes(self._cut, table)

    def source_among(self, table: Table, among: str, reach: Reach | None) -> str:
        assert reach is not None
        low, high = reach
        return windows_among(self._cut, table, among, (int(low), int(high)))

    def all_keys(self, table: Table) -> str:
        return window_keys(self._cut, table)

    def ending(self, table: Table, before_us: int, after_us: int) -> str | None:
        first, last = self._cut.ending(before_us, after_us)
        if first > last:
            return None
        windows = window_keys(self._cut, table, (first, last))
        # Days of a time zone are not as long as the numbers above say.
        return f"(SELECT * FROM {windows} WHERE {self.closing(before_us, after_us)})"

    def touched(self, table: Table, delta: str, span: Span) -> str:
        last = last_window(self._cut, "pane")
        numbers = f"unnest(range(first_window, {last} + 1)) AS number"
        groups = [column.name for column in table.groups]
        return f"SELECT DISTINCT {', '.join([numbers, *groups])} FROM {delta}"

    def last_end(self) -> str:
        last = window_end(self._cut, last_window(self._cut, "max(pane)"))
        return f"epoch_us({edge_time(self._cut, last)})"

    def expired(self, left_us: int) -> str:
        # The first test says less, but DuckDB can answer it for whole row groups at once.
        unit = 1 if self._cut.zone is None else DAY_US
        begun = f"{left_us - self._cut.offset * unit} // {self._cut.pane * unit} + 2"
        end = edge_time(self._cut, window_end(self._cut, last_window(self._cut, "pane")))
        return f"pane <= {begun} AND {end} <= make_timestamptz({left_us})"

    def item_matches(self) -> list[str]:
        return [
            f"i.first_window <= {GROUP}.number",
            f"{last_window(self._cut, 'i.pane')} >= {GROUP}.number",
        ]


class _Sessions(_Timed):
    """A row is an interval from `first_time` to `last_time` of a group's records.

    A *piece* of a session (time/windows.py) belongs to it as a whole, so what is kept by piece
    never has to move when sessions become one: the items of a session are those of the pieces from
    its first to its last record.
    """

    combines_items = True
    chains = True
    growing = "first_time"

    def __init__(self, placement: InSession) -> None:
        self._gap_us = placement.gap_us

    def touched(self, table: Table, delta: str, span: Span) -> str:
        # A session begins where one of its parts does: a piece of the turn, or a row near one.
        near = near_rows(table, delta, span)
        selected = ", ".join(f"o.{key}" for key in self.keys(table))
        return f"{super().touched(table, delta, span)} UNION SELECT {selected} {near}"

    def near(
        self, delta: pa.Table | None, closing: Span | None, leaving: Span | None
    ) -> Near | None:
        # All that is within the gap of a piece: it becomes one with these.
        first = [] if delta is None else [_least(delta, "first_time") - self._gap_us]
        return _later("last_time", first, closing, leaving, self._gap_us)

    def last_end(self) -> str:
        return f"epoch_us(max(last_time)) + {self._gap_us}"

    def expired(self, left_us: int) -> str:
        return f"last_time <= make_timestamptz({left_us - self._gap_us})"

    def items_expired(self, main: Table, items: Table, left_us: int) -> str:
        """Return the test for items whose session has left."""
        row = quote(items.name)
        matches = [
            f"{GROUP}.{quote(group.name)} IS NOT DISTINCT FROM {row}.{quote(group.name)}"
            for group in main.groups
        ]
        matches.append(self._is_of_session(f"{row}.piece"))
        # The first test says less, but DuckDB can answer it for whole row groups at once.
        past = f"{left_us - self._gap_us} // {self._gap_us} + 1"
        return (
            f"piece <= {past} AND NOT EXISTS (FROM {physical(main.name)} AS {GROUP} "
            f"WHERE {' AND '.join(matches)})"
        )

    def item_matches(self) -> list[str]:
        return [self._is_of_session("i.piece")]

    def _is_of_session(self, piece: str) -> str:
        first, last = (
            floor(f"epoch_us({GROUP}.{time})", self._gap_us) for time in ("first_time", "last_time")
        )
        return f"{piece} BETWEEN {first} AND {last}"

    def _start(self) -> str:
        return "first_time"

    def _end(self) -> str:
        return f"last_time + to_microseconds({self._gap_us})"

    def _closing_column(self) -> tuple[str, int]:
        return "last_time", self._gap_us


def _bounds(delta: pa.Table, column: str) -> tuple[int, int]:
    """Return the least and the greatest of a column of rows, times in microseconds."""
    bounds = pc.min_max(delta[column].cast(pa.int64())).as_py()
    return bounds["min"], bounds["max"]


def _least(delta: pa.Table, column: str) -> int:
    return _bounds(delta, column)[0]


def _later(
    column: str, first: Sequence[int], closing: Span | None, leaving: Span | None, shift_us: int
) -> Near:
    """Return a test for rows from some times on, and for those that leave.

    Windows end so much after the time in the column.
    """
    gone = None
    if leaving is not None:
        before, after = leaving
        test = f"{column} BETWEEN make_timestamptz($first) AND make_timestamptz($last)"
        gone = Near(test, {"first": before + 1 - shift_us, "last": after - shift_us})
    times = [*first, *([] if closing is None else [closing[0] + 1 - shift_us])]
    if not times:
        return NOWHERE if gone is None else NOWHERE._replace(leaving=gone)
    return Near(f"{column} >= make_timestamptz($low)", {"low": min(times)}, gone)


@singledispatch
def _placing(placement: Placement) -> Placing:
    raise TypeError(f"{placement} is not a placement that DuckDB knows")


_placing.register(Forever, lambda _: Placing())
_placing.register(OfRecord, lambda _: _Records())
_placing.register(InWindow, _Windows)
_placing.register(InPanes, _Panes)
_placing.register(InSession, _Sessions)


def placing_of(table: Table) -> Placing:
    """Return what the placement of a table means here."""
    return _placing(table.placement)
