"""What a codec is: whole records in; typed rows, operations, and the dead with reasons out.

`formats.py` makes the codec of an encoding; no other module asks which format it is.

The records of a stream are appended, one row each. Those of a table are changes: what a record does
is its `Operation`. Rows of changes have one column more: `DELETED` says whether the key's row is
gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.types import Column, DataType, parse_type

__all__ = ["CHANGE_COLUMNS", "DELETED", "Change", "Codec", "Decoded", "Encoding", "Operation"]

#: The column of a change that says whether it deletes the row of its key.
DELETED = "_deleted"
#: The columns that rows of changes have besides those that are declared.
CHANGE_COLUMNS: dict[str, DataType] = {DELETED: parse_type("BOOLEAN")}


class Operation(IntEnum):
    """What a record does."""

    APPEND = 0
    UPSERT = 1  # its row is the newest of its key
    DELETE = 2
    IGNORE = 3  # nothing, by its form


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


@dataclass(frozen=True)
class Change:
    """What one record says: its operation, and the values of its row."""

    operation: Operation
    values: dict[str, object]


@dataclass(frozen=True)
class Decoded:
    """What became of a batch. A row says nothing where its record is dead or has no effect."""

    rows: pa.RecordBatch
    dead: pa.Array  # int64: indices of rows, ascending
    reasons: pa.Array  # string, one for each of `dead`
    operations: npt.NDArray[np.int8] | None = None  # one for each record; None: all are appended

    @property
    def living(self) -> npt.NDArray[np.bool_]:
        """Which records are not dead."""
        found = np.ones(self.rows.num_rows, dtype=bool)
        found[self.dead.to_numpy()] = False
        return found

    @property
    def readable(self) -> npt.NDArray[np.bool_]:
        """Which records have a row."""
        found = self.living
        if self.operations is not None:
            found &= self.operations != Operation.IGNORE
        return found

    def slice(self, start: int, length: int) -> "Decoded":
        """Return what became of a part of the batch."""
        first, end = np.searchsorted(self.dead.to_numpy(), [start, start + length])
        return Decoded(
            self.rows.slice(start, length),
            pc.subtract(self.dead.slice(first, end - first), start),
            self.reasons.slice(first, end - first),
            None if self.operations is None else self.operations[start : start + length],
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
