"""Which rows of a table a turn touches: their keys, in a temporary table, before it is merged.

Such a table has the columns `__r0`, `__r1`, ... that tell rows apart.
"""

from collections.abc import Sequence

import pyarrow as pa

from headrace.plan.tables import Table
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import quote
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.sessions import span_us

__all__ = [
    "find_touched",
    "key_names",
    "keys_of",
    "range_of",
    "same_keys",
    "source_among",
]


# A delta of fewer rows is less than a row group: what is inserted behind it is seen, too.
_SURELY_SEEN = 50_000


def find_touched(file: DuckDBFile, table: Table, deltas: Sequence[pa.Table], into: str) -> None:
    """Make a temporary table of the keys of the rows that deltas change; some stand there twice."""
    placing, keys = placing_of(table), keys_of(table)
    file.run(f"CREATE TEMP TABLE {into} AS SELECT {keys} FROM {placing.source(table)} LIMIT 0")
    largest = max((delta.num_rows for delta in deltas), default=0)
    if not 0 < largest < _SURELY_SEEN or table.placement.overlaps:
        _make_fillable(file, into)
    for delta in deltas:
        if not delta.num_rows:
            continue
        span = span_us(delta, table.placement.gap_us) if placing.chains else (0, 0)
        with file.registered("__delta", delta) as name:
            found = placing.touched(table, name, span)
            file.run(f"INSERT INTO {into} SELECT {keys} FROM ({found})")


def _make_fillable(file: DuckDBFile, name: str) -> None:
    """Let a table that a transaction made be filled in that transaction, and then read.

    Once DuckDB 2.0.0 has inserted no rows into it, by INSERT or CREATE TABLE AS, the transaction
    does not see what a parallel INSERT adds, if that is more than a row group: 122,880 rows.
    """
    if not file.rows(f"FROM {name} LIMIT 1"):
        file.run(f"INSERT INTO {name} DEFAULT VALUES")
        file.run(f"DELETE FROM {name}")


def source_among(file: DuckDBFile, table: Table, among: str) -> str:
    """Return a relation as what the rows are read from, of those whose keys a table has.

    That table is as `find_touched` makes it. The relation costs what these rows do, not all.
    """
    placing = placing_of(table)
    if placing.growing is None:
        return placing.source_among(table, among, None)
    reach = _reach(file, table, placing.growing, among)
    if reach is None:
        return f"(SELECT * FROM {placing.source(table)} LIMIT 0)"
    return placing.source_among(table, among, reach)


def _reach(file: DuckDBFile, table: Table, growing: str, among: str) -> tuple[str, str] | None:
    """Return the least and the greatest of the key that grows, as texts; None: there is no row.

    As literals in a statement: by that range DuckDB skips the rows of other times.
    """
    at = placing_of(table).keys(table).index(growing)
    ends = [f"CAST({end}(__r{at}) AS VARCHAR)" for end in ("min", "max")]
    [(low, high)] = file.rows(f"SELECT {', '.join(ends)} FROM {among}")
    return None if low is None else (low, high)


def key_names(table: Table) -> list[str]:
    """Return the columns that tell rows apart."""
    return [f"__r{at}" for at in range(len(placing_of(table).keys(table)))] or ["__r"]


def keys_of(table: Table) -> str:
    """Return the selection of those columns from what the rows are read from."""
    keys = placing_of(table).keys(table)
    if not keys:
        return "1 AS __r"  # a view without keys has one row
    return ", ".join(f"{quote(key)} AS __r{at}" for at, key in enumerate(keys))


def range_of(file: DuckDBFile, table: Table, touched: str) -> str:
    """Return a WHERE clause: a literal range of time around touched rows. DuckDB skips all else."""
    placing = placing_of(table)
    if placing.growing is None:
        return ""
    reach = _reach(file, table, placing.growing, touched)
    if reach is None:
        return " WHERE false"
    low, high = reach
    return f" WHERE {quote(placing.growing)} BETWEEN '{low}' AND '{high}'"


def same_keys(one: str, other: str, keys: Sequence[str]) -> str:
    """Return the test whether rows of two tables have the same keys."""
    return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in keys)
