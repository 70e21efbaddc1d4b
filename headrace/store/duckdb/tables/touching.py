"""Which rows of a table a turn touches: their keys, in a temporary table, before it is merged.

Such a table has the columns `__r0`, `__r1`, ... that tell rows apart.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa

from headrace.plan.tables import Table
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import quote
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.sessions import span_us

__all__ = [
    "Touched",
    "find_touched",
    "key_names",
    "keys_of",
    "measure_keys",
    "range_of",
    "same_keys",
    "source_among",
]


class Touched(NamedTuple):
    """A table of keys: its name, how many rows it has, and where the keys that grow reach.

    `reach` has the least and the greatest of them as texts; None: there are none.
    """

    name: str
    rows: int
    reach: tuple[str, str] | None


def find_touched(
    file: DuckDBFile,
    table: Table,
    deltas: Sequence[pa.Table],
    into: str,
    *,
    moved: Sequence[str] = (),
) -> Touched:
    """Make a temporary table of the keys of the rows that deltas change; some stand there twice.

    `moved` are relations of rows that change besides.
    """
    placing, keys = placing_of(table), keys_of(table)
    parts = [f"SELECT {keys} FROM {each}" for each in moved]
    with ExitStack() as held:
        if rows := [each for each in deltas if each.num_rows]:
            delta = pa.concat_tables(rows)
            span = span_us(delta, table.placement.gap_us) if placing.chains else (0, 0)
            name = held.enter_context(file.registered("__delta", delta))
            parts.append(f"SELECT {keys} FROM ({placing.touched(table, name, span)})")
        # One statement, with nothing inserted later: once DuckDB 2.0.0 has put no rows into a table
        # that a transaction made, the transaction does not see what a parallel INSERT adds to it,
        # if that is more than a row group.
        none = f"SELECT {keys} FROM {placing.source(table)} LIMIT 0"
        file.run(f"CREATE TEMP TABLE {into} AS {' UNION ALL '.join(parts) or none}")
    return measure_keys(file, table, into)


def measure_keys(file: DuckDBFile, table: Table, name: str) -> Touched:
    """Return what a table of keys holds.

    The reach is for literals in a statement: by that range DuckDB skips the rows of other times.
    """
    placing = placing_of(table)
    ends = ["NULL", "NULL"]
    if placing.growing is not None:
        at = placing.keys(table).index(placing.growing)
        ends = [f"CAST({end}(__r{at}) AS VARCHAR)" for end in ("min", "max")]
    [(rows, low, high)] = file.rows(f"SELECT count(*), {', '.join(ends)} FROM {name}")
    return Touched(name, rows, None if low is None else (low, high))


def source_among(table: Table, among: Touched) -> str:
    """Return a relation as what the rows are read from, of those whose keys a table has.

    The relation costs what these rows do, not all.
    """
    placing = placing_of(table)
    if placing.growing is not None and among.reach is None:
        return f"(SELECT * FROM {placing.source(table)} LIMIT 0)"
    return placing.source_among(table, among.name, among.reach)


def key_names(table: Table) -> list[str]:
    """Return the columns that tell rows apart."""
    return [f"__r{at}" for at in range(len(placing_of(table).keys(table)))] or ["__r"]


def keys_of(table: Table) -> str:
    """Return the selection of those columns from what the rows are read from."""
    keys = placing_of(table).keys(table)
    if not keys:
        return "1 AS __r"  # a view without keys has one row
    return ", ".join(f"{quote(key)} AS __r{at}" for at, key in enumerate(keys))


def range_of(table: Table, touched: Touched) -> str:
    """Return a WHERE clause: a literal range of time around touched rows. DuckDB skips all else."""
    growing = placing_of(table).growing
    if growing is None:
        return ""
    if touched.reach is None:
        return " WHERE false"
    low, high = touched.reach
    return f" WHERE {quote(growing)} BETWEEN '{low}' AND '{high}'"


def same_keys(one: str, other: str, keys: Sequence[str]) -> str:
    """Return the test whether rows of two tables have the same keys."""
    return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in keys)
