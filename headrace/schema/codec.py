"""What a codec is: whole records in; typed rows, operations, and the dead with reasons out.

`formats.py` makes the codec of an encoding; no other module asks which format it is.

The records of a stream are appended, one row each. Those of a table are changes: what a record does
is its `Operation`. Rows of changes have columns more: `DELETED` says whether the key's row is gone,
`UNSENT` of some formats which columns are to stay as they were.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.types import Column, DataType, parse_type

__all__ = [
    "CHANGE_COLUMNS",
    "DELETED",
    "TRUNCATE_HEADER",
    "UNSENT",
    "Change",
    "Codec",
    "Decoded",
    "Encoding",
    "Operation",
]

#: The column of a change that says whether it deletes the row of its key.
DELETED = "_deleted"
#: The one that names the columns whose values it did not bring; null: it brought all.
UNSENT = "_unsent"
#: The header of a record that truncates: others like it are in all partitions of the topic.
TRUNCATE_HEADER = "headrace.truncate"
#: The columns that rows of changes have besides those that are declared, with their types.
CHANGE_COLUMNS: dict[str, DataType] = {
    DELETED: parse_type("BOOLEAN"),
    UNSENT: parse_type("ARRAY<STRING>"),
}


class Operation(IntEnum):
    """What a record does."""

    APPEND = 0
    UPSERT = 1  # its row is the newest of its key
    DELETE = 2
    IGNORE = 3  # nothing, by its form
    TRUNCATE = 4  # all rows of earlier records of its partition are gone

    @property
    def has_row(self) -> bool:
        """Whether a record that does this is a row."""
        return self not in (Operation.IGNORE, Operation.TRUNCATE)


_ROWLESS = [each for each in Operation if not each.has_row]
_NONE: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Encoding:
    """How the records of a topic are written, and the columns that are read of them.

    With a `key` they are changes of a table with that primary key.
    """

    format: str
    columns: tuple[Column, ...]
    timestamp_format: str | None = None  # None: ISO 8601; else one of TIMESTAMP_UNITS
    key: tuple[str, ...] = ()
    key_from: str = "key"  # or "value": the part of the record that has the primary key
    decimal_format: str | None = None  # of texts of DECIMAL in envelopes without a schema
    source_table: str | None = None  # whose changes these are; None: of one that is not named


@dataclass(frozen=True)
class Change:
    """What one record says: its operation, and the values of its row.

    `moved` is a second row, where the record has one: it deletes the key that the row had before.
    """

    operation: Operation
    values: dict[str, object]
    moved: dict[str, object] | None = None


@dataclass(frozen=True)
class Decoded:
    """What became of a batch. A row says nothing where its record is dead or has no effect.

    There is a row for each record, in order, and behind them the second rows of those that have
    one: `moved` says of which records they are, ascending.
    """

    rows: pa.RecordBatch
    dead: pa.Array  # int64: indices of rows, ascending
    reasons: pa.Array  # string, one for each of `dead`
    operations: npt.NDArray[np.int8] | None = None  # one for each record; None: all are appended
    moved: npt.NDArray[np.int64] = field(default_factory=lambda: _NONE)

    @property
    def count(self) -> int:
        """How many records the batch has."""
        return int(self.rows.num_rows) - len(self.moved)

    @property
    def living(self) -> npt.NDArray[np.bool_]:
        """Which records are not dead."""
        found = np.ones(self.count, dtype=bool)
        found[self.dead.to_numpy()] = False
        return found

    @property
    def readable(self) -> npt.NDArray[np.bool_]:
        """Which records have a row."""
        found = self.living
        if self.operations is not None:
            found &= ~np.isin(self.operations, _ROWLESS)
        return found

    def slice(self, start: int, length: int) -> "Decoded":
        """Return what became of a part of the batch."""
        first, end = np.searchsorted(self.dead.to_numpy(), [start, start + length])
        rows = self.rows.slice(start, length)
        low, high = np.searchsorted(self.moved, [start, start + length])
        if low < high:
            rows = pa.concat_batches([rows, self.rows.slice(self.count + low, high - low)])
        return Decoded(
            rows,
            pc.subtract(self.dead.slice(first, end - first), start),
            self.reasons.slice(first, end - first),
            None if self.operations is None else self.operations[start : start + length],
            self.moved[low:high] - start,
        )

    def bury(self, indices: np.ndarray, reasons: Sequence[str]) -> "Decoded":
        """Return the same batch with more dead records, in any order; none is dead already."""
        if not len(indices):
            return self
        dead = np.concatenate([self.dead.to_numpy(), indices])
        order = pa.array(np.argsort(dead, kind="stable"))
        told = pa.concat_arrays([self.reasons, pa.array(reasons, pa.string())])
        return replace(self, dead=pa.array(dead, pa.int64()).take(order), reasons=told.take(order))


class Codec(Protocol):
    """Decodes batches by one encoding. Picklable; to be used by one thread at a time.

    Every column decides whether a record is dead; the rows have the `wanted` ones, or all, as
    `schema` says. `reads` are the columns of records that it looks at.
    """

    schema: pa.Schema
    reads: tuple[str, ...]

    @property
    def wanted(self) -> frozenset[str] | None:
        """The columns that were asked for; None: all."""

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order."""
