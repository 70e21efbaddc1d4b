"""Compare two tables of states, key by key."""

import duckdb
import pyarrow as pa

from headrace.plan.tables import Table
from headrace.scratch import connect
from headrace.store.duckdb.tables.merging import differs, is_rounded
from headrace.store.duckdb.tables.names import quote

__all__ = ["compare_states", "is_exact"]

_SHOWN = 5
_FETCHED = 1_000


def is_exact(table: Table) -> bool:
    """Whether the same records make the same states, to the last bit, whatever the cut."""
    columns = [column for each in (table, *table.children) for column in each.values]
    return not any(map(is_rounded, columns))


def compare_states(
    table: Table,
    recorded: pa.Table | pa.RecordBatchReader,
    replayed: pa.Table | pa.RecordBatchReader,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> list[str]:
    """Return how the recorded states differ from the replayed ones, as sentences.

    Each is read once. It needs the memory that the connection has, and temporary files past that.
    """
    keys = [quote(key.name) for key in table.keys]
    matches = " AND ".join(f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in keys) or "true"
    found_apart = [
        f"({differs(column, f'a.{quote(column.name)}', f'b.{quote(column.name)}')})"
        for column in table.values
    ]
    # What Spark evaluates follows from the states: where rounding shows in them, it may in this.
    equal = " AND ".join(_same(column.name) for column in table.values) or "true"
    found_apart += [f"({equal} AND NOT {_same(each.name)})" for each in table.evaluated]
    shown: list[tuple[dict[str, object], dict[str, object]]] = []
    count = 0
    with connect() if connection is None else connection.cursor() as cursor:
        cursor.register("recorded", recorded)
        cursor.register("replayed", replayed)
        cursor.execute(
            f"WITH a AS (SELECT *, true AS __here FROM recorded), "
            f"b AS (SELECT *, true AS __here FROM replayed) "
            f"SELECT a, b FROM a FULL JOIN b ON {matches} "
            f"WHERE a.__here IS NULL OR b.__here IS NULL OR {' OR '.join(found_apart) or 'false'}"
        )
        while rows := cursor.fetchmany(_FETCHED):
            shown += rows[: _SHOWN - len(shown)]
            count += len(rows)
    differences = [f"view {table.view}: {_describe(*row)}" for row in shown]
    if count > _SHOWN:
        more = count - _SHOWN
        differ = "row differs" if more == 1 else "rows differ"
        differences.append(f"view {table.view}: {more} more {differ}")
    return differences


def _same(column: str) -> str:
    return f"(a.{quote(column)} IS NOT DISTINCT FROM b.{quote(column)})"


def _describe(recorded: dict[str, object], replayed: dict[str, object]) -> str:
    if recorded["__here"] is None:
        return f"the table lacks a row that the log makes: {_plain(replayed)}"
    if replayed["__here"] is None:
        return f"the table has a row that the log does not make: {_plain(recorded)}"
    return f"the table has {_plain(recorded)}, the log makes {_plain(replayed)}"


def _plain(row: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items() if name != "__here")
