"""Images: the rows of a view as sinks are told of them, key and row as JSON, in temporary tables.

A table of images has the columns `__r0`, `__r1`, ... that tell rows apart, `__key` and `__row`.
"""

from collections.abc import Sequence

import duckdb

from headrace.errors import MergeFailed
from headrace.plan.tables import GROUP, Rows, Table, quote
from headrace.schema.types import parse_type
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.json import json_object
from headrace.store.duckdb.tables import physical

__all__ = ["key_names", "keys_of", "open_keys", "rows_of", "same_keys", "source_of", "take_images"]

# What an expression over a row's aggregates can raise; a division by zero is the second.
_ROW_FAULTS = (duckdb.DataError, duckdb.InvalidInputException)
_META = (("_events", parse_type("BIGINT")), ("_closed", parse_type("BOOLEAN")))
# Keys that grow with the log: by a range of them the store skips the rows of other times.
_GROWING_KEYS = ("window_start", "number", "first_time", "__offset")
_CHOSEN = "temp.__chosen"


def rows_of(table: Table) -> Rows:
    """Return what the rows of a view's table are to those who are told of them."""
    assert table.rows is not None
    return table.rows


def source_of(table: Table) -> str:
    """Return what the rows of a view are read from."""
    return table.relation or physical(table.name)


def key_names(table: Table) -> list[str]:
    """Return the columns of images that tell rows apart."""
    return [f"__r{at}" for at in range(len(rows_of(table).keys))] or ["__r"]


def keys_of(table: Table) -> str:
    """Return the selection of those columns from what the rows are read from."""
    keys = rows_of(table).keys
    if not keys:
        return "1 AS __r"  # a view without keys has one row
    return ", ".join(f"{quote(key)} AS __r{at}" for at, key in enumerate(keys))


def open_keys(table: Table) -> str:
    """Return a query for the keys of rows that are not closed; nothing else of them is read."""
    closed = table.shown[-1]
    rows = f"SELECT {keys_of(table)}, {closed} FROM {source_of(table)} AS {GROUP}"
    return f"SELECT {', '.join(key_names(table))} FROM ({rows}) WHERE NOT _closed"


def same_keys(one: str, other: str, keys: Sequence[str]) -> str:
    """Return the test whether two tables of images speak of the same row."""
    return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in keys)


def take_images(
    file: DuckDBFile,
    table: Table,
    into: str,
    *,
    closed: bool | None = None,
    among: str | None = None,
    but: str | None = None,
) -> None:
    """Make a table of images: of all rows, or those that are `closed` or not. MergeFailed.

    Where `among` is given, of the rows only whose keys it has; those that `but` has are left out,
    and no expression is evaluated for them.
    """
    try:
        source = f"{source_of(table)} AS {GROUP}"
        if among is not None:
            bounds = _bounds(file, rows_of(table), among)
            source = f"(SELECT * FROM {source_of(table)}{bounds}) AS {GROUP}"
            source += f" SEMI JOIN {among} AS x ON {_matches(table)}"
        if but is not None:
            source += f" ANTI JOIN {but} AS x ON {_matches(table)}"
        if table.condition and (among or but):
            # A join is no obstacle to HAVING: the store evaluates it first, for all rows.
            file.run(f"CREATE TEMP TABLE {_CHOSEN} AS SELECT {GROUP}.* FROM {source}")
            source = f"{_CHOSEN} AS {GROUP}"
        file.run(f"CREATE TEMP TABLE {into} AS {_images(table, source, closed=closed)}")
        file.run(f"DROP TABLE IF EXISTS {_CHOSEN}")
    except _ROW_FAULTS as error:
        raise MergeFailed(
            f"view {table.view}: a row cannot be read to tell its sinks; guard the expression "
            f"that fails, for example with nullif or coalesce: {error}",
            view=table.view,
        ) from error


def _matches(table: Table) -> str:
    keys = enumerate(rows_of(table).keys)
    matches = [f"{GROUP}.{quote(key)} IS NOT DISTINCT FROM x.__r{at}" for at, key in keys]
    return " AND ".join(matches) or "true"


def _images(table: Table, source: str, *, closed: bool | None) -> str:
    rows = rows_of(table)
    parts = [f"{text} AS __n{at}" for at, (_, text, _) in enumerate(rows.names)]
    columns = ", ".join([keys_of(table), *parts, *table.shown])
    key = json_object([(name, f"__n{at}", type) for at, (name, _, type) in enumerate(rows.names)])
    members = [(name, quote(name), type) for name, type in (*rows.outputs, *_META)]
    return (
        f"SELECT {', '.join(key_names(table))}, {key} AS __key, {json_object(members)} AS __row "
        f"FROM (SELECT {columns} FROM {source}{table.condition})"
        + ("" if closed is None else f" WHERE _closed = {closed}")
    )


def _bounds(file: DuckDBFile, rows: Rows, among: str) -> str:
    """Return literal ranges for the place of what is looked for: the store skips all else."""
    keys = [(at, key) for at, key in enumerate(rows.keys) if key in _GROWING_KEYS]
    if not keys:
        return ""
    ends = [f"CAST({end}(__r{at}) AS VARCHAR)" for at, _ in keys for end in ("min", "max")]
    found = file.rows(f"SELECT {', '.join(ends)} FROM {among}")[0]
    if found[0] is None:
        return " WHERE false"
    lows, highs = found[::2], found[1::2]
    ranges = [
        f"{quote(key)} BETWEEN '{low}' AND '{high}'"
        for (_, key), low, high in zip(keys, lows, highs, strict=True)
    ]
    return f" WHERE {' AND '.join(ranges)}"
