"""Format `debezium` of a stream: every change event is a record, its envelope the columns.

`op`, `before`, `after`, `source` are columns like any other, declared as what they hold. The schema
part is left away; tombstones, which have no value, are ignored. What is no envelope is dead.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.codec import Change, Decoded, Encoding, Operation
from headrace.schema.debezium import cut_schema, open_envelope
from headrace.schema.json import JsonDecoder
from headrace.schema.json_strict import decode_members
from headrace.schema.json_text import MAX_VALUE_BYTES, Dead, parse_object
from headrace.schema.types import Column, parse_type

__all__ = ["EventCodec", "decode_event"]

#: Read of every envelope, beside the columns: what has none is no change event.
_OP = Column("_op", parse_type("STRING"), path=("op",))


def decode_event(encoding: Encoding, _: bytes | None, value: bytes | None) -> Change:
    """Return what one record says, worked out in plain Python. Dead."""
    nothing: dict[str, object] = dict.fromkeys(column.name for column in encoding.columns)
    if value is None:
        return Change(Operation.IGNORE, nothing)
    envelope, _fields = open_envelope(parse_object(value))
    if envelope is None:
        return Change(Operation.IGNORE, nothing)
    if envelope.get("op") is None:
        raise Dead("no op: this is no change event of Debezium")
    row = decode_members(encoding.columns, envelope, encoding.timestamp_format)
    return Change(Operation.APPEND, row)


class EventCodec:
    """Decodes change events as records; for one thread."""

    reads: tuple[str, ...] = ("value",)

    def __init__(self, encoding: Encoding, wanted: Collection[str] | None) -> None:
        self.wanted = None if wanted is None else frozenset(wanted)
        self._encoding = encoding
        kept = [each for each in encoding.columns if wanted is None or each.name in wanted]
        kept = kept or list(encoding.columns[:1])
        self.schema = pa.schema([(each.name, each.type.arrow) for each in kept])
        self._decoder = JsonDecoder(
            [*encoding.columns, _OP],
            timestamp_format=encoding.timestamp_format,
            wanted=[*self.schema.names, _OP.name],
        )

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order."""
        values = records["value"].combine_chunks().cast(pa.binary())
        operations = np.full(len(values), Operation.APPEND, dtype=np.int8)
        found = self._decoder.decode(_envelopes(values))
        doubtful = pc.is_null(found.rows[_OP.name]).to_numpy(zero_copy_only=False)
        doubtful[found.dead.to_numpy()] = True
        rows = found.rows.select(self.schema.names)
        indices = np.flatnonzero(doubtful)
        dead: dict[int, str] = {}
        strict: dict[int, dict[str, object]] = {}
        taken = values.take(pa.array(indices)).to_pylist()
        for index, value in zip(indices.tolist(), taken, strict=True):
            try:
                change = decode_event(self._encoding, None, value)
            except Dead as error:
                dead[index] = error.reason
            else:
                operations[index] = change.operation
                if change.operation.has_row:
                    strict[index] = change.values
        if strict:
            rows = _with(rows, strict)
        return Decoded(
            rows,
            pa.array(sorted(dead), pa.int64()),
            pa.array([dead[at] for at in sorted(dead)], pa.string()),
            operations,
        )


def _envelopes(values: pa.Array) -> pa.Array:
    """Return values without the schema that the first of them has, where others have it too."""
    first = next((each.as_py() for each in values if each.is_valid), b"")
    prefix, suffix = cut_schema(first)
    if not prefix:
        return values
    same = pc.and_(pc.starts_with(values, prefix), pc.ends_with(values, suffix))
    same = pc.and_(same, pc.less_equal(pc.binary_length(values), MAX_VALUE_BYTES))
    cut = pc.binary_slice(values, len(prefix), -len(suffix))
    return pc.if_else(same, cut, values)


def _with(rows: pa.RecordBatch, others: dict[int, dict[str, object]]) -> pa.RecordBatch:
    """Return rows with others in the place of some, by their indices."""
    source = np.arange(rows.num_rows, dtype=np.int64)
    source[list(others)] = rows.num_rows + np.arange(len(others))
    more = [
        pa.array([each[field.name] for each in others.values()], field.type)
        for field in rows.schema
    ]
    both = pa.concat_batches([rows, pa.RecordBatch.from_arrays(more, schema=rows.schema)])
    return both.take(pa.array(source))
