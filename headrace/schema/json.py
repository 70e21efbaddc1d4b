"""Decode JSON values into typed Arrow columns: lossless or dead, and fast where it is easy.

How: records of a known shape are converted together (json_fast.py), every other one by itself,
strictly (json_strict.py). Which path a record takes never shows in the answer, so neither do the
cut into batches and what the decoder has seen before (docs/design.md, The four promises).
"""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from headrace.schema.codec import Decoded, Encoding
from headrace.schema.json_fast import FastPath
from headrace.schema.json_strict import Dead, decode_strict
from headrace.schema.json_values import TIMESTAMP_UNITS
from headrace.schema.types import Column

__all__ = ["JsonCodec", "JsonDecoder"]


class JsonDecoder:
    """Decodes batches by one schema. Picklable; to be used by one thread at a time.

    Every column decides whether a record is dead; the rows have the `wanted` ones, or all.
    `fast_count` and `strict_count` say how many records took which path so far.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        timestamp_format: str | None = None,
        wanted: Collection[str] | None = None,
    ) -> None:
        names = [column.name for column in columns]
        if not names:
            raise ValueError("a decoder needs at least one column")
        if len(set(names)) < len(names):
            raise ValueError(f"two columns have the same name: {', '.join(names)}")
        if timestamp_format is not None and timestamp_format not in TIMESTAMP_UNITS:
            choices = ", ".join(TIMESTAMP_UNITS)
            raise ValueError(f"timestamp_format is {timestamp_format!r}; write one of {choices}")
        self.columns = tuple(columns)
        self.wanted = None if wanted is None else frozenset(wanted)
        self.timestamp_format = timestamp_format
        # Nullable even where the column is not: the rows of dead records are null.
        kept = [column for column in columns if wanted is None or column.name in wanted]
        kept = kept or list(columns[:1])  # a batch without columns would not know its length
        self.schema = pa.schema([(column.name, column.type.arrow) for column in kept])
        self.fast_count = 0
        self.strict_count = 0
        self._fast_path = FastPath(self.columns, kept, timestamp_format)

    def decode(self, values: pa.Array | pa.ChunkedArray) -> Decoded:
        """Return one row for every value, in order; `values` are binary, and null is dead."""
        # Joined, although that copies: every chunk would compile the shapes anew (0.5 ms).
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        values = values.cast(pa.binary())
        fast = self._fast_path.decode(values)
        self.fast_count += len(fast.indices)
        self.strict_count += len(values) - len(fast.indices)
        if len(fast.indices) == len(values):
            return self._decoded(fast.arrays, [], [])

        is_fast = np.zeros(len(values), dtype=bool)
        is_fast[fast.indices] = True
        strict_indices = np.flatnonzero(~is_fast)
        rows: list[dict[str, object]] = []
        dead: list[int] = []
        reasons: list[str] = []
        # Where each row will be found: the fast ones first, then the strict ones, then one null.
        source = np.empty(len(values), dtype=np.int64)
        source[fast.indices] = np.arange(len(fast.indices))
        strict_values = values.take(pa.array(strict_indices)).to_pylist()
        for index, value in zip(strict_indices.tolist(), strict_values, strict=True):
            try:
                rows.append(decode_strict(self.columns, value, self.timestamp_format))
            except Dead as error:
                dead.append(index)
                reasons.append(error.reason)
            else:
                source[index] = len(fast.indices) + len(rows) - 1
        source[dead] = len(fast.indices) + len(rows)
        order = pa.array(source)
        arrays = [
            pa.concat_arrays(
                [array, pa.array([row[name] for row in rows], array.type), pa.nulls(1, array.type)]
            ).take(order)
            for name, array in zip(self.schema.names, fast.arrays, strict=True)
        ]
        return self._decoded(arrays, dead, reasons)

    def _decoded(self, arrays: list[pa.Array], dead: list[int], reasons: list[str]) -> Decoded:
        return Decoded(
            rows=pa.RecordBatch.from_arrays(arrays, schema=self.schema),
            dead=pa.array(dead, pa.int64()),
            reasons=pa.array(reasons, pa.string()),
        )


class JsonCodec:
    """A record is the JSON object in its value."""

    reads: tuple[str, ...] = ("value",)

    def __init__(self, encoding: Encoding, wanted: Collection[str] | None) -> None:
        self._decoder = JsonDecoder(
            encoding.columns, timestamp_format=encoding.timestamp_format, wanted=wanted
        )
        self.schema = self._decoder.schema
        self.wanted = self._decoder.wanted

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order."""
        return self._decoder.decode(records["value"])
