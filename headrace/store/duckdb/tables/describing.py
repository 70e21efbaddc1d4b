"""What DuckDB makes of a state table, for EXPLAIN: the very text that runs."""

from headrace.plan.explain import StoreText
from headrace.plan.tables import Table
from headrace.store.duckdb.tables.merging import merge
from headrace.store.duckdb.tables.reading import live

__all__ = ["describe"]


def describe(table: Table) -> StoreText:
    """Return how the states of a table merge, and what its readers select."""
    merges = {
        column.name: merge(column, "old", "new")
        for each in (table, *table.children)
        for column in each.values
        if column.merge is not None
    }
    return StoreText(merges, live(table).select)
