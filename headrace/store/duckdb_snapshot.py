"""One committed state of a DuckDB store, for reading: a read-only transaction.

Queries from outside go through here too: one reading statement, no file, no network, no setting
(the store locks those when it opens), with a limit of rows and of time.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from headrace.errors import QueryRefused, StoreError
from headrace.ledger.entries import (
    Counters,
    Holding,
    HoldingState,
    OutboxEntry,
    Owner,
    Progress,
    StreamPartition,
    TurnReport,
)
from headrace.log.base import Partition, Range
from headrace.plan.tables import Table
from headrace.store.base import MAX_ROWS, MAX_SECONDS
from headrace.store.duckdb_tables import physical
from headrace.time.clocks import NEVER

__all__ = ["DuckDBSnapshot"]

_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}


class DuckDBSnapshot:
    """A read-only transaction on its own connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def query(
        self, sql: str, *, max_rows: int | None = MAX_ROWS, max_seconds: float = MAX_SECONDS
    ) -> pa.Table:
        """Answer one reading statement. QueryRefused: not one, or past its limits."""
        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise QueryRefused(f"the query cannot be parsed: {error}") from error
        if len(statements) != 1 or statements[0].type not in _READING:
            raise QueryRefused(
                "only one reading statement is answered here (SELECT, FROM, WITH, VALUES, "
                "DESCRIBE, SHOW, EXPLAIN); tables change through the log only: `headrace append`"
            )
        with self._time_limit(max_seconds):
            return _read_at_most(self._connection.sql(sql).to_arrow_reader(10_000), max_rows)

    def states(self, table: Table) -> pa.Table:
        """Return the rows of a physical table: keys and merged states."""
        return self._connection.sql(f"FROM {physical(table.name)}").to_arrow_table()

    def holdings(self) -> list[Holding]:
        """Return every version and the unit that maintains it."""
        rows = self._fetch(
            "SELECT kind, name, version, unit, stream, delay_us, sql, stream_sql, state, reason "
            "FROM headrace.holdings ORDER BY kind, name, unit"
        )
        return [Holding(*row[:-2], state=HoldingState(row[-2]), reason=row[-1]) for row in rows]

    def progress(self, unit: str) -> dict[StreamPartition, Progress]:
        """Return how far a unit has read."""
        rows = self._fetch(
            "SELECT stream, partition, next_offset, clock_us FROM headrace.progress "
            "WHERE unit = ? ORDER BY stream, partition",
            [unit],
        )
        return {
            StreamPartition(stream, partition): Progress(offset, NEVER if clock is None else clock)
            for stream, partition, offset, clock in rows
        }

    def counters(self) -> dict[Owner, Counters]:
        """Return the counters of every version."""
        counters: dict[Owner, dict[str, int]] = {}
        for kind, name, version, counter, value in self._fetch("FROM headrace.counters"):
            counters.setdefault(Owner(kind, name, version), {})[counter] = value
        return dict(counters)

    def turns(self, unit: str, *, last: int = 1) -> list[TurnReport]:
        """Return the last turns of a unit, newest first."""
        rows = self._fetch(
            "SELECT unit, turn, gear, records, late, dead, milliseconds FROM headrace.turns "
            "WHERE unit = ? ORDER BY turn DESC LIMIT ?",
            [unit, last],
        )
        return [TurnReport(*row[:-1], milliseconds=json.loads(row[-1])) for row in rows]

    def units(self) -> dict[str, int]:
        """Return every unit and its last committed turn."""
        return dict(self._fetch("SELECT unit, turn FROM headrace.units ORDER BY unit"))

    def outbox(self) -> list[tuple[int, OutboxEntry]]:
        """Return what is to be published, in order, with its number."""
        query = "FROM headrace.outbox ORDER BY number"
        rows: pa.Table = self._connection.sql(query).to_arrow_table()
        entries = []
        for row in range(rows.num_rows):
            number, topic, source_topic, source_partition, producer_id = (
                rows.column(i)[row].as_py() for i in range(5)
            )
            offsets, reasons = rows.column(5)[row].values, rows.column(6)[row].values
            partition = Partition(source_topic, source_partition)
            source = Range(partition, offsets[0].as_py(), offsets[-1].as_py() + 1)
            entries.append((number, OutboxEntry(topic, source, producer_id, offsets, reasons)))
        return entries

    def outbox_records(self) -> int:
        """Return how many records wait to be published."""
        rows = self._fetch("SELECT coalesce(sum(len(offsets)), 0) FROM headrace.outbox")
        return int(rows[0][0])

    def state_rows(self) -> dict[str, int]:
        """Return the rows of every physical table."""
        return dict(
            self._fetch(
                "SELECT table_name, estimated_size FROM duckdb_tables() "
                "WHERE schema_name = 'headrace' AND contains(table_name, '__')"
            )
        )

    def _fetch(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, list(parameters)).fetchall()
        except duckdb.Error as error:
            raise StoreError(f"the ledger cannot be read: {error}") from error

    @contextmanager
    def _time_limit(self, seconds: float) -> Iterator[None]:
        expired = threading.Event()

        def interrupt() -> None:
            expired.set()
            self._connection.interrupt()

        timer = threading.Timer(seconds, interrupt)
        timer.start()
        try:
            yield
        except duckdb.Error as error:
            if expired.is_set():
                raise QueryRefused(
                    f"the query took more than {seconds:g} seconds and was ended; "
                    f"ask for less at once"
                ) from error
            raise QueryRefused(f"the query fails: {error}") from error
        finally:
            timer.cancel()


def _read_at_most(reader: pa.RecordBatchReader, max_rows: int | None) -> pa.Table:
    if max_rows is None:
        return reader.read_all()
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows > max_rows:
            raise QueryRefused(
                f"the answer has more than {max_rows} rows; add LIMIT {max_rows}, or aggregate"
            )
    return pa.Table.from_batches(batches, reader.schema)
