"""The fast path: records of known shapes, converted together by DuckDB.

Promises:
- What it returns equals what the strict path returns for the same records (json_shape.py says
  why); which records it takes is its own business and may change from batch to batch.
- Bounded: at most MAX_SHAPES shapes are kept, at most MAX_LESSONS are tried out per batch.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.json_places import Keys, keys_of, steps_of
from headrace.schema.json_shape import Structure, learn_shape, plan_structures
from headrace.schema.json_text import MAX_VALUE_BYTES, Dead, parse_object
from headrace.schema.json_values import TIMESTAMP_UNITS, unit_of
from headrace.schema.types import Column
from headrace.scratch import connect

__all__ = ["FastPath", "FastRows"]

MAX_SHAPES = 8
MAX_LESSONS = 4
# Fewer records are sooner decoded one by one (10 to 20 us each) than a query is set up (2 ms) or
# an expression compiled (0.5 ms).
MIN_FAST_RECORDS = 200
MIN_SHAPE_RECORDS = 50

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FastRows:
    """The records that were easy: their indices, ascending, and one array per wanted column."""

    indices: Indices
    arrays: list[pa.Array]


class FastPath:
    """Knows the shapes of one schema's records. Picklable; to be used by one thread at a time.

    A shape proves every column; converted are the `wanted` ones only.
    """

    def __init__(
        self, columns: Sequence[Column], wanted: Sequence[Column], timestamp_format: str | None
    ) -> None:
        resolved = {
            column.name: replace(column, format=unit_of(column, timestamp_format))
            for column in columns
        }
        self._keys = keys_of(resolved.values())
        self._wanted = tuple(resolved[column.name] for column in wanted)
        self._timestamps = "utc"  # those that are texts; or "zoned"
        self._usable = bool(plan_structures(self._keys, resolved, self._timestamps))
        # How many records each shape explained of late; the most used is tried first.
        self._shapes: Counter[str] = Counter()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def decode(self, values: pa.Array) -> FastRows:
        """Return the rows of those values that a shape explains."""
        indices: Indices = np.empty(0, dtype=np.int64)
        if self._usable and len(values) >= MIN_FAST_RECORDS:
            indices, texts = _readable(values)
            explained = self._explain(texts)
            if len(explained) < len(texts):
                indices, texts = indices[explained], texts.take(explained)
        if not len(indices):
            return self._none()
        try:
            arrays = self._convert(texts)
        except duckdb.Error:
            # Short of memory, say: the strict path gives the same answer, and its count tells.
            return self._none()
        suspect = np.zeros(len(indices), dtype=bool)
        for column, array in zip(self._wanted, arrays, strict=True):
            if not column.nullable and array.null_count:
                suspect |= array.is_null().to_numpy(zero_copy_only=False)
        if suspect.any():
            # A shape leaves no room for this; if DuckDB thinks otherwise, the strict path decides.
            certain = pa.array(~suspect)
            return FastRows(indices[~suspect], [array.filter(certain) for array in arrays])
        return FastRows(indices, arrays)

    def _none(self) -> FastRows:
        arrays = [pa.nulls(0, column.type.arrow) for column in self._wanted]
        return FastRows(np.empty(0, dtype=np.int64), arrays)

    def _explain(self, texts: pa.Array) -> Indices:
        """Return the indices, ascending, of the texts that a shape matches, learning shapes."""
        pending: Indices = np.arange(len(texts), dtype=np.int64)
        explained = np.zeros(len(texts), dtype=bool)
        recent: Counter[str] = Counter()

        def apply(shape: str) -> None:
            nonlocal pending
            subset = texts if len(pending) == len(texts) else texts.take(pending)
            hits = pc.match_substring_regex(subset, shape).to_numpy(zero_copy_only=False)
            explained[pending[hits]] = True
            recent[shape] = int(hits.sum())
            pending = pending[~hits]

        for shape, _ in self._shapes.most_common():
            if len(pending) >= MIN_SHAPE_RECORDS:
                apply(shape)
        for lesson in range(MAX_LESSONS):
            if len(pending) < MIN_SHAPE_RECORDS:
                break
            # Spread over the batch, so that one run of dead records does not end the lessons.
            sample = texts[int(pending[lesson * len(pending) // MAX_LESSONS])].as_py()
            learnt = self._learn(sample)
            if learnt is not None and learnt not in self._shapes and learnt not in recent:
                apply(learnt)
        # Halved, so that a shape that went out of use makes room.
        used = {shape: self._shapes[shape] // 2 + recent[shape] for shape in self._shapes | recent}
        self._shapes = Counter(dict(Counter(used).most_common(MAX_SHAPES)))
        return np.flatnonzero(explained)

    def _learn(self, text: str) -> str | None:
        try:
            members = parse_object(text.encode())
        except Dead:
            return None  # the strict path will say why
        shape = learn_shape(self._keys, members, self._timestamps)
        if shape is None or self._timestamps != "utc" or _matches(shape, text):
            return shape
        zoned = learn_shape(self._keys, members, "zoned")
        if zoned is None or not _matches(zoned, text):
            return shape
        # From now on all timestamps are read with their zones; what matched before still does.
        self._timestamps = "zoned"
        return zoned

    def _convert(self, texts: pa.Array) -> list[pa.Array]:
        if self._connection is None:
            self._connection = connect()
        names = {column.name for column in self._wanted}
        structures = plan_structures(self._keys, names, self._timestamps)
        records: dict[str, pa.Array] = {}
        read = ", ".join(
            f"json_transform(value, '{_literal(structure)}') AS s{number}"
            for number, structure in enumerate(structures)
            if structure
        )
        if read:
            table = (
                self._connection.from_arrow(pa.table({"value": texts}))
                .project(read)
                .to_arrow_table(batch_size=len(texts))  # one chunk: nothing to join
            )
            if table.num_rows != len(texts):  # protects data, so not an assertion
                raise RuntimeError(f"DuckDB made {table.num_rows} rows of {len(texts)} records")
            records = {name: pa.concat_arrays(table[name].chunks) for name in table.column_names}
        arrays = []
        for column in self._wanted:
            place = _place_in(structures, self._keys, column)
            if place is None:
                arrays.append(pa.nulls(len(texts), column.type.arrow))
            else:
                number, indices = place
                arrays.append(_finish(pc.struct_field(records[f"s{number}"], indices), column))
        return arrays


def _literal(structure: Structure) -> str:
    return json.dumps(structure, ensure_ascii=False).replace("'", "''")


def _place_in(
    structures: Sequence[Structure], keys: Keys, column: Column
) -> tuple[int, list[int]] | None:
    """Return which structure has a column, and the numbers of the fields on the way to it."""
    here: object = keys
    for step in steps_of(column):
        here = here.get(str(step)) if isinstance(here, dict) else None
    if not isinstance(here, tuple) or here.index(column) >= len(structures):
        return None
    number = here.index(column)
    indices: list[int] = []
    found: object = structures[number]
    for step in steps_of(column):
        if not isinstance(found, dict) or step not in found:
            return None
        indices.append(list(found).index(step))
        found = found[str(step)]
    return number, indices


def _finish(array: pa.Array, column: Column) -> pa.Array:
    """Return what DuckDB read as the column's own Arrow type."""
    if column.type.kind == "TIMESTAMP" and column.format in TIMESTAMP_UNITS:
        array = pc.multiply(array, 10 ** TIMESTAMP_UNITS[column.format])
    # Not `safe`: it would refuse to round a DOUBLE to a FLOAT.
    return array.cast(column.type.arrow, safe=False)


def _readable(values: pa.Array) -> tuple[Indices, pa.Array]:
    """Return which values are there, within the size limit and UTF-8, and their texts."""
    indices: Indices = np.arange(len(values), dtype=np.int64)
    fits = pc.less_equal(pc.binary_length(values), MAX_VALUE_BYTES).fill_null(False)
    if fits.false_count:
        indices = indices[fits.to_numpy(zero_copy_only=False)]
        values = values.filter(fits)
    try:
        return indices, values.cast(pa.string())
    except pa.ArrowInvalid:
        valid = np.array([_is_utf8(value) for value in values.to_pylist()], dtype=bool)
        return indices[valid], values.filter(pa.array(valid)).cast(pa.string())


def _matches(shape: str, text: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), shape).as_py())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
