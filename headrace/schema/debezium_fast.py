"""Change events of Debezium by the batch: what debezium.py says of each, with no Python for most.

Events whose values begin with the same schema are freed of it and read together, as those without
one are. What is read of an event: `op`, the columns of `after`, and the key of `before`. Where that
leaves a doubt, the event is read strictly.
"""

import datetime
import json
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.codec import (
    CHANGE_COLUMNS,
    DELETED,
    UNSENT,
    Change,
    Decoded,
    Encoding,
    Operation,
)
from headrace.schema.debezium import (
    BETWEEN,
    OPENING,
    OPERATIONS,
    Fields,
    can_be_unsent,
    cut_schema,
    decode_debezium,
    fields_of,
    ways_of,
)
from headrace.schema.debezium_values import UNSENT_TEXT, Way
from headrace.schema.json import JsonDecoder
from headrace.schema.json_places import steps_of
from headrace.schema.json_text import MAX_VALUE_BYTES, Dead
from headrace.schema.types import Column, parse_type

__all__ = ["DebeziumCodec"]

#: Schemas that are known at once; a topic has one, and another one after its table was altered.
MAX_SCHEMAS = 8
#: How many of them are found in one batch; what has yet another one is read strictly.
MAX_LESSONS = 8
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_STRING, _INT = parse_type("STRING"), parse_type("INT")
_FAST_WAYS = ("plain", "seconds", "millis", "micros", "days", "date")
_ROWS = {name: each for name, each in OPERATIONS.items() if each.has_row}

Indices = npt.NDArray[np.int64]


class DebeziumCodec:
    """Decodes change events; for one thread."""

    reads: tuple[str, ...] = ("key", "value")

    def __init__(self, encoding: Encoding, wanted: Collection[str] | None) -> None:
        self.wanted = None if wanted is None else frozenset(wanted)
        self._encoding = encoding
        own = [Column(name, CHANGE_COLUMNS[name]) for name in (DELETED, UNSENT)]
        every = [*encoding.columns, *own]
        kept = [each for each in every if wanted is None or each.name in wanted] or every[:1]
        self.schema = pa.schema([(each.name, each.type.arrow) for each in kept])
        self._readers: dict[bytes, _Reader | None] = {}  # by what stands before the envelope

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order, and the second rows behind them."""
        keys, values = (records[name].combine_chunks() for name in self.reads)
        values = values.cast(pa.binary())
        count = len(values)
        operations = np.full(count, Operation.IGNORE, dtype=np.int8)
        found = _Found(self.schema, count)
        pending = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        for _ in range(MAX_LESSONS):
            if not len(pending):
                break
            around, alike = self._alike(values, pending)
            self._decode_alike(keys, values, alike, around, operations, found)
            pending = np.setdiff1d(pending, alike, assume_unique=True)
        self._decode_strictly(keys, values, pending, operations, found)
        return found.decoded(operations)

    def _alike(self, values: pa.Array, pending: Indices) -> tuple[tuple[bytes, bytes], Indices]:
        """Return what stands around the first one's envelope, and those where the same does."""
        around = cut_schema(values[int(pending[0])].as_py())
        texts = values.take(pa.array(pending))
        if around[0]:
            same = _true(pc.starts_with(texts, around[0])) & _true(pc.ends_with(texts, around[1]))
            same &= _true(pc.less_equal(pc.binary_length(texts), MAX_VALUE_BYTES))
        else:
            same = ~_true(pc.starts_with(texts, OPENING))
        return around, pending[same] if same.any() else pending[:1]

    def _decode_alike(
        self,
        keys: pa.Array,
        values: pa.Array,
        alike: Indices,
        around: tuple[bytes, bytes],
        operations: npt.NDArray[np.int8],
        found: "_Found",
    ) -> None:
        """Decode the records of one schema, or of none."""
        reader = self._reader(around[0])
        if reader is not None:
            texts = values.take(pa.array(alike))
            if around[0]:
                texts = pc.binary_slice(texts, len(around[0]), -len(around[1]))
            alike = reader.read(texts, alike, operations, found)
        self._decode_strictly(keys, values, alike, operations, found)

    def _decode_strictly(
        self,
        keys: pa.Array,
        values: pa.Array,
        indices: Indices,
        operations: npt.NDArray[np.int8],
        found: "_Found",
    ) -> None:
        both = keys.take(pa.array(indices)), values.take(pa.array(indices))
        for index, key, value in zip(indices.tolist(), *map(_listed, both), strict=True):
            try:
                change = decode_debezium(self._encoding, key, value)
            except Dead as dead:
                found.dead[index] = dead.reason
                operations[index] = Operation.UPSERT
            else:
                operations[index] = change.operation
                found.add_strict(index, change)

    def _reader(self, prefix: bytes) -> "_Reader | None":
        """Return what reads envelopes behind a prefix; None: each is read strictly."""
        if prefix not in self._readers:
            if len(self._readers) >= MAX_SCHEMAS:
                self._readers.clear()
            self._readers[prefix] = self._make_reader(prefix)
        return self._readers[prefix]

    def _make_reader(self, prefix: bytes) -> "_Reader | None":
        fields: Fields | None = None
        if prefix:
            fields = fields_of(json.loads(prefix.removesuffix(BETWEEN)[len(OPENING) :]))
        try:
            ways = ways_of(self._encoding, fields)
        except Dead:
            return None
        if any(way.name not in _FAST_WAYS for way in ways):
            return None
        return _Reader(self._encoding, ways, self.schema)


