"""What a codec is: whole records in; typed rows, operations, and the dead with reasons out.

`formats.py` makes the codec of an encoding; no other module asks which format it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.types import Column

__all__ = ["Codec", "Decoded", "Encoding"]


@dataclass(frozen=True)
class Encoding:
    """How the records of a topic are written, and the columns that are read of them."""

    format: str
    columns: tuple[Column, ...]
    timestamp_format: str | None = None  # None: ISO 8601; else one of TIMESTAMP_UNITS


@dataclass(frozen=True)
class Decoded:
    """What became of a batch. A row says nothing where its record is dead."""

    rows: pa.RecordBatch
    dead: pa.Array  # int64: indices of rows, ascending
    reasons: pa.Array  # string, one for each of `dead`

    def slice(self, start: int, length: int) -> "Decoded":
        """Return what became of a part of the batch."""
        first, end = np.searchsorted(self.dead.to_numpy(), [start, start + length])
        return Decoded(
            self.rows.slice(start, length),
            pc.subtract(self.dead.slice(first, end - first), start),
            self.reasons.slice(first, end - first),
        )

    def bury(self, indices: np.ndarray, reasons: Sequence[str]) -> "Decoded":
        """Return the same batch with more dead records, in any order; none is dead already."""
        if not len(indices):
            return self
        dead = np.concatenate([self.dead.to_numpy(), indices])
        order = pa.array(np.argsort(dead, kind="stable"))
        told = pa.concat_arrays([self.reasons, pa.array(reasons, pa.string())])
        return Decoded(self.rows, pa.array(dead, pa.int64()).take(order), told.take(order))


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
