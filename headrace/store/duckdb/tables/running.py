"""Windows that a turn touches, put together from panes by running merges.

To look up each window's panes costs their product: with 24 hours every minute, 1,440 panes for each
of the 1,440 windows of a record. Here the cost is the sum of the two.

A row of the table stands for the windows `[first_window, last]`, `widest` of them at most. Windows
are cut into blocks of `widest` numbers, so such a span ends with its block, begins with it, or
crosses one border. The part before the border counts for all windows from `first_window` on: a
running merge over the block, side 0. The part behind it counts for all up to `last`: a running
merge backwards, side 1. A span that lies within a block touching neither end is of records that
were late for some windows. Such a block is halved until a border falls into the span, and the
halves are blocks as well, of that `width`.

Promises:
- The states of a window depend on its own rows only, to the last digit of a DOUBLE: not on which
  other windows or keys are asked for, and not on threads. What is retracted equals what was told.
- Every merge is in the order of windows and panes, and never takes back what was added.
Not promised: the last digits that `windows_of_panes` shows, which adds up as the store likes.

A running merge within a block is one within a *cell* of 16 places, behind what comes before the
cell, which is found in the same way from the merged cells. DuckDB adds up to 16 rows of a window
function one after the other; more of them are added in a tree whose shape depends on other rows.
"""

from collections.abc import Sequence
from dataclasses import replace

from headrace.aggregates.words import Merge
from headrace.plan.tables import EVENTS, Table
from headrace.store.duckdb.tables.cutting import floor, last_window
from headrace.store.duckdb.tables.merging import combine, merge
from headrace.store.duckdb.tables.names import physical, quote
from headrace.store.duckdb.tables.panes import pane_range, with_edges
from headrace.time.windows import Cut

__all__ = ["windows_among"]

_CELL = 16
_PLACE = "__who, __side, __width, __block"
_ENTRY = "__who, __side, __width, __number"


