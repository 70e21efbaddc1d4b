"""Format `upsert`: a record is the newest row of its key, or with no value deletes it.

The key is read from the record's key (record_keys.py) or, with `key_from = 'value'`, from the
value; of a record without a value from its key in either case. What else the value says of the key
is ignored.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.codec import CHANGE_COLUMNS, DELETED, Change, Decoded, Encoding, Operation
from headrace.schema.json import JsonDecoder
from headrace.schema.json_strict import decode_strict
from headrace.schema.record_keys import KeyDecoder
from headrace.schema.types import Column, parse_type

__all__ = ["UpsertCodec", "decode_upsert"]

#: Read of values that have no column: they have to be objects all the same.
_NONE = Column("_none", parse_type("STRING"))


class UpsertCodec:
    """Decodes upserts; for one thread."""

    reads: tuple[str, ...] = ("key", "value")

    def __init__(self, encoding: Encoding, wanted: Collection[str] | None) -> None:
        self.wanted = None if wanted is None else frozenset(wanted)
        every = [*encoding.columns, Column(DELETED, CHANGE_COLUMNS[DELETED])]
        kept = [each for each in every if wanted is None or each.name in wanted] or every[:1]
        self.schema = pa.schema([(each.name, each.type.arrow) for each in kept])
        self._keys = KeyDecoder(key_columns(encoding), encoding.timestamp_format)
        self._from_value = encoding.key_from == "value"
        columns = value_columns(encoding)
        self._values = JsonDecoder(
            columns or [_NONE],
            timestamp_format=encoding.timestamp_format,
            wanted=[each.name for each in columns if wanted is None or each.name in wanted],
        )

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order."""
        keys, values = (records[name].combine_chunks() for name in self.reads)
        count = len(values)
        gone = pc.is_null(values).to_numpy(zero_copy_only=False)
        reasons: dict[int, str] = {}
        arrays: dict[str, pa.Array] = {}
        keyed = np.flatnonzero(gone) if self._from_value else np.arange(count)
        if len(keyed):
            found, dead = self._keys.decode(_taken(keys, keyed))
            reasons |= {int(keyed[at]): reason for at, reason in dead.items()}
            arrays |= zip(self._keys.schema.names, _placed(found, keyed, count), strict=True)
        there = np.flatnonzero(~gone)
        if len(there):
            decoded = self._values.decode(_taken(values, there))
            told = zip(decoded.dead.to_pylist(), decoded.reasons.to_pylist(), strict=True)
            reasons = {int(there[at]): reason for at, reason in told} | reasons
            placed = _placed(decoded.rows.columns, there, count)
            for name, array in zip(decoded.rows.schema.names, placed, strict=True):
                arrays[name] = pc.coalesce(array, arrays[name]) if name in arrays else array
        arrays[DELETED] = pa.array(gone)
        columns = [
            arrays[field.name] if field.name in arrays else pa.nulls(count, field.type)
            for field in self.schema
        ]
        indices = sorted(reasons)
        return Decoded(
            pa.RecordBatch.from_arrays(columns, schema=self.schema),
            pa.array(indices, pa.int64()),
            pa.array([reasons[at] for at in indices], pa.string()),
            np.where(gone, Operation.DELETE, Operation.UPSERT).astype(np.int8),
        )


def decode_upsert(encoding: Encoding, key: bytes | None, value: bytes | None) -> Change:
    """Return what one record says, worked out in plain Python. Dead."""
    row: dict[str, object] = dict.fromkeys(column.name for column in encoding.columns)
    if value is None or encoding.key_from == "key":
        row |= KeyDecoder(key_columns(encoding), encoding.timestamp_format).strict(key)
    if value is not None:
        columns = value_columns(encoding) or [_NONE]
        read = decode_strict(columns, value, encoding.timestamp_format)
        row |= {name: each for name, each in read.items() if name in row}
    operation = Operation.DELETE if value is None else Operation.UPSERT
    return Change(operation, row | {DELETED: value is None})


def key_columns(encoding: Encoding) -> list[Column]:
    """Return the columns of the primary key, in its order, as a record's key has them."""
    columns = {column.name: column for column in encoding.columns}
    return [
        Column(name, columns[name].type, nullable=False, format=columns[name].format)
        for name in encoding.key
    ]


def value_columns(encoding: Encoding) -> list[Column]:
    """Return the columns that are read of values."""
    from_value = encoding.key_from == "value"
    return [each for each in encoding.columns if from_value or each.name not in encoding.key]


def _taken(array: pa.Array, places: np.ndarray) -> pa.Array:
    return array if len(places) == len(array) else array.take(pa.array(places))


def _placed(arrays: list[pa.Array], places: np.ndarray, count: int) -> list[pa.Array]:
    """Return arrays whose values are at those places of so many, with nulls between them."""
    if len(places) == count:
        return arrays
    source = np.full(count, -1, dtype=np.int64)
    source[places] = np.arange(len(places))
    order = pa.array(source, mask=source < 0)
    return [array.take(order) for array in arrays]
