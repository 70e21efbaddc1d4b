"""Find which columns of which tables a query reads, without any of their rows.

DuckDB binds the query over empty tables of the same types and says what its scans project. All of
its optimizers but the one that removes unused columns are off: the others would leave a scan of
nothing out, and work out constants.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from headrace.store.duckdb.apart.database import begin_reading, one_question, open_database
from headrace.store.duckdb.apart.failing import told_apart
from headrace.store.duckdb.query import check_query, translated_within
from headrace.store.duckdb.quoting import quote

__all__ = ["QueryPlanner"]

Columns = Sequence[tuple[str, str]]  # names and types

_KEPT = "kept"  # the schema of the empty tables, which have a number for a name
_OPTIMIZER = "unused_columns"


class QueryPlanner:
    """Plans queries over tables of which it knows the columns; none until `learn`."""

    def __init__(self) -> None:
        with open_database() as connection:
            known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        off = ",".join(name for (name,) in known if name != _OPTIMIZER)
        self._database = open_database(disabled_optimizers=off)
        self._tables: dict[str, list[str]] = {}

    def learn(self, tables: Mapping[str, Columns]) -> None:
        """Forget all tables there were, and know these."""
        run = self._database.execute
        for name in self._tables:
            run(f"DROP VIEW main.{quote(name)}")
        run(f"DROP SCHEMA IF EXISTS {_KEPT} CASCADE")
        run(f"CREATE SCHEMA {_KEPT}")
        self._tables = {}
        for number, (name, columns) in enumerate(tables.items()):
            types = ", ".join(f"{quote(column)} {type}" for column, type in columns)
            run(f'CREATE TABLE {_KEPT}."{number}" ({types})')
            run(f'CREATE VIEW main.{quote(name)} AS FROM {_KEPT}."{number}"')
            self._tables[name] = [column for column, _ in columns]

    def needs(self, sql: str, *, max_seconds: float, limit_seconds: float) -> dict[str, list[str]]:
        """Return the columns that a query reads, at least one of every table, by table.

        It takes at most `max_seconds`, which are left of `limit_seconds`.
        QueryRefused, TableNotFound: the query cannot be answered. OutOfMemory.
        """
        asked = check_query(self._database, sql)
        with (
            one_question(self._database) as session,
            translated_within(session, max_seconds, limit_seconds=limit_seconds),
            told_apart(),
        ):
            try:
                plan = session.sql(f"EXPLAIN (FORMAT json) {asked}").fetchall()[0][1]
            except duckdb.Error:
                # Once more as it was asked: the error tells the place of the fault in the text.
                session.execute("ROLLBACK")
                begin_reading(session)
                session.sql(sql)
                raise
        needed: dict[str, list[str]] = {}
        names = list(self._tables)
        for number, projected in _scans(json.loads(plan)):
            known = self._tables[names[number]]
            found = needed.setdefault(names[number], [])
            found += [each for each in known if each not in found and _is_read(each, projected)]
        # A query may count rows without a look at them.
        return {name: found or self._tables[name][-1:] for name, found in needed.items()}


def _is_read(column: str, projected: Sequence[str]) -> bool:
    # A scan may project a field of a struct alone: `s.a`.
    return any(each == column or each.startswith(f"{column}.") for each in projected)


def _scans(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each table that a plan scans, and what the scan projects."""
    for node in nodes:
        info = node.get("extra_info", {})
        _, schema, table = f"{info.get('Table', '')}..".split(".")[:3]
        if schema == _KEPT:
            projected = info.get("Projections") or []
            yield int(table.strip('"')), [projected] if isinstance(projected, str) else projected
        yield from _scans(node.get("children", []))
