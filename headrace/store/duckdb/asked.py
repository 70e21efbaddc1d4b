"""Rows that readers ask for: SQL from names that are known and from values that are bound.

No text from outside is part of a statement: columns are those of the relation, quoted; a value is a
parameter, cast to the type of its column, so that DuckDB compares it with the column as it is
stored and can skip what does not fit (the whole key of a row is looked up in its own windows).

So the statements of many readers have few texts, which are parsed once.
"""

import atexit
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa

from headrace.scratch import parse_anew
from headrace.store.asking import Compare, Condition, Found, Order, Selection
from headrace.store.duckdb.query import translated_within
from headrace.store.duckdb.tables.names import quote

__all__ = ["find_rows", "select", "stream_rows"]

_BATCH_ROWS = 1_024
_MAX_PARSED = 256  # statements of readers, kept apart from those of the commit

# Rows that are asked for are few: their copy is cheaper than a second plan.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result makes an extra copy")

Statement = tuple[str, dict[str, object]]

_parse = lru_cache(maxsize=_MAX_PARSED)(parse_anew)


def select(
    source: str,
    columns: Sequence[str],
    asked: Selection,
    names: Mapping[str, str] | None = None,
    known: Mapping[str, object] | None = None,
) -> Statement:
    """Return the statement for some rows of a source, and its parameters.

    `names` are the columns of the source by those of the view, where they differ; `known` are the
    parameters of the source itself.
    """
    test, values = _tests(asked.conditions, names)
    values |= known or {}
    parts = [f"SELECT {', '.join(columns)} FROM {source}{test}"]
    if asked.order:
        parts.append(f"ORDER BY {', '.join(_order(each, names) for each in asked.order)}")
    if asked.limit is not None:
        parts.append(f"LIMIT {asked.limit:d}")
    return " ".join(parts), values


def _tests(conditions: Sequence[Condition], names: Mapping[str, str] | None) -> Statement:
    tests: list[str] = []
    values: dict[str, object] = {}
    for at, each in enumerate(conditions):
        column = _name(each.column.name, names)
        if each.value is None:
            tests.append(f"{column} IS {'NOT ' if each.compare is Compare.UNEQUAL else ''}NULL")
        else:
            type_ = each.column.type.duckdb
            tests.append(f"{column} {each.compare.value} CAST($value{at} AS {type_})")
            values[f"value{at}"] = each.value
    return (f" WHERE {' AND '.join(tests)}" if tests else ""), values


def _order(order: Order, names: Mapping[str, str] | None) -> str:
    way = "DESC" if order.descending else "ASC"
    return f"{_name(order.column.name, names)} {way} NULLS LAST"


def _name(column: str, names: Mapping[str, str] | None) -> str:
    return quote(column) if names is None else names[column]


def find_rows(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    asked: Selection,
    *,
    max_bytes: int,
    max_seconds: float,
    known: Mapping[str, object] | None = None,
) -> Found:
    """Return rows of a source within all limits. QueryRefused: it takes too long, or fails.

    `known` are the parameters of the source.
    """
    assert asked.limit is not None
    limit = asked.limit
    one_more = Selection(asked.columns, asked.conditions, asked.order, limit + 1)
    names = [quote(each.name) for each in asked.columns]
    sql, values = select(source, names, one_more, known=known)
    with translated_within(connection, max_seconds):
        # Not `sql`, which plans twice: a keyed read takes 2.0 instead of 2.6 ms of CPU.
        reader = connection.execute(_parse(sql), values).to_arrow_reader(_BATCH_ROWS)
        assert reader is not None
        with reader:
            batches, rows, size = [], 0, 0
            for batch in reader:
                batches.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if size > max_bytes:
                    break
            found = pa.Table.from_batches(batches, reader.schema)
    if size > max_bytes:
        # The average row says how many fit; one always does.
        fit = max(1, rows * max_bytes // size)
        return Found(found.slice(0, min(limit, fit)), more=rows > min(limit, fit))
    return Found(found.slice(0, limit), more=rows > limit)


def stream_rows(
    connection: duckdb.DuckDBPyConnection, statement: Statement, *, max_seconds: float
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a statement, some at a time. QueryRefused: as `find_rows`."""
    sql, values = statement
    with translated_within(connection, max_seconds):
        reader = connection.sql(sql, params=values).to_arrow_reader(_BATCH_ROWS)
        with reader:
            yield from reader


# DuckDB complains of statements that are left when the process ends.
atexit.register(_parse.cache_clear)
