"""The rows of sessions that pieces of a turn may become one with."""

from headrace.plan.tables import Table
from headrace.store.duckdb.tables.names import physical, quote

__all__ = ["near_rows"]


def near_rows(table: Table, delta: str, span: tuple[int, int]) -> str:
    """Return a FROM clause of the rows `o` that pieces of a delta may be part of.

    Those of the pieces' groups, not more than the gap outside of the time that their group's pieces
    span. `span` is what all pieces span and the gap around it, in microseconds: as literals, it
    lets DuckDB skip the row groups of other times.
    """
    gap_us = table.placement.gap_us
    groups = [quote(column.name) for column in table.groups]
    spans = (
        f"SELECT {', '.join([*groups, ''])}epoch_us(min(first_time)) - {gap_us} AS __low, "
        f"epoch_us(max(last_time)) + {gap_us} AS __high FROM {delta}"
        + (f" GROUP BY {', '.join(groups)}" if groups else "")
    )
    matches = [f"o.{group} IS NOT DISTINCT FROM n.{group}" for group in groups]
    matches += ["epoch_us(o.last_time) >= n.__low", "epoch_us(o.first_time) <= n.__high"]
    low_us, high_us = span
    return (
        f"FROM {physical(table.name)} AS o JOIN ({spans}) AS n ON {' AND '.join(matches)} "
        f"WHERE o.last_time >= make_timestamptz({low_us}) "
        f"AND o.first_time <= make_timestamptz({high_us})"
    )
