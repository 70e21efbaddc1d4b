"""A table as a view: the newest change of every primary key, unless it deletes the row.

All other columns together are one value, so that a row is never put together from two changes; but
a column whose values may not be sent has the newest that was.
Changes of a key that are in several partitions have no order, so each row knows the least and the
greatest partition that it came from.
"""

from headrace.model.definitions import Stream, View
from headrace.model.nodes import (
    Aggregate,
    Call,
    Changelog,
    Filter,
    Named,
    Project,
    call_column,
    key_column,
)
from headrace.model.scalars import Scalar, escape_braces
from headrace.schema.codec import DELETED, UNSENT
from headrace.schema.formats import unsent_columns

__all__ = [
    "GREATEST_PARTITION_CALL",
    "LEAST_PARTITION_CALL",
    "NEWEST_CALL",
    "table_view",
    "together_columns",
]

#: The calls of a table's aggregate: its newest change, and the partitions that changes are in.
NEWEST_CALL = 0
LEAST_PARTITION_CALL = 1
GREATEST_PARTITION_CALL = 2
OWN_CALLS = 3
_GONE = "gone"


def table_view(stream: Stream) -> View:
    """Return the view that a table is, over the stream of its changes."""
    unsent = unsent_columns(stream.encoding)
    others = together_columns(stream)
    members = [(_GONE, DELETED), *((f"c{at}", name) for at, name in enumerate(others))]
    text = ", ".join(f"'{name}', {{{at}}}" for at, (name, _) in enumerate(members))
    newest = Scalar(f"named_struct({text})", tuple(column for _, column in members))
    partition = Scalar.column("_partition")
    calls = [Call("last", (newest,)), Call("min", (partition,)), Call("max", (partition,))]
    for name in unsent:
        sent = Scalar(f"not coalesce(array_contains({{0}}, {_literal(name)}), false)", (UNSENT,))
        calls.append(Call("last", (Scalar.column(name),), condition=sent))
    keys = tuple(Scalar.column(name) for name in stream.primary_key)
    rows = Filter(
        Aggregate(Changelog(stream.name), None, keys, tuple(calls)),
        Scalar(f"not {{0}}.{_GONE}", (call_column(NEWEST_CALL),)),
        stream.location,
    )
    places = {name: key_column(at) for at, name in enumerate(stream.primary_key)}
    places |= {name: call_column(at) for at, name in enumerate(unsent, OWN_CALLS)}
    columns = []
    for column in stream.columns:
        if column.name in places:
            scalar = Scalar.column(places[column.name])
        else:
            field = f"c{others.index(column.name)}"
            scalar = Scalar(f"{{0}}.{field}", (call_column(NEWEST_CALL),))
        columns.append(Named(column.name, scalar, stream.location, stream.location))
    return View(
        stream.name,
        Project(rows, tuple(columns)),
        reads=(stream.name,),
        sql=stream.sql,
        location=stream.location,
    )


def together_columns(stream: Stream) -> list[str]:
    """Return the columns that are one value: neither of the key, nor ones that may be unsent."""
    apart = (*stream.primary_key, *unsent_columns(stream.encoding))
    return [each.name for each in stream.columns if each.name not in apart]


def _literal(name: str) -> str:
    text = name.replace("\\", "\\\\").replace("'", "\\'")
    return escape_braces(f"'{text}'")
