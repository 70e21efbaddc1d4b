"""Images: the rows of a view as sinks are told of them, key and row as JSON, in temporary tables.

A table of images has the columns `__r0`, `__r1`, ... that tell rows apart, `__key` and `__row`.
"""

import duckdb

from headrace.errors import MergeFailed
from headrace.plan.tables import EVENTS, Table
from headrace.schema.types import parse_type
from headrace.store.duckdb.emission.json import json_object
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import GROUP, quote
from headrace.store.duckdb.tables.reading import Shown, live
from headrace.store.duckdb.tables.touching import key_names, keys_of, source_among

__all__ = ["open_keys", "take_images"]

# What an expression over a row's aggregates can raise; a division by zero is the second.
_ROW_FAULTS = (duckdb.DataError, duckdb.InvalidInputException)
_META = ((EVENTS, parse_type("BIGINT")), ("_closed", parse_type("BOOLEAN")))
_CHOSEN = "temp.__chosen"
_ALL = "temp.__all_keys"


def open_keys(table: Table) -> str:
    """Return a query for the keys of rows that are not closed; nothing else of them is read."""
    shown = live(table)
    rows = f"SELECT {keys_of(table)}, {shown.closed} FROM {shown.placing.all_keys(table)}"
    return f"SELECT {', '.join(key_names(table))} FROM ({rows}) WHERE NOT _closed"


def take_images(
    file: DuckDBFile,
    shown: Shown,
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
        source = f"{shown.source} AS {GROUP}"
        if among is None and shown.table.placement.overlaps:
            # As later images are made: what is retracted must equal what was told, every digit.
            everything = shown.placing.all_keys(shown.table)
            file.run(f"CREATE TEMP TABLE {_ALL} AS SELECT {keys_of(shown.table)} FROM {everything}")
            among = _ALL
        if among is not None:
            source = f"{source_among(file, shown.table, among)} AS {GROUP}"
        if but is not None:
            source += f" ANTI JOIN {but} AS x ON {_matches(shown)}"
        if shown.condition and (among or but):
            # A join is no obstacle to HAVING: the store evaluates it first, for all rows.
            file.run(f"CREATE TEMP TABLE {_CHOSEN} AS SELECT {GROUP}.* FROM {source}")
            source = f"{_CHOSEN} AS {GROUP}"
        file.run(f"CREATE TEMP TABLE {into} AS {_images(shown, source, closed=closed)}")
        for name in (_CHOSEN, _ALL):
            file.run(f"DROP TABLE IF EXISTS {name}")
    except _ROW_FAULTS as error:
        view = shown.table.view
        raise MergeFailed(
            f"view {view}: a row cannot be read to tell its sinks; guard the expression "
            f"that fails, for example with nullif or coalesce: {error}",
            view=view,
        ) from error


def _matches(shown: Shown) -> str:
    keys = enumerate(shown.keys)
    matches = [f"{GROUP}.{quote(key)} IS NOT DISTINCT FROM x.__r{at}" for at, key in keys]
    return " AND ".join(matches) or "true"


def _images(shown: Shown, source: str, *, closed: bool | None) -> str:
    table, references = shown.table, shown.references
    parts = [f"{references[part.reference]} AS __n{at}" for at, part in enumerate(table.key)]
    columns = ", ".join([keys_of(table), *parts, *shown.columns])
    key = json_object([(part.name, f"__n{at}", part.type) for at, part in enumerate(table.key)])
    outputs = [(output.name, output.type) for output in table.outputs]
    members = [(name, quote(name), type) for name, type in (*outputs, *_META)]
    return (
        f"SELECT {', '.join(key_names(table))}, {key} AS __key, {json_object(members)} AS __row "
        f"FROM (SELECT {columns} FROM {source}{shown.condition})"
        + ("" if closed is None else f" WHERE _closed = {closed}")
    )
