"""How much a store holds: rows and bytes of every version's tables, and rows that fail."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from headrace.model.table_views import GREATEST_PARTITION_CALL, LEAST_PARTITION_CALL
from headrace.plan.tables import ERRORS
from headrace.store.duckdb.public import VALUE_BYTES
from headrace.store.duckdb.tables.names import physical, quote

__all__ = ["count_errors", "count_scattered", "count_state", "estimate_bytes"]

_SAMPLE_ROWS = 1_000

Fetch: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


def count_state(fetch: Fetch) -> dict[str, int]:
    """Return how many rows every version has in its physical tables, items too."""
    rows: dict[str, int] = {}
    for _, version, count in _physical_tables(fetch):
        rows[version] = rows.get(version, 0) + count
    return rows


def count_errors(fetch: Fetch, tables: Collection[str]) -> dict[str, int]:
    """Return how many rows the errors have of some versions, by the names of their tables."""
    wanted = {f"{table}__{ERRORS}": table for table in tables}
    views = fetch("SELECT view_name FROM duckdb_views() WHERE schema_name = 'headrace'")
    return {
        wanted[name]: int(fetch(f"SELECT count(*) FROM {physical(name)}")[0][0])
        for (name,) in views
        if name in wanted
    }


def count_scattered(fetch: Fetch, tables: Collection[str]) -> dict[str, int]:
    """Return of some tables how many keys have changes in several partitions, by table."""
    there = {version for _, version, _ in _physical_tables(fetch)} if tables else set()
    least, greatest = (f"a{call}_0" for call in (LEAST_PARTITION_CALL, GREATEST_PARTITION_CALL))
    return {
        name: int(fetch(f"SELECT count(*) FROM {physical(name)} WHERE {least} <> {greatest}")[0][0])
        for name in tables
        if name in there
    }


def estimate_bytes(fetch: Fetch) -> dict[str, int]:
    """Return about how many bytes the rows hold, before the store compresses them."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, column, type in fetch(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE schema_name = 'headrace'"
    ):
        columns.setdefault(table, []).append((column, type))
    held: dict[str, int] = {}
    for name, version, count in _physical_tables(fetch):
        size = int(count * _row_bytes(fetch, name, columns[name]))
        held[version] = held.get(version, 0) + size
    return held


def _physical_tables(fetch: Fetch) -> list[tuple[str, str, int]]:
    """Return the physical tables of every version, items too: name, version's name, rows."""
    names = fetch(
        "SELECT table_name, regexp_replace(table_name, '__items_a[0-9]+$', '') AS version "
        "FROM duckdb_tables() WHERE schema_name = 'headrace' "
        "AND version IN (SELECT name || '__' || version FROM headrace.holdings)"
    )
    return [
        (name, version, int(fetch(f"SELECT count(*) FROM {physical(name)}")[0][0]))
        for name, version in names
    ]


def _row_bytes(fetch: Fetch, table: str, columns: Sequence[tuple[str, str]]) -> float:
    # A DECIMAL of more than 18 digits takes 16, and is taken for all of them.
    fixed = sum(VALUE_BYTES.get(type, 16) for _, type in columns if _is_fixed(type))
    texts = [
        f"coalesce(strlen(CAST({quote(name)} AS VARCHAR)), 0)"
        for name, type in columns
        if not _is_fixed(type)
    ]
    if not texts:
        return float(fixed)
    sample = f"(FROM {physical(table)} LIMIT {_SAMPLE_ROWS})"
    average = fetch(f"SELECT avg({' + '.join(texts)}) FROM {sample}")[0][0]
    return float(fixed + (average or 0))


def _is_fixed(type: str) -> bool:
    return type in VALUE_BYTES or (type.startswith("DECIMAL(") and not type.endswith("]"))
