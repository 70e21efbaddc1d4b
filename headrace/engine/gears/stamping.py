"""Decode and stamp records: the same code in the driver (short turn) and in tasks (long turn)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import errors
from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.tables.topic_facts import NO_FACTS, TopicFacts, bury_unfit, truncating
from headrace.errors import HeadraceError
from headrace.log.base import PRODUCED, Partition, Range
from headrace.model.definitions import Stream
from headrace.model.nodes import ARRIVAL, COORDINATES
from headrace.plan.spark.names import coordinate_column
from headrace.schema.codec import Decoded, Operation
from headrace.schema.formats import counted_operations
from headrace.time.clocks import NEVER, UNKNOWN, Clock, Mark, Micros, moves, stamp
from headrace.time.lateness import BUCKETS, count_lateness

__all__ = [
    "Clocks",
    "Shaped",
    "SideRecords",
    "Stamper",
    "Summary",
    "failure",
    "gather",
    "input_schema",
    "log_times",
    "raise_failure",
]

# Decoding costs some milliseconds per call, whatever its size: small stored batches are joined.
_GATHER_RECORDS = 131_072
_GATHER_BYTES = 16 << 20

_TIMELESS = "_arrival: the log has no time for this record, and it is the event time"

_STAMPS = [
    ("__partition", pa.int32()),
    ("__offset", pa.int64()),
    ("__watermark", pa.int64()),
    ("__side", pa.binary()),
]


#: Those of a record's coordinates that travel with it only where a view reads them.
_CARRIED = ("_topic", ARRIVAL, "_key", "_headers")


class Shaped(Protocol):
    """What says which columns decoded rows have: a decoder, or a part of one."""

    schema: pa.Schema

    @property
    def wanted(self) -> frozenset[str] | None:
        """The columns that were asked for, a record's own among them; None: those of the stream."""


