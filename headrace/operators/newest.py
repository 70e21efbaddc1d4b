"""The newest change of every key among many: what a table's fold makes of them, over Arrow.

It is what the query of the fold asks of Spark, without a sort: Spark aggregates structs by sorting
all rows (5 million upserts of a million keys: 18 s of 23). The result may have several rows of a
key, which merge as any states do: those of a batch with values that were not sent are all given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Newest", "fold_newest"]

_ROW, _PARTITION, _OFFSET = "__row", "__partition", "__offset"


@dataclass(frozen=True)
class Newest:
    """What is made of changes: columns by name, as the table has them, in its order.

    `members` are the fields of the newest change's value, each with its column. `apart` are the
    states of columns that may be unsent, each with its column; `unsent` names those of a change.
    """

    schema: pa.Schema  # keys, count of changes, states
    keys: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
    apart: tuple[str, ...]
    unsent: str | None

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it reads of changes."""
        columns = {*self.keys, *(column for _, column in self.members), *self.apart}
        return frozenset(columns if self.unsent is None else columns | {self.unsent})


def fold_newest(newest: Newest, changes: pa.Table) -> pa.RecordBatch:
    """Return the states of all keys of changes, in the columns of `newest.schema`."""
    changes = changes.combine_chunks()
    unsent = None if newest.unsent is None else changes[newest.unsent].combine_chunks()
    if unsent is not None and unsent.null_count == len(unsent):
        unsent = None
    counts = pa.repeat(pa.scalar(1, pa.int64()), changes.num_rows)
    if unsent is None:
        changes, counts = _thinned(changes, newest.keys)
    partition, offset = (changes[name].combine_chunks() for name in (_PARTITION, _OFFSET))
    zeros = pa.repeat(pa.scalar(0, pa.int64()), changes.num_rows)
    place = [zeros, partition, offset]
    states: list[pa.Array] = [changes[name].combine_chunks() for name in newest.keys]
    states.append(counts)
    value = [changes[column].combine_chunks() for _, column in newest.members]
    own = newest.schema.field(len(states)).type
    states.append(_state(own, place, _struct(own.field("value").type, value)))
    states += [partition, partition]
    for name in newest.apart:
        type = newest.schema.field(len(states)).type
        state = _state(type, place, changes[name].combine_chunks())
        if unsent is not None:
            state = pc.if_else(pa.array(_lacks(unsent, name)), pa.scalar(None, type), state)
        states.append(state)
    return pa.RecordBatch.from_arrays(states, schema=newest.schema)


def _thinned(changes: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, pa.Array]:
    """Return the newest change of each key, and how many changes there were."""
    offsets = changes[_OFFSET].to_numpy()
    if len(offsets) and (np.diff(offsets) < 0).any():
        changes = changes.take(pa.array(np.argsort(offsets, kind="stable")))
    rows = changes.select(list(keys)).append_column(
        _ROW, pa.array(np.arange(changes.num_rows, dtype=np.int64))
    )
    found = rows.group_by(list(keys)).aggregate([(_ROW, "max"), (_ROW, "count")])
    places = found[f"{_ROW}_max"].combine_chunks()
    return changes.take(places), found[f"{_ROW}_count"].combine_chunks().cast(pa.int64())


def _struct(type: pa.DataType, arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, type, strict=True)],
        fields=list(type),
    )


def _state(type: pa.DataType, place: Sequence[pa.Array], value: pa.Array) -> pa.Array:
    """Return states of `last`: where a value stands, and the value."""
    tiebreak = _struct(type.field("tiebreak").type, place)
    return pa.StructArray.from_arrays([tiebreak, value], fields=list(type))


def _lacks(unsent: pa.Array, name: str) -> np.ndarray:
    """Return which changes did not bring a column's value."""
    return np.array([each is not None and name in each for each in unsent.to_pylist()], dtype=bool)
