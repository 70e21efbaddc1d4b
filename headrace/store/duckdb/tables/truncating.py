"""Truncated tables: rows whose newest change stands before the truncation, in its partition."""

from collections.abc import Mapping

from headrace.plan.tables import Table
from headrace.store.duckdb.tables.names import physical, quote

__all__ = ["truncate", "truncated_rows"]


def truncated_rows(table: Table, truncates: Mapping[int, int]) -> str:
    """Return a relation of the rows that a truncation removes.

    `truncates` says by partition up to which offset.
    """
    return f"(SELECT * FROM {physical(table.name)} WHERE {_are_gone(table, truncates)})"


def truncate(table: Table, truncates: Mapping[int, int]) -> str:
    """Let the rows be gone that a truncation removes; newer changes of their keys count as ever."""
    assert table.newest is not None
    newest = quote(table.newest)
    [column] = [each for each in table.columns if each.name == table.newest]
    _, value = column.type.parts
    fields = ", ".join(
        f"{quote(name)} := " + ("true" if name == "gone" else f"({newest}).value.{quote(name)}")
        for name in value.names
    )
    return (
        f"UPDATE {physical(table.name)} SET {newest} = "
        f"struct_pack(tiebreak := ({newest}).tiebreak, value := struct_pack({fields})) "
        f"WHERE {_are_gone(table, truncates)}"
    )


def _are_gone(table: Table, truncates: Mapping[int, int]) -> str:
    assert table.newest is not None
    newest = quote(table.newest)
    tests = [
        f'({newest}).tiebreak.partition = {partition} AND ({newest}).tiebreak."offset" <= {offset}'
        for partition, offset in sorted(truncates.items())
    ]
    return f"NOT ({newest}).value.gone AND ({' OR '.join(f'({test})' for test in tests)})"
