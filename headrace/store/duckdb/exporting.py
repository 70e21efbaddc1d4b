"""Export the ledger, and the rows of one table, as they are in one committed state.

    an export := stream ...          Arrow IPC streams, one after the other, to the end of the file
    stream    := schema, batch ...   the schema's metadata `headrace.table` names the table

The ledger's tables come first, `engine` with the version of the schema before all others. Without
a table the whole ledger is exported that an audit compares. With one, its rows come last, before
them its errors, if it has any relation of them, and of the ledger what says which position they
stand for. An export goes to a process of the same release
and is then thrown away, so the format has no version of its own.
"""

from collections.abc import Iterator
from typing import BinaryIO

import duckdb
import pyarrow as pa

from headrace.errors import QueryRefused, StoreError
from headrace.plan.tables import ERRORS
from headrace.store.duckdb.errors import translated
from headrace.store.duckdb.tables.names import physical

__all__ = ["EXPORTED_ERRORS", "LEDGER", "NAME", "read_batches", "write_export"]

NAME = b"headrace.table"
_POSITION = ("engine", "units", "holdings", "progress")
LEDGER = (*_POSITION, "counters", "view_watermarks", "outbox", "written_rows", "written_by")
#: What the errors of an exported table are called, whichever it is.
EXPORTED_ERRORS = "exported_errors"
_BATCH_ROWS = 50_000


def write_export(
    connection: duckdb.DuckDBPyConnection, sink: BinaryIO, table: str | None = None
) -> None:
    """Write an export within the caller's transaction, in batches. QueryRefused: no such table."""
    with translated():
        for name in LEDGER if table is None else _POSITION:
            _write(connection, sink, name, f"FROM headrace.{name}")
        if table is None:
            return
        found = connection.execute(
            "FROM duckdb_tables() WHERE schema_name = 'headrace' AND table_name = ? "
            "AND regexp_replace(table_name, '__items_a[0-9]+$', '') IN "
            "(SELECT name || '__' || version FROM headrace.holdings)",
            [table],
        ).fetchall()
        if not found:
            raise QueryRefused(
                f"{table}: the store has no such table; another version may have taken its place"
            )
        errors = connection.execute(
            "FROM duckdb_views() WHERE schema_name = 'headrace' AND view_name = ?",
            [f"{table}__{ERRORS}"],
        ).fetchall()
        if errors:
            _write(connection, sink, EXPORTED_ERRORS, f"FROM {physical(f'{table}__{ERRORS}')}")
        _write(connection, sink, table, f"FROM {physical(table)}")


def _write(connection: duckdb.DuckDBPyConnection, sink: BinaryIO, name: str, sql: str) -> None:
    with connection.sql(sql).to_arrow_reader(_BATCH_ROWS) as reader:
        schema = reader.schema.with_metadata({NAME: name.encode()})
        with pa.ipc.new_stream(sink, schema) as stream:
            for batch in read_batches(reader, name):
                stream.write_batch(batch)


def read_batches(reader: pa.RecordBatchReader, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an export. StoreError: it was ended."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:  # what fails after the first batch
            raise StoreError(
                f"the export of {name} was ended: a commit needed the memory, or the store was "
                f"closed ({error}). Ask again."
            ) from error
        yield batch
