"""Decode and stamp records: the same code in the driver (short turn) and in tasks (long turn)."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import errors
from headrace.errors import LogError, Unreachable
from headrace.log.base import RECORDS, Partition, Range
from headrace.model.definitions import Stream
from headrace.schema.json import Decoded, JsonDecoder
from headrace.time.clocks import NEVER, UNKNOWN, largest_time, stamp

__all__ = ["Dead", "Stamper", "Summary", "failure", "gather", "input_schema"]

# Decoding costs some milliseconds per call, whatever its size: small stored batches are joined.
_GATHER_RECORDS = 131_072
_GATHER_BYTES = 16 << 20

_STAMPS = [
    ("__partition", pa.int32()),
    ("__offset", pa.int64()),
    ("__watermark", pa.int64()),
    ("__side", pa.binary()),
]


def input_schema(decoder: JsonDecoder) -> pa.Schema:
    """Return the columns of a fold's input: what the decoder yields, and the stamps."""
    return pa.schema([*list(decoder.schema), *_STAMPS])


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put batches of records together, without copying them; bounded in records and bytes."""
    waiting: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        waiting.append(batch)
        records += batch.num_rows
        size += batch.nbytes
        if records >= _GATHER_RECORDS or size >= _GATHER_BYTES:
            yield pa.Table.from_batches(waiting, RECORDS)
            waiting, records, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, RECORDS)


class Dead(NamedTuple):
    """Records of one partition that cannot be used, and why."""

    offsets: pa.Array
    reasons: pa.Array


@dataclass(frozen=True)
class Summary:
    """What decoding a range found, besides its rows."""

    stream: str
    range: Range
    read: int  # records of the range; a log may leave out offsets
    accepted: int
    dead: Dead
    end_clock_us: int

    def to_bytes(self) -> bytes:
        """Return the summary as bytes, to travel through Spark."""
        head = [self.stream, *self.range.partition, *self.range[1:], self.read, self.accepted]
        table = pa.table({"offset": self.dead.offsets, "reason": self.dead.reasons})
        table = table.replace_schema_metadata({"summary": json.dumps([*head, self.end_clock_us])})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @staticmethod
    def from_bytes(data: bytes) -> "Summary":
        """Return the summary that `to_bytes` wrote, or raise the error that `failure` wrote."""
        table = pa.ipc.open_stream(data).read_all().combine_chunks()
        if found := table.schema.metadata.get(b"failure"):
            name, message = json.loads(found)
            raise getattr(errors, name)(message)
        head = json.loads(table.schema.metadata[b"summary"])
        stream, topic, partition, start, end, read, accepted, clock_us = head
        dead = Dead(table["offset"].combine_chunks(), table["reason"].combine_chunks())
        range = Range(Partition(topic, partition), start, end)
        return Summary(stream, range, read, accepted, dead, clock_us)


def failure(error: LogError | Unreachable) -> bytes:
    """Return, in place of a summary, why a task could not read the log.

    Raised in the task it would be one of Spark's errors, and be taken for the view's fault.
    """
    schema = pa.schema([], {"failure": json.dumps([type(error).__name__, str(error)])})
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, schema).close()
    return bytes(sink.getvalue())


class Stamper:
    """Decodes and stamps one range, batch by batch, in offset order."""

    def __init__(self, stream: Stream, range: Range, clock_us: int, decoder: JsonDecoder) -> None:
        self._stream = stream
        self._range = range
        self._clock_us = clock_us
        self._decoder = decoder
        self._read = self._accepted = 0
        self._dead: list[Dead] = []
        self._schema = input_schema(decoder)

    def decode(self, records: pa.Table) -> Decoded:
        """Decode one batch, and keep what is dead."""
        return self.accept(records, self._decoder.decode(records["value"]))

    def accept(self, records: pa.Table, decoded: Decoded) -> Decoded:
        """Take a batch that was decoded together with others, and keep what is dead."""
        if len(decoded.dead):
            offsets = records["offset"].take(decoded.dead).combine_chunks()
            self._dead.append(Dead(offsets, decoded.reasons))
        self._read += records.num_rows
        return decoded

    def stamp(self, records: pa.Table, decoded: Decoded) -> pa.RecordBatch:
        """Return the readable records of a decoded batch as input of a fold."""
        count = records.num_rows
        readable = np.ones(count, dtype=bool)
        readable[decoded.dead.to_numpy()] = False
        watermarks: pa.Array
        if self._stream.event_time is None:
            watermarks = pa.nulls(count, pa.int64())
        else:
            times = self._times(records, decoded)
            stamped = stamp(*times, readable, self._clock_us)
            self._clock_us = stamped.end_clock_us
            never = stamped.clocks_us == NEVER
            watermarks = pa.array(stamped.clocks_us - self._stream.delay_us, mask=never)
        partition = pa.repeat(pa.scalar(self._range.partition.number, pa.int32()), count)
        offsets = records["offset"].combine_chunks()
        stamps = [partition, offsets, watermarks, pa.nulls(count, pa.binary())]
        rows = pa.record_batch([*decoded.rows.columns, *stamps], schema=self._schema)
        if not readable.all():
            rows = rows.filter(pa.array(readable))
        self._accepted += rows.num_rows
        return rows

    def move_clock(self, records: pa.Table, decoded: Decoded) -> None:
        """Move the clock over a batch without stamping it."""
        if self._stream.event_time is not None:
            readable = np.ones(records.num_rows, dtype=bool)
            readable[decoded.dead.to_numpy()] = False
            moved = largest_time(*self._times(records, decoded), readable)
            self._clock_us = max(self._clock_us, moved)

    def summary(self) -> Summary:
        """Return what was found, once the whole range went through."""
        dead = Dead(
            pa.concat_arrays([part.offsets for part in self._dead] or [pa.array([], pa.int64())]),
            pa.concat_arrays([part.reasons for part in self._dead] or [pa.array([], pa.string())]),
        )
        counts = self._read, self._accepted
        return Summary(self._stream.name, self._range, *counts, dead, self._clock_us)

    def _times(self, records: pa.Table, decoded: Decoded) -> tuple[np.ndarray, np.ndarray]:
        event_times = decoded.rows[self._stream.event_time].cast(pa.int64())
        arrivals = records["arrival"].cast(pa.int64())
        return (
            pc.fill_null(event_times, NEVER).to_numpy(zero_copy_only=False),
            pc.fill_null(arrivals, UNKNOWN).to_numpy(),
        )