def _listed(array: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = array.to_pylist()
    return found


class _Found:
    """What was found so far: parts of rows with their indices, the dead, and second rows."""

    def __init__(self, schema: pa.Schema, count: int) -> None:
        self.dead: dict[int, str] = {}
        self._schema = schema
        self._count = count
        self._parts: list[tuple[Indices, pa.RecordBatch]] = []
        self._moved: list[tuple[Indices, pa.RecordBatch]] = []
        self._strict: dict[int, dict[str, object]] = {}
        self._strict_moved: dict[int, dict[str, object]] = {}

    def add(self, indices: Indices, rows: pa.RecordBatch, *, moved: bool = False) -> None:
        """Take rows of these records."""
        (self._moved if moved else self._parts).append((indices, rows))

    def add_strict(self, index: int, change: Change) -> None:
        """Take what a single record says."""
        if change.operation.has_row:
            self._strict[index] = change.values
        if change.moved is not None:
            self._strict_moved[index] = change.moved

    def decoded(self, operations: npt.NDArray[np.int8]) -> Decoded:
        """Return all of it, in the order of the records."""
        parts, moved = self._parts, self._moved
        for single, target in ((self._strict, parts), (self._strict_moved, moved)):
            if single:
                indices = np.array(list(single), dtype=np.int64)
                target.append((indices, _batch(self._schema, list(single.values()))))
        rows = _placed(parts, self._schema, self._count)
        of = np.concatenate([indices for indices, _ in moved]) if moved else np.empty(0, np.int64)
        if len(of):
            order = pa.array(np.argsort(of, kind="stable"))
            second = pa.Table.from_batches([batch for _, batch in moved]).combine_chunks()
            rows = pa.concat_batches([rows, *second.take(order).to_batches()])
        dead = sorted(self.dead)
        return Decoded(
            rows,
            pa.array(dead, pa.int64()),
            pa.array([self.dead[at] for at in dead], pa.string()),
            operations,
            np.sort(of),
        )


def _batch(schema: pa.Schema, rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _placed(
    parts: Sequence[tuple[Indices, pa.RecordBatch]], schema: pa.Schema, count: int
) -> pa.RecordBatch:
    """Return parts of a batch as one: rows at their indices, and nulls where there is none."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]  # indices are ascending
    source = np.full(count, -1, dtype=np.int64)
    start = 0
    for indices, batch in parts:
        source[indices] = np.arange(start, start + batch.num_rows)
        start += batch.num_rows
    if not start:
        nulls = [pa.nulls(count, field.type) for field in schema]
        return pa.RecordBatch.from_arrays(nulls, schema=schema)
    together = pa.concat_batches([batch for _, batch in parts])
    return together.take(pa.array(source, mask=source < 0))


class _Reader:
    """Reads envelopes whose columns are all written in a way that is easy."""

    def __init__(self, encoding: Encoding, ways: Sequence[Way], schema: pa.Schema) -> None:
        self._encoding = encoding
        self._schema = schema
        every = {
            column.name: _column(column, way, "after")
            for column, way in zip(encoding.columns, ways, strict=True)
        }
        self._keys = [each for each in encoding.columns if each.name in encoding.key]
        before = {
            each.name: replace(
                every[each.name],
                name=f"before.{each.name}",
                path=("before", *every[each.name].path[1:]),
            )
            for each in self._keys
        }
        # What may make an event dead is looked at even where it is not wanted.
        required = {
            each.name
            for each in encoding.columns
            if not each.nullable
            or each.type.kind == "DATE"
            or (UNSENT in schema.names and can_be_unsent(each))
        }
        self._read = [each for each in encoding.columns if each.name in {*schema.names, *required}]
        wanted = {every[each.name].name for each in self._read}
        wanted |= {each.name for each in before.values()} | {"op"}
        columns = [Column("op", _STRING), *every.values(), *before.values()]
        if encoding.source_table is not None:
            columns += [
                Column(f"source.{name}", _STRING, path=("source", name))
                for name in ("schema", "db", "table")
            ]
            wanted |= {"source.schema", "source.db", "source.table"}
        self._decoder = JsonDecoder(columns, wanted=wanted)

    def read(
        self,
        texts: pa.Array,
        indices: Indices,
        operations: npt.NDArray[np.int8],
        found: _Found,
    ) -> Indices:
        """Take what can be read of envelopes together; return the indices of the others."""
        decoded = self._decoder.decode(texts)
        batch = decoded.rows
        op = batch["op"]
        sure = np.ones(len(texts), dtype=bool)
        sure[decoded.dead.to_numpy()] = False
        deletes = _true(pc.equal(op, "d"))
        upserts = _true(pc.is_in(op, pa.array([each for each in _ROWS if each != "d"])))
        sure &= deletes | upserts
        if self._encoding.source_table is not None:
            sure &= self._is_of_source(batch)
        old_known = np.ones(len(texts), dtype=bool)
        differs = np.zeros(len(texts), dtype=bool)
        for each in self._keys:
            new, old = batch[f"after.{each.name}"], batch[f"before.{each.name}"]
            old_known &= _true(pc.is_valid(old))
            differs |= _true(pc.not_equal(new, old))
        sure &= ~deletes | old_known
        arrays: dict[str, pa.Array] = {}
        gone = pa.array(deletes)
        unsent: list[tuple[str, npt.NDArray[np.bool_]]] = []
        for column in self._read:
            array = batch[f"after.{column.name}"]
            is_key = column in self._keys
            if not is_key and can_be_unsent(column):
                missing = _unsent(array) & upserts
                if missing.any():
                    unsent.append((column.name, missing))
                    array = pc.if_else(pa.array(missing), pa.scalar(None, array.type), array)
            if not column.nullable:
                there = _true(pc.is_valid(array))
                for name, missing in unsent:
                    there |= missing if name == column.name else False
                sure &= deletes | there
            of_deleted = batch[f"before.{column.name}"] if is_key else pa.scalar(None, array.type)
            arrays[column.name] = pc.if_else(gone, of_deleted, array)
        arrays[DELETED] = gone
        arrays[UNSENT] = _named(unsent, len(texts))
        for column in self._read:
            if column.type.kind == "DATE":
                sure &= _are_dates(arrays[column.name])
        rows = pa.RecordBatch.from_arrays(
            [arrays[field.name].cast(field.type) for field in self._schema], schema=self._schema
        )
        operations[indices] = np.where(deletes, Operation.DELETE, Operation.UPSERT)
        taken = pa.array(sure)
        found.add(indices[sure], rows.filter(taken) if not sure.all() else rows)
        moved = sure & upserts & old_known & differs
        if moved.any():
            found.add(indices[moved], self._second(batch, moved), moved=True)
        return indices[~sure]

    def _second(self, batch: pa.RecordBatch, moved: npt.NDArray[np.bool_]) -> pa.RecordBatch:
        """Return the rows that delete the keys which those records had before."""
        rows = batch.filter(pa.array(moved))
        keys = {each.name for each in self._keys}
        arrays = []
        for field in self._schema:
            if field.name in keys:
                arrays.append(rows[f"before.{field.name}"].cast(field.type))
            elif field.name == DELETED:
                arrays.append(pa.repeat(pa.scalar(True), rows.num_rows))
            else:
                arrays.append(pa.nulls(rows.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _is_of_source(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        schema = batch["source.schema"]
        empty = pc.or_kleene(pc.is_null(schema), pc.equal(schema, ""))
        within = pc.if_else(empty.fill_null(True), batch["source.db"], schema)
        table = batch["source.table"]
        name = pc.binary_join_element_wise(within, table, ".")
        wanted = self._encoding.source_table
        return _true(pc.equal(table, wanted)) | _true(pc.equal(name, wanted))


def _are_dates(days: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which days since 1970 are within the years 1 to 9999; null is none."""
    first, last = (date.toordinal() - _EPOCH for date in (datetime.date.min, datetime.date.max))
    within = pc.and_(pc.greater_equal(days, first), pc.less_equal(days, last))
    found: npt.NDArray[np.bool_] = within.fill_null(True).to_numpy(zero_copy_only=False)
    return found


def _column(column: Column, way: Way, part: str) -> Column:
    """Return a column as it stands in a part of an envelope, where it may always be null."""
    days = column.type.kind == "DATE"
    return Column(
        f"{part}.{column.name}",
        _INT if days else column.type,
        path=(part, *steps_of(column)),
        format=way.name if way.name in ("seconds", "millis", "micros") else None,
    )


def _true(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _unsent(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values stand for some that were not sent."""
    if pa.types.is_string(array.type):
        return _true(pc.equal(array, UNSENT_TEXT))
    if pa.types.is_list(array.type) and pa.types.is_string(array.type.value_type):
        lone = pc.equal(pc.list_value_length(array), 1).fill_null(False)
        first = pc.list_element(pc.if_else(lone, array, pa.scalar([None], array.type)), 0)
        return _true(pc.equal(first, UNSENT_TEXT))
    return np.zeros(len(array), dtype=bool)


def _named(unsent: Sequence[tuple[str, npt.NDArray[np.bool_]]], count: int) -> pa.Array:
    type = pa.list_(pa.string())
    if not unsent:
        return pa.nulls(count, type)
    found: list[list[str] | None] = [None] * count
    for name, missing in unsent:
        for at in np.flatnonzero(missing).tolist():
            found[at] = [*(found[at] or []), name]
    return pa.array(found, type)
