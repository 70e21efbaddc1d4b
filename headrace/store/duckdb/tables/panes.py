"""Windows that overlap, put together from panes when they are read.

A row of the table stands for a pane and the windows from its `first_window` to the pane's last one.
So a window's row is the combination of all rows of its keys whose span holds its number. Which
windows there are is worked out first, from the spans alone: each span adds those numbers that none
before it had, so that a lonely record of the year 9999 costs nothing. A query that asks for some
windows filters that list, and only then are their panes looked up.

That is the product of windows and panes; running.py has the way for many windows of some keys.
"""

from headrace.plan.tables import Table
from headrace.store.duckdb.tables.cutting import edge_time, last_window, window_end, window_start
from headrace.store.duckdb.tables.merging import combine
from headrace.store.duckdb.tables.names import physical, quote, watermark_of
from headrace.time.windows import Cut

__all__ = ["pane_range", "window_keys", "windows_of_panes", "with_edges"]


def windows_of_panes(cut: Cut, table: Table) -> str:
    """Return a relation of windows: `number`, their edges, keys and combined states."""
    panes = physical(table.name)
    last = last_window(cut, "pane")
    keys = [quote(column.name) for column in table.groups]
    states = [
        f"{combine(column, f'p.{quote(column.name)}')} AS {quote(column.name)}"
        for column in table.values
    ]
    spans = f"SELECT DISTINCT first_window, {last} AS last_window FROM {panes}"
    # The edges are columns before the join: a filter on them goes down through GROUP BY and join,
    # which one on a function of the number would not.
    windows = with_edges(cut, table, f"({_numbers(spans, [])})")
    # The number too: sinks tell rows apart by it, and aggregates find their items.
    groups = ["w.number", "w.window_start", "w.window_end", *(f"p.{key}" for key in keys)]
    return (
        f"(SELECT {', '.join([*groups, *states])} "
        f"FROM ({windows}) w "
        f"JOIN (SELECT *, {last} AS last_window FROM {panes}) p "
        f"ON p.first_window <= w.number AND p.last_window >= w.number "
        f"GROUP BY {', '.join(groups)})"
    )


def window_keys(cut: Cut, table: Table, numbers: tuple[int, int] | None = None) -> str:
    """Return a relation of the windows there are, by number, edges and keys, without their states.

    With `numbers`, of those from the first to the second one. It costs the panes in reach.
    """
    keys = [quote(column.name) for column in table.groups]
    first, last, where = "first_window", last_window(cut, "pane"), ""
    if numbers is not None:
        first_pane, last_pane = pane_range(cut, numbers)
        first, last = f"greatest(first_window, {numbers[0]})", f"least({last}, {numbers[1]})"
        where = f" WHERE pane BETWEEN {first_pane} AND {last_pane} AND first_window <= {numbers[1]}"
    selected = ", ".join([*keys, f"{first} AS first_window", f"{last} AS last_window"])
    spans = f"SELECT DISTINCT {selected} FROM {physical(table.name)}{where}"
    return f"({with_edges(cut, table, f'({_numbers(spans, keys)})')})"


def with_edges(cut: Cut, table: Table, windows: str) -> str:
    """Return windows with their edges, without those that have left; they have a `number`."""
    start, end = (edge_time(cut, edge(cut, "number")) for edge in (window_start, window_end))
    edges = f"SELECT *, {start} AS window_start, {end} AS window_end FROM {windows}"
    if table.retention_us is None:
        return edges
    # Of a pane that is still there the first windows may have left.
    left = f"{watermark_of(table.view, table.version)} - to_microseconds({table.retention_us})"
    return f"SELECT * FROM ({edges}) WHERE NOT coalesce(window_end <= {left}, false)"


def pane_range(cut: Cut, numbers: tuple[int, int]) -> tuple[int, int]:
    """Return the first and the last pane of the windows from one number to another."""
    first, last = numbers
    if cut.cumulative:
        steps = cut.size // cut.hop
        return (first - 1) // steps * steps, last - 1
    return first * (cut.hop // cut.pane), last * (cut.hop // cut.pane) + cut.size // cut.pane - 1


def _numbers(spans: str, keys: list[str]) -> str:
    """Return the numbers within spans, each once for its keys."""
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    before = (
        f"max(last_window) OVER ({partition}ORDER BY first_window, last_window "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    fresh = (
        f"SELECT *, greatest(first_window, coalesce({before} + 1, first_window)) AS fresh "
        f"FROM ({spans})"
    )
    numbers = "unnest(range(fresh, last_window + 1)) AS number"
    return f"SELECT {', '.join([numbers, *keys])} FROM ({fresh})"