def windows_among(cut: Cut, table: Table, among: str, numbers: tuple[int, int]) -> str:
    """Return the rows of `windows_of_panes` whose numbers and keys are in the table `among`.

    `numbers` are the least and the greatest number there.
    """
    widest = -(-cut.size // cut.hop)
    parts = {
        "__keys": _keys(table, among),
        "__spans": _spans(cut, table, numbers, widest),
        "__pieces": _pieces(table),
        "__entries": f"(FROM __pieces UNION ALL BY NAME {_asked(table, among)})",
        "__lone": f"({_entries_merged(table, 'FROM __entries')})",
        "__crowded": f"({_crowded(table)})",
        "__spots": _spots(widest),
        "__run0": _run(table, "__spots", ["__s"], "__number, __asked, "),
    }
    depth = 1
    while _CELL**depth < widest:
        cells = (
            f"SELECT {_PLACE}, __spot // {_CELL} AS __spot, {', '.join(_states(table))} "
            f"FROM __run{depth - 1} WHERE __is_last"
        )
        parts[f"__run{depth}"] = _run(table, f"({cells})", ["__s", "__b"])
        depth += 1
    for level in range(depth - 2, 0, -1):
        # What comes before a cell: before the cell of cells that it is in, and within that.
        merged = _merged(table, "o.__b{}", "i.__b{}", "__b{}")
        outer = _outer(level + 1, depth)
        parts[f"__run{level}_"] = f"(SELECT i.* REPLACE ({merged}) FROM __run{level} i {outer})"
    found = "SELECT * FROM __run0 WHERE __asked"
    if depth > 1:
        merged = _merged(table, "o.__b{}", "i.__s{}", "__s{}")
        found = f"SELECT i.* REPLACE ({merged}) FROM ({found}) i {_outer(1, depth)}"
    parts["__found"] = f"({found})"
    parts["__windows"] = f"({_windows(table, widest)})"
    selected = ["number", "window_start", "window_end"]
    selected += [quote(column.name) for column in (*table.groups, *table.values)]
    texts = ", ".join(f"{name} AS {text}" for name, text in parts.items())
    windows = with_edges(cut, table, "__windows")
    return f"(WITH {texts} SELECT {', '.join(selected)} FROM ({windows}) JOIN __keys USING (__who))"


def _states(table: Table) -> list[str]:
    return [f"__s{at}" for at in range(len(table.values))]


def _keys(table: Table, among: str) -> str:
    """Return the keys that are asked for, each with a number that stands for them below."""
    if not table.groups:
        return "(SELECT 1 AS __who)"
    keys = [f"__r{at} AS {quote(key.name)}" for at, key in enumerate(table.groups, 1)]
    distinct = f"SELECT DISTINCT {', '.join(keys)} FROM {among}"
    return f"MATERIALIZED (SELECT *, row_number() OVER () AS __who FROM ({distinct}))"


def _spans(cut: Cut, table: Table, numbers: tuple[int, int], widest: int) -> str:
    """Return the rows of those keys that windows in reach are made of, and where they are cut."""
    states = [f"p.{quote(column.name)} AS __s{at}" for at, column in enumerate(table.values)]
    matches = [f"p.{key} IS NOT DISTINCT FROM w.{key}" for key in _group_names(table)]
    first_pane, last_pane = pane_range(cut, numbers)
    rows = (
        f"SELECT w.__who, p.pane, p.first_window, {last_window(cut, 'p.pane')} AS __last, "
        f"{floor('(p.first_window - 1)', widest)} AS __first_block, {', '.join(states)} "
        f"FROM {physical(table.name)} AS p JOIN __keys AS w ON {' AND '.join(matches) or 'true'} "
        f"WHERE p.pane BETWEEN {first_pane} AND {last_pane} AND p.first_window <= {numbers[1]}"
    )
    # Places within the blocks of the first and of the last window.
    placed = (
        f"SELECT *, first_window - 1 - __first_block * {widest} AS __p, "
        f"(__last - 1) - {floor('(__last - 1)', widest)} * {widest} AS __q, "
        f"__first_block <> {floor('(__last - 1)', widest)} AS __crosses FROM ({rows})"
    )
    end = widest - 1
    return (
        f"(SELECT *, CASE WHEN __crosses OR __p = 0 OR __q = {end} THEN {widest} "
        f"WHEN __p = __q THEN 1 ELSE 1 << CAST(floor(log2(xor(__p, __q))) AS INT) END AS __width, "
        f"__crosses OR __p <> 0 OR __q = {end} AS __forward, "
        f"__crosses OR (__q <> {end} AND (__p = 0 OR __p <> __q)) AS __backward FROM ({placed}))"
    )


def _pieces(table: Table) -> str:
    """Return every span as what it adds to running merges: from a window on, or up to one."""
    sides = [("first_window", "__forward"), ("__last", "__backward")]
    texts = [
        f"SELECT __who, {side} AS __side, __width, {number} AS __number, pane, first_window, "
        f"{', '.join(_states(table))} FROM __spans WHERE {test}"
        for side, (number, test) in enumerate(sides)
    ]
    return f"({' UNION ALL '.join(texts)})"


def _asked(table: Table, among: str) -> str:
    """Return a row for each window that is asked for and each running merge that it is part of."""
    matches = [
        f"a.__r{at} IS NOT DISTINCT FROM w.{key}" for at, key in enumerate(_group_names(table), 1)
    ]
    return (
        f"SELECT __who, __side, __width, a.__r0 AS __number, true AS __asked FROM {among} AS a "
        f"JOIN __keys AS w ON {' AND '.join(matches) or 'true'} "
        f"JOIN (SELECT DISTINCT __who, __side, __width FROM __pieces) USING (__who)"
    )


def _entries_merged(table: Table, entries: str, order: str = "") -> str:
    """Return pieces and what is asked for, one row for each window and running merge."""
    states = [
        f"{combine(column, f'__s{at}', order=order)} AS __s{at}"
        for at, column in enumerate(table.values)
    ]
    return (
        f"SELECT {_ENTRY}, coalesce(bool_or(__asked), false) AS __asked, count(pane) AS __count, "
        f"{', '.join(states)} {entries} GROUP BY {_ENTRY}"
    )


def _crowded(table: Table) -> str:
    """Return those of them that more than one piece makes, merged in order.

    Few do, and to have DuckDB order what it merges took four times as long (1.44 million windows).
    """
    crowded = f"SELECT {_ENTRY} FROM __lone WHERE __count > 1"
    entries = f"FROM __entries SEMI JOIN ({crowded}) USING ({_ENTRY})"
    return _entries_merged(table, entries, order="pane, first_window")


def _spots(widest: int) -> str:
    """Return all of them with their places in running merges."""
    spots = "FROM __lone WHERE __count <= 1 UNION ALL FROM __crowded"
    blocks = f"{floor('(__number - 1)', widest)} * {widest}"
    placed = f"SELECT *, {blocks} AS __start, __number - 1 - {blocks} AS __p FROM ({spots})"
    return (
        f"(SELECT *, __start + __p // __width AS __block, CASE __side WHEN 0 THEN __p % __width "
        f"ELSE __width - 1 - __p % __width END AS __spot FROM ({placed}))"
    )


def _run(table: Table, source: str, wanted: Sequence[str], others: str = "") -> str:
    """Return running merges within cells: up to each row, `__s0`..., and before it, `__b0`..."""
    cell = f"PARTITION BY {_PLACE}, __spot // {_CELL} ORDER BY __spot"
    frames = {
        "__s": f"{cell} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "__b": f"{cell} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    }
    states = [
        f"{combine(column, f'__s{at}', over=frames[name])} AS {name}{at}"
        for name in wanted
        for at, column in enumerate(table.values)
    ]
    return (
        f"(SELECT {_PLACE}, __spot, {others}lead(1) OVER ({cell}) IS NULL AS __is_last, "
        f"{', '.join(states)} FROM {source})"
    )


def _merged(table: Table, old: str, new: str, name: str) -> str:
    texts: list[str] = []
    for at, column in enumerate(table.values):
        # A count is never NULL in a table, but here where there is nothing to count: as a sum is.
        sparse = replace(column, merge=Merge.ADD) if column.merge is Merge.COUNT else column
        texts.append(f"{merge(sparse, old.format(at), new.format(at))} AS {name.format(at)}")
    return ", ".join(texts)


def _outer(level: int, depth: int) -> str:
    """Return the join of rows `i` with the cells `o` of a level that they are in."""
    name = f"__run{level}" + ("" if level == depth - 1 else "_")
    same = " AND ".join(f"i.{column} = o.{column}" for column in _PLACE.split(", "))
    return f"LEFT JOIN {name} o ON {same} AND o.__spot = i.__spot // {_CELL}"


def _windows(table: Table, widest: int) -> str:
    """Return the windows that have rows, both sides and all widths put together."""
    inner = [
        f"{combine(column, f'__s{at}', order='__width, __side')} AS __s{at}"
        for at, column in enumerate(table.values)
    ]
    states = ", ".join(_states(table))
    ways = (
        f"SELECT __who, __number, __side AS __way, {states} FROM __found WHERE __width = {widest} "
        f"UNION ALL SELECT __who, __number, 2, {', '.join(inner)} FROM __found "
        f"WHERE __width <> {widest} GROUP BY __who, __number"
    )
    # One row of each: what is merged here comes in a fixed order too.
    each = [
        f"any_value(__s{at}) FILTER (WHERE __way = {way}) AS __w{way}_{at}"
        for at in range(len(table.values))
        for way in range(3)
    ]
    windows = f"SELECT __who, __number AS number, {', '.join(each)} FROM ({ways}) GROUP BY ALL"
    sides = _merged(table, "__w0_{}", "__w1_{}", "__s{}")
    windows = f"SELECT *, {sides} FROM ({windows})"
    windows = (
        f"SELECT __who, number, {_merged(table, '__s{}', '__w2_{}', '__s{}')} FROM ({windows})"
    )
    named = [f"__s{at} AS {quote(column.name)}" for at, column in enumerate(table.values)]
    # Every row of a table counts its records, so where none is counted there is no row.
    [events] = [at for at, column in enumerate(table.values) if column.name == EVENTS]
    return (
        f"SELECT __who, number, {', '.join(named)} FROM ({windows}) WHERE __s{events} IS NOT NULL"
    )


def _group_names(table: Table) -> list[str]:
    return [quote(column.name) for column in table.groups]
