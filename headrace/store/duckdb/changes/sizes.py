"""How large changes are: what is kept of them, and whether the log takes them as records."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import MergeFailed
from headrace.ledger.following import SinkEntry, relation_of
from headrace.log.base import MAX_RECORD_BYTES
from headrace.plan.tables import Table
from headrace.schema.envelopes import record_bytes
from headrace.schema.json_rows import json_object
from headrace.schema.relations import Relation
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.file import DuckDBFile

__all__ = ["SOURCE_BYTES", "are_small", "check_sizes", "row_bytes"]

#: The most that an envelope says of where a change comes from.
SOURCE_BYTES = 1_024

_SHOWN_CHARACTERS = 100  # of a key, where an error names it
_FIXED_BYTES = 64  # the most that a number, a time or a truth takes as JSON
#: A character of a text may be six in JSON; a nested value has quotation marks and names besides.
_LARGEST_FACTOR = 8
_FIXED = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE",
          "TIMESTAMP")  # fmt: skip


def row_bytes(relation: Relation) -> str:
    """Return SQL for about how many bytes a row of changes holds."""
    parts = [(f"k{at}", each.type) for at, each in enumerate(relation.key)]
    parts += [(f"c{at}", each.type) for at, each in enumerate(relation.columns)]
    texts = [_length(name, type) for name, type in parts if type.kind not in _FIXED]
    fixed = 24 + 8 * sum(type.kind in _FIXED for _, type in parts)
    return " + ".join([str(fixed), *texts])


def are_small(rows: pa.Table, relation: Relation) -> bool:
    """Whether no row of changes can be too large for a record, as the longest texts tell."""
    parts = [(f"k{at}", each.type.kind) for at, each in enumerate(relation.key)]
    parts += [(f"c{at}", each.type.kind) for at, each in enumerate(relation.columns)]
    texts = [name for name, kind in parts if kind in ("STRING", "BINARY")]
    if any(kind not in _FIXED for name, kind in parts if name not in texts):
        return False  # how long a nested value is as JSON, the store has to say
    longest = sum(pc.max(pc.binary_length(rows[name])).as_py() or 0 for name in texts)
    held = 24 + 8 * len(parts) + longest
    return 2 * (_LARGEST_FACTOR * held + _named_bytes(relation)) + SOURCE_BYTES <= MAX_RECORD_BYTES


def check_sizes(
    file: DuckDBFile, table: Table, changes: str, commit: int, sinks: Collection[SinkEntry]
) -> None:
    """Refuse rows that the log would refuse when it is too late, as records of sinks. MergeFailed.

    `changes` is the table of the rows.
    """
    relation = relation_of(table)
    sinks = [sink for sink in sinks if sink.has_key(relation)]
    columns = [*relation.key, *relation.columns]
    if all(each.type.kind in _FIXED for each in columns) or not sinks:
        return
    rows = f"FROM {changes} WHERE _commit = {commit} AND _sign > 0"
    most = f"{_LARGEST_FACTOR} * ({row_bytes(relation)}) + {_named_bytes(relation)}"
    suspect = f"2 * ({most}) + {SOURCE_BYTES} > {MAX_RECORD_BYTES}"
    if file.rows(f"SELECT count(*) {rows} AND {suspect}") == [(0,)]:
        return
    row = json_object(
        [(each.name, f"c{at}", each.type) for at, each in enumerate(relation.columns)]
        + [("_closed", "_closed", parse_type("BOOLEAN"))]
    )
    for sink in sinks:
        mode, chosen = sink.mode, sink.key
        places = {each.name: (f"c{at}", each.type) for at, each in enumerate(relation.columns)}
        parts = [(each.name, f"k{at}", each.type) for at, each in enumerate(relation.key)]
        key = json_object([(each, *places[each]) for each in chosen] if chosen else parts)
        # The largest record beside a row of the same size: what it was, or will be.
        factor = record_bytes(mode, 0, 1, 0) - record_bytes(mode, 0, 0, 0)
        rest = record_bytes(mode, 0, 0, SOURCE_BYTES)
        size = f"strlen({key}) + {factor} * strlen({row}) + {rest}"
        large = file.rows(
            f"SELECT {key}[:{_SHOWN_CHARACTERS}] AS key, {size} AS size {rows} AND {suspect} "
            f"AND size > {MAX_RECORD_BYTES} ORDER BY size DESC, key LIMIT 1"
        )
        for found, bytes in large:
            raise MergeFailed(
                f"view {table.view}: the row {found} has {bytes} bytes as a record of its sink "
                f"{sink.name}, {MAX_RECORD_BYTES} is the most that the log takes. Leave its "
                f"longest column out of the view or make it shorter, a text with left(x, 1000), a "
                f"list with collect_list(x, 100); or drop the sink, and the view goes on as it is.",
                view=table.view,
            )


def _named_bytes(relation: Relation) -> int:
    """Return the most that names, numbers and times of a row take as JSON."""
    columns = [*relation.key, *relation.columns]
    return sum(len(each.name.encode()) + 4 + _FIXED_BYTES for each in columns)


def _length(name: str, type: DataType) -> str:
    if type.kind == "BINARY":
        return f"coalesce(octet_length({name}), 0)"
    text = name if type.kind == "STRING" else f"CAST({name} AS VARCHAR)"
    return f"coalesce(strlen({text}), 0)"