def input_schema(decoder: Shaped) -> pa.Schema:
    """Return the columns of a fold's input: what the decoder yields, coordinates, and stamps."""
    carried = [
        (coordinate_column(name), COORDINATES[name].arrow)
        for name in _CARRIED
        if name in (decoder.wanted or ())
    ]
    return pa.schema([*list(decoder.schema), *carried, *_STAMPS])


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put batches of records together, without copying them; bounded in records and bytes."""
    waiting: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        waiting.append(batch)
        records += batch.num_rows
        size += batch.nbytes
        if records >= _GATHER_RECORDS or size >= _GATHER_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, records, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def log_times(records: pa.Table) -> pa.ChunkedArray:
    """Return the times of records as the log has them: of arrival, else as producers say."""
    arrivals = records["arrival"]
    if arrivals.null_count and PRODUCED.name in records.column_names:
        return pc.coalesce(arrivals, records[PRODUCED.name])
    return arrivals


def _bury_timeless(records: pa.Table, decoded: Decoded) -> Decoded:
    times = log_times(records)
    if not times.null_count:
        return decoded
    timeless = pc.is_null(times).to_numpy()
    timeless[decoded.dead.to_numpy()] = False
    indices = np.flatnonzero(timeless)
    return decoded.bury(indices, [_TIMELESS] * len(indices))


class Clocks(NamedTuple):
    """The clock of a partition before and right after each readable record of a batch."""

    clock_us: Micros
    after_us: Micros


class SideRecords(NamedTuple):
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
    duplicate: int
    unguarded: int  # readable records whose arrival nobody stamped
    dead: SideRecords
    end: Clock  # at the end of the range
    lateness: Mapping[int, int] = field(default_factory=dict)  # bucket to records, if it is learnt
    newest_arrival_us: int | None = None  # None: no record, or the log stamped none
    operations: Mapping[Operation, int] = field(default_factory=dict)  # of a table's records
    moved: int = 0  # records that are two rows: of a key, and of the one that the row had before
    truncated: int | None = None  # the offset of the last record that truncates a table

    def to_bytes(self) -> bytes:
        """Return the summary as bytes, to travel through Spark."""
        counts = [self.read, self.accepted, self.duplicate, self.unguarded]
        head = [self.stream, *self.range.partition, *self.range[1:], *counts]
        head.append(self.newest_arrival_us)
        table = pa.table({"offset": self.dead.offsets, "reason": self.dead.reasons})
        table = table.replace_schema_metadata(
            {
                "summary": json.dumps(
                    [
                        *head,
                        [*self.lateness.items()],
                        [*self.operations.items()],
                        self.moved,
                        self.truncated,
                        *self.end,
                    ]
                )
            }
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @staticmethod
    def from_bytes(data: bytes) -> "Summary":
        """Return the summary that `to_bytes` wrote, or raise the error that `failure` wrote."""
        table = pa.ipc.open_stream(data).read_all().combine_chunks()
        raise_failure(table)
        head = json.loads(table.schema.metadata[b"summary"])
        stream, topic, partition, start, end = head[:5]
        read, accepted, duplicate, unguarded, newest_us, lateness, operations = head[5:12]
        moved, truncated = head[12:14]
        dead = SideRecords(table["offset"].combine_chunks(), table["reason"].combine_chunks())
        range = Range(Partition(topic, partition), start, end)
        counts = read, accepted, duplicate, unguarded
        done = {Operation(each): count for each, count in operations}
        end = Clock(*head[14:])
        return Summary(
            stream, range, *counts, dead, end, dict(lateness), newest_us, done, moved, truncated
        )


def raise_failure(told: pa.Table) -> None:
    """Raise the error that a task told with `failure`, if this is one."""
    if found := told.schema.metadata.get(b"failure"):
        name, message = json.loads(found)
        raise getattr(errors, name)(message)


def failure(error: HeadraceError) -> bytes:
    """Return, in place of what a task found, why it could not read the log or its state.

    Raised in the task it would be one of Spark's errors, and be taken for the view's fault.
    """
    schema = pa.schema([], {"failure": json.dumps([type(error).__name__, str(error)])})
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, schema).close()
    return bytes(sink.getvalue())


class Stamper:
    """Stamps one range that is decoded, batch by batch, in offset order.

    `clock` is the one at the range's start; `marks` act after it, up to the range's end.
    `duplicates` move the clock and are left out. `clocks` are those of the last batch's rows,
    where ids are unique. The lateness of records is counted where a delay is learnt from it, or
    when asked for; `on_stamped` is told the event times of readable records, and the clocks and
    watermarks that hold before them.
    """

    clocks: Clocks

    def __init__(
        self,
        stream: Stream,
        range: Range,
        clock: Clock,
        decoder: Shaped,
        *,
        marks: Sequence[Mark] = (),
        duplicates: OffsetSet = NO_OFFSETS,
        counts_lateness: bool | None = None,
        on_stamped: Callable[[Micros, Micros, Micros], None] | None = None,
        facts: TopicFacts = NO_FACTS,
    ) -> None:
        self.stream = stream
        self._facts = facts
        self._on_stamped = on_stamped
        self._counts_lateness = (
            stream.adaptive is not None if counts_lateness is None else counts_lateness
        )
        self._range = range
        self._clock = clock
        self._decoder = decoder
        self._marks = list(marks)
        self._duplicates = duplicates
        self._read = self._accepted = self._duplicate = self._unguarded = 0
        self._newest_us: int | None = None
        self._lateness = np.zeros(BUCKETS, np.int64)
        self._dead: list[SideRecords] = []
        self._operations = np.zeros(len(Operation), np.int64)
        self._moved = 0
        self._truncated: int | None = None
        self._schema = input_schema(decoder)

    def accept(self, records: pa.Table, decoded: Decoded) -> Decoded:
        """Take a batch that was decoded, and keep what is dead."""
        if self.stream.event_time == ARRIVAL:
            decoded = _bury_timeless(records, decoded)
        if decoded.operations is not None:
            decoded = bury_unfit(self._facts, records, decoded)
            self._note_operations(records, decoded)
        if len(decoded.dead):
            offsets = records["offset"].take(decoded.dead).combine_chunks()
            self._dead.append(SideRecords(offsets, decoded.reasons))
        self._read += records.num_rows
        if (arrival_us := pc.max(records["arrival"].cast(pa.int64())).as_py()) is not None:
            self._newest_us = max(arrival_us, self._newest_us or arrival_us)
        return decoded

    def _note_operations(self, records: pa.Table, decoded: Decoded) -> None:
        assert decoded.operations is not None
        done = decoded.operations[decoded.living]
        self._operations += np.bincount(done, minlength=len(Operation))
        if (truncates := truncating(decoded)).any():
            self._truncated = int(records["offset"].to_numpy()[truncates][-1])

    def stamp(self, records: pa.Table, decoded: Decoded) -> pa.RecordBatch:
        """Return the readable records of a decoded batch as input of a fold."""
        count = records.num_rows
        readable = decoded.readable
        watermarks: pa.Array
        if self.stream.event_time is None:
            watermarks = pa.nulls(count, pa.int64())
        else:
            stamped_us = self._stamp(records, decoded, readable)
            watermarks = pa.array(stamped_us, mask=stamped_us == NEVER)
        partition = pa.repeat(pa.scalar(self._range.partition.number, pa.int32()), count)
        offsets = records["offset"].combine_chunks()
        stamps = [partition, offsets, watermarks, pa.nulls(count, pa.binary())]
        carried = [self._carried(records, name) for name in _CARRIED if self._carries(name)]
        own = decoded.rows.slice(0, count)
        rows = pa.record_batch([*own.columns, *carried, *stamps], schema=self._schema)
        kept = readable
        if self._duplicates.bits:
            kept = readable & ~self._duplicates.holds(offsets.to_numpy())
            self._duplicate += int(readable.sum() - kept.sum())
        self._accepted += int(kept.sum())
        rows = self._with_moved(rows, decoded, kept)
        if self.stream.event_time is not None and records["arrival"].null_count:
            unstamped = pc.is_null(records["arrival"]).to_numpy()
            self._unguarded += int((unstamped & readable).sum())
        return rows

    def _with_moved(
        self, rows: pa.RecordBatch, decoded: Decoded, kept: np.ndarray
    ) -> pa.RecordBatch:
        """Return the rows that are kept, and the second rows of their records behind them."""
        whole, count = rows, rows.num_rows
        if not kept.all():
            rows = rows.filter(pa.array(kept))
        here = kept[decoded.moved]
        if not here.any():
            return rows
        second = decoded.rows.slice(count).filter(pa.array(here))
        stamps = whole.take(pa.array(decoded.moved[here])).columns[second.num_columns :]
        self._moved += second.num_rows
        more = pa.record_batch([*second.columns, *stamps], schema=self._schema)
        return pa.concat_batches([rows, more])

    def _carries(self, name: str) -> bool:
        return name in (self._decoder.wanted or ())

    def _carried(self, records: pa.Table, name: str) -> pa.Array:
        if name == "_topic":
            return pa.repeat(pa.scalar(self._range.partition.topic), records.num_rows)
        if name == self.stream.event_time:
            return log_times(records).combine_chunks()
        found = records[name.removeprefix("_")].combine_chunks()
        return found.cast(COORDINATES[name].arrow)

    def move_clock(self, records: pa.Table, decoded: Decoded) -> None:
        """Move the clock over a batch without stamping it."""
        if self.stream.event_time is not None:
            self._stamp(records, decoded, decoded.readable)

    def summary(self) -> Summary:
        """Return what was found, once the whole range went through."""
        dead = SideRecords(
            pa.concat_arrays([part.offsets for part in self._dead] or [pa.array([], pa.int64())]),
            pa.concat_arrays([part.reasons for part in self._dead] or [pa.array([], pa.string())]),
        )
        counts = self._read, self._accepted, self._duplicate, self._unguarded
        end = self._clock.marked(self._marks)
        buckets = np.flatnonzero(self._lateness)
        lateness = dict(zip(buckets.tolist(), self._lateness[buckets].tolist(), strict=True))
        counted = counted_operations(self.stream.encoding)
        operations = {each: int(self._operations[each]) for each in counted}
        return Summary(
            self.stream.name,
            self._range,
            *counts,
            dead,
            end,
            lateness,
            self._newest_us,
            operations,
            self._moved,
            self._truncated,
        )

    def _stamp(self, records: pa.Table, decoded: Decoded, readable: np.ndarray) -> np.ndarray:
        """Return the watermarks of a batch, and move the clock over it."""
        if self.stream.event_time == ARRIVAL:
            event_times = log_times(records).cast(pa.int64())
        else:
            event_times = decoded.rows[self.stream.event_time].cast(pa.int64())
            event_times = event_times.slice(0, records.num_rows)
        arrivals = records["arrival"].cast(pa.int64())
        times_us = pc.fill_null(event_times, NEVER).to_numpy(zero_copy_only=False)
        moves_us = moves(
            times_us,
            pc.fill_null(arrivals, UNKNOWN).to_numpy(),
            readable,
        )
        here: list[Mark] = []
        offsets = None
        if self._marks and len(moves_us):
            offsets = records["offset"].to_numpy()
            here = [mark for mark in self._marks if mark.offset <= offsets[-1]]
            self._marks = self._marks[len(here) :]
        stamped = stamp(moves_us, self._clock, offsets=offsets, marks=here)
        self._clock = stamped.end
        if self._counts_lateness:
            self._lateness += count_lateness(moves_us, stamped.clocks_us)
        if self._on_stamped is not None:
            stamps = (times_us, stamped.clocks_us, stamped.watermarks_us)
            self._on_stamped(*(each[readable] for each in stamps))
        if self.stream.unique is not None:
            before = stamped.clocks_us[readable]
            self.clocks = Clocks(before, np.maximum(before, moves_us[readable]))
        return stamped.watermarks_us
