"""Merge a turn's pieces of sessions into a table of sessions, within the caller's transaction.

A row is an interval from the first to the last record of a chain. Rows of the table are further
apart than the gap, so two of them can only become one through a piece of the turn: it is enough to
look at the rows around the pieces, group by group.

1. **Near**: the rows of the pieces' groups that are not more than the gap outside of the time that
   their group's pieces span. What all pieces span stands in the statement as literals, so that only
   the row groups of that time are read.
2. **Chain**: pieces and near rows in the order of their first times; a session begins where one is
   more than the gap after the latest of all before it. What no piece is in stays as it is.
3. **Replace**: the rows that are in a session with a piece are deleted, and the sessions inserted,
   each with the states of all its parts combined.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.plan.tables import Table
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.merging import combine
from headrace.store.duckdb.tables.names import physical, quote
from headrace.store.duckdb.tables.near import near_rows

__all__ = ["merge_sessions", "span_us"]

# All that becomes part of an added row: `__row` is the place of one that was in the table, NULL for
# a piece of the turn.
_PARTS = "temp.__session_parts"
_ADDED = "temp.__sessions_added"


def merge_sessions(file: DuckDBFile, table: Table, deltas: Sequence[pa.Table]) -> None:
    """Merge the pieces of a turn, all at once."""
    delta = pa.concat_tables(deltas)
    columns = ", ".join(quote(column.name) for column in table.columns)
    with file.registered("__delta", delta) as name:
        file.run(f"CREATE TEMP TABLE {_PARTS} AS {_chained(table, delta, name)}")
    file.run(f"CREATE TEMP TABLE {_ADDED} AS {_combined(table)}")
    file.run(
        f"DELETE FROM {physical(table.name)} WHERE rowid IN "
        f"(SELECT __row FROM {_PARTS} WHERE __row IS NOT NULL)"
    )
    file.run(f"INSERT INTO {physical(table.name)} ({columns}) SELECT {columns} FROM {_ADDED}")
    for temporary in (_PARTS, _ADDED):
        file.run(f"DROP TABLE {temporary}")


def span_us(pieces: pa.Table, gap_us: int) -> tuple[int, int]:
    """Return what pieces of sessions span and the gap around it, in microseconds."""
    low_us = pc.min(pieces["first_time"].cast(pa.int64())).as_py()
    high_us = pc.max(pieces["last_time"].cast(pa.int64())).as_py()
    return low_us - gap_us, high_us + gap_us


def _chained(table: Table, delta: pa.Table, name: str) -> str:
    """Return the query for the parts of the sessions that pieces are in, with their numbers."""
    gap_us = table.placement.gap_us
    groups = [quote(column.name) for column in table.groups]
    columns = [quote(column.name) for column in table.columns]
    near = (
        f"SELECT {', '.join(f'o.{column}' for column in columns)}, o.rowid AS __row "
        f"{near_rows(table, name, span_us(delta, gap_us))}"
    )
    pieces = f"SELECT {', '.join(columns)}, CAST(NULL AS BIGINT) AS __row FROM {name}"
    partition = f"PARTITION BY {', '.join(groups)} " if groups else ""
    before = (
        f"max(epoch_us(last_time)) OVER ({partition}ORDER BY first_time "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    begins = (
        f"SELECT *, coalesce(epoch_us(first_time) > {before} + {gap_us}, true) AS __begins "
        f"FROM ({near} UNION ALL {pieces})"
    )
    # Of several that begin at one time the one that begins the session has to come first.
    number = (
        f"count_if(__begins) OVER ({partition}ORDER BY first_time, __begins DESC "
        f"ROWS UNBOUNDED PRECEDING)"
    )
    chain = f"SELECT * EXCLUDE (__begins), {number} AS __session FROM ({begins})"
    sessions = ", ".join([*groups, "__session"])
    return f"FROM ({chain}) QUALIFY bool_or(__row IS NULL) OVER (PARTITION BY {sessions})"


def _combined(table: Table) -> str:
    """Return the query for the sessions, each put together from its parts."""
    groups = [quote(column.name) for column in table.groups]
    chosen = []
    for column in table.columns:
        name = quote(column.name)
        if name in groups:
            chosen.append(name)
        else:
            # What is no state is the time of the first record.
            combined = f"min({name})" if column.merge is None else combine(column, name)
            chosen.append(f"{combined} AS {name}")
    return f"SELECT {', '.join(chosen)} FROM {_PARTS} GROUP BY {', '.join([*groups, '__session'])}"
