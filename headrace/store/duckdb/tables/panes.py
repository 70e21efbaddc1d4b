"""Windows that overlap, put together from panes when they are read.

A row of the table stands for a pane and the windows from its `first_window` to the pane's last one.
So a window's row is the combination of all rows of its keys whose span holds its number. Which
windows there are is worked out first, from the spans alone: each span adds those numbers that none
before it had, so that a lonely record of the year 9999 costs nothing. A query that asks for some
windows filters that list, and only then are their panes looked up.
"""

from headrace.plan.tables import Table
from headrace.store.duckdb.tables.cutting import edge_time, last_window, window_end, window_start
from headrace.store.duckdb.tables.merging import combine
from headrace.store.duckdb.tables.names import physical, quote, watermark_of
from headrace.time.windows import Cut

__all__ = ["windows_of_panes"]


def windows_of_panes(cut: Cut, table: Table) -> str:
    """Return a relation of windows: `number`, their edges, keys and combined states."""
    panes = physical(table.name)
    last = last_window(cut, "pane")
    keys = [quote(column.name) for column in table.groups]
    states = [
        f"{combine(column, f'p.{quote(column.name)}')} AS {quote(column.name)}"
        for column in table.values
    ]
    start, end = (edge_time(cut, edge(cut, "number")) for edge in (window_start, window_end))
    before = "max(last_window) OVER (ORDER BY first_window, last_window ROWS BETWEEN UNBOUNDED "
    before += "PRECEDING AND 1 PRECEDING)"
    spans = (
        f"SELECT last_window, greatest(first_window, coalesce({before} + 1, first_window)) "
        f"AS fresh "
        f"FROM (SELECT DISTINCT first_window, {last} AS last_window FROM {panes})"
    )
    numbers = f"SELECT unnest(range(fresh, last_window + 1)) AS number FROM ({spans})"
    # The edges are columns before the join: a filter on them goes down through GROUP BY and join,
    # which one on a function of the number would not.
    windows = f"SELECT number, {start} AS window_start, {end} AS window_end FROM ({numbers})"
    if table.retention_us is not None:
        # Of a pane that is still there the first windows may have left.
        left = f"{watermark_of(table.view, table.version)} - to_microseconds({table.retention_us})"
        windows = f"SELECT * FROM ({windows}) WHERE NOT coalesce(window_end <= {left}, false)"
    # The number too: sinks tell rows apart by it, and aggregates find their items.
    groups = ["w.number", "w.window_start", "w.window_end", *(f"p.{key}" for key in keys)]
    return (
        f"(SELECT {', '.join([*groups, *states])} "
        f"FROM ({windows}) w "
        f"JOIN (SELECT *, {last} AS last_window FROM {panes}) p "
        f"ON p.first_window <= w.number AND p.last_window >= w.number "
        f"GROUP BY {', '.join(groups)})"
    )
