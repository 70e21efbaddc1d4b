"""The relations that readers see, as other processes get them: columns and rows, no states."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from headrace.plan.tables import ERRORS
from headrace.store.base import PublicColumn, PublicRows, PublicTable
from headrace.store.duckdb.errors import translated
from headrace.store.duckdb.exporting import read_batches
from headrace.store.duckdb.statements import COLUMNS_QUERY
from headrace.store.duckdb.tables.names import physical, quote

__all__ = ["VALUE_BYTES", "least_bytes", "open_rows", "read_public"]

#: Bytes of a value of types that have a fixed width.
VALUE_BYTES = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "FLOAT": 4, "DATE": 4, "BIGINT": 8,
    "DOUBLE": 8, "TIMESTAMP WITH TIME ZONE": 8, "HUGEINT": 16,
}  # fmt: skip
_LEAST_BYTES = 4  # of any other value: a text has an offset at least
_BATCH_ROWS = 122_880  # a row group of DuckDB

Fetch = Callable[..., list[tuple[Any, ...]]]


def read_public(fetch: Fetch) -> tuple[PublicTable, ...]:
    """Return all relations that readers see, views and their errors, by name."""
    columns: dict[str, list[PublicColumn]] = {}
    for table, column, type in fetch(COLUMNS_QUERY):
        columns.setdefault(table, []).append(PublicColumn(column, type))
    return tuple(PublicTable(name, tuple(columns[name])) for name in sorted(columns))


def least_bytes(fetch: Fetch, table: PublicTable, columns: Sequence[str], most: int) -> int:
    """Return how many bytes columns take at least; exact counting is left out below `most`.

    Errors of a view are few, and are not counted.
    """
    types = {each.name: each.type for each in table.columns}
    width = sum(VALUE_BYTES.get(types[each], _LEAST_BYTES) for each in columns)
    shown = "SELECT version FROM headrace.shown WHERE view = ? ORDER BY since DESC LIMIT 1"
    found = [] if table.name.endswith(f".{ERRORS}") else fetch(shown, [table.name])
    if not found:
        return 0
    kept = physical(f"{table.name}__{found[0][0]}")
    # Counting the rows of a table costs nothing; those of the view have to be worked out.
    if int(fetch(f"SELECT count(*) FROM {kept}")[0][0]) * width <= most:
        return 0
    return int(fetch(f"SELECT count(*) FROM main.{quote(table.name)}")[0][0]) * width


def open_rows(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]
) -> PublicRows:
    """Return columns of a relation in batches, which are read while they are taken. StoreError."""
    names = ", ".join(map(quote, columns))
    with translated():
        relation = connection.sql(f"SELECT {names} FROM main.{quote(table)}")
        reader = relation.to_arrow_reader(_BATCH_ROWS)
    return PublicRows(reader.schema, _close_after(reader, table))


def _close_after(reader: pa.RecordBatchReader, table: str) -> Iterator[pa.RecordBatch]:
    with reader:
        yield from read_batches(reader, table)
