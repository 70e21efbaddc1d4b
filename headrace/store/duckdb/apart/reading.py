"""Answer queries over columns that were handed over as Arrow, in memory of a fixed size.

Every table that readers see is there by name and types. Those that a query needs are views over
what was handed over. A table, or a column, that was not handed over fails the query that reads it:
`NotHandedOver`. An answer is never made of less than it should be.

A query has a session of its own that reads only, so that it leaves nothing to the next one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from headrace.store.duckdb.apart.database import one_question, open_database
from headrace.store.duckdb.apart.failing import NOT_HANDED, told_apart
from headrace.store.duckdb.query import at_most, check_query, reading, translated_within
from headrace.store.duckdb.quoting import quote

__all__ = ["HandedTables"]

Columns = Sequence[tuple[str, str]]  # names and types


class HandedTables:
    """Tables by name and types; none until `learn`. `memory_bytes` is the most for all buffers."""

    def __init__(self, *, memory_bytes: int) -> None:
        self._database = open_database(memory_limit=f"{memory_bytes}B", temp_directory="")
        self._tables: dict[str, Columns] = {}

    def learn(self, tables: Mapping[str, Columns]) -> None:
        """Forget all tables there were, and know these."""
        for name in self._tables:
            self._database.execute(f"DROP VIEW main.{quote(name)}")
        self._tables = {}
        for name, columns in tables.items():
            self._tables[name] = columns
            self._take_back(name)

    @contextmanager
    def answering(
        self,
        sql: str,
        handed: Mapping[str, pa.Table],
        *,
        max_rows: int,
        max_seconds: float,
        limit_seconds: float,
    ) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Read the answer to a query over some tables that are handed over, in batches.

        It takes at most `max_seconds`, which are left of `limit_seconds`. QueryRefused,
        TableNotFound, NotHandedOver, OutOfMemory.
        """
        check_query(self._database, sql)
        try:
            for name, rows in handed.items():
                self._hand_over(name, rows)
            with (
                one_question(self._database) as session,
                translated_within(session, max_seconds, limit_seconds=limit_seconds),
                told_apart(),
                reading(session, sql) as reader,
            ):
                yield reader.schema, at_most(reader, max_rows)
        finally:
            for name in handed:
                self._take_back(name)

    def _hand_over(self, name: str, rows: pa.Table) -> None:
        there = set(rows.column_names)
        columns = [
            f"CAST({quote(column)} AS {type}) AS {quote(column)}"
            if column in there
            else f"CAST(error('{NOT_HANDED}') AS {type}) AS {quote(column)}"
            for column, type in self._tables[name]
        ]
        relation = self._database.from_arrow(rows).project(", ".join(columns))
        relation.create_view(name, replace=True)

    def _take_back(self, name: str) -> None:
        columns = ", ".join(f"CAST(NULL AS {type}) AS {quote(n)}" for n, type in self._tables[name])
        self._database.execute(
            f"CREATE OR REPLACE VIEW main.{quote(name)} AS SELECT {columns} FROM range(1) "
            f"WHERE CAST(error('{NOT_HANDED}') AS BOOLEAN)"
        )
