"""Reading a partition: ranges become pieces of segments, pieces become batches of records.

Promises:
- A reader takes no lock and sees nothing past the acknowledged end.
- Large batches are handed out where they are mapped; runs of small ones are copied together, so
  that a topic filled record by record does not cost its reader a batch per record.
- A split reads the same records in any process, from the files alone.
"""

import bisect
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.errors import UsageError
from headrace.log.base import Extent, Partition, Range
from headrace.log.checks import check_range
from headrace.log.embedded.ends import Ends, read_ends
from headrace.log.embedded.segments import (
    MAX_OPEN_SEGMENTS,
    Piece,
    Segment,
    gone,
    list_segments,
    lost_file,
    segment_path,
)

__all__ = ["EmbeddedSplit", "Reader"]

DEFAULT_BATCH_RECORDS = 65_536
# A stored batch below both is small. Measured on 2 cores with records of 100 bytes: reading a batch
# takes 40 µs; joining adds at most 3 µs to one of up to 100 records, but 18 µs to one of 500.
SMALL_RECORDS = 128
SMALL_BYTES = 64 * 1024
# What is copied together at most: 4,096 records, or about a megabyte.
JOINED_RECORDS = 4096
JOINED_BYTES = 1 << 20


@dataclass(frozen=True)
class EmbeddedSplit:
    """A part of a range and where its bytes are."""

    range: Range
    pieces: tuple[Piece, ...]

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the split's records, in offset order, as RECORDS batches. LogDamaged."""
        stored = (batch for piece in self.pieces for batch in piece.read())
        return _cut(_join(stored), DEFAULT_BATCH_RECORDS)


class Reader:
    """The acknowledged records of one partition. Safe for several threads."""

    def __init__(self, folder: Path, partition: Partition) -> None:
        self._folder = folder
        self._partition = partition
        self._mutex = threading.Lock()
        self._bases: list[int] = []
        self._segments: OrderedDict[int, Segment] = OrderedDict()

    def extent(self, ends: Ends) -> Extent:
        """Return what readers may see while the partition ends like this."""
        return Extent(ends.first, ends.acknowledged.offset)

    def read(self, range: Range, ends: Ends, *, max_batch_records: int) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range. PositionLost at once, LogDamaged on the way."""
        if max_batch_records < 1:
            raise UsageError(f"max_batch_records is {max_batch_records}; it must be at least 1.")
        check_range(range, self.extent(ends))
        stored = (
            batch
            for segment, start, end, size in self._parts(range, ends)
            for batch in segment.piece(start, end, size=size).read(segment.buffer(size))
        )
        return _cut(_join(stored), max_batch_records)

    def measure(self, range: Range, ends: Ends) -> int:
        """Return how many bytes the stored batches have that hold records of a range."""
        check_range(range, self.extent(ends))
        total = 0
        for segment, start, end, size in self._parts(range, ends):
            first, _ = segment.locate(start, size=size)
            last, header = segment.locate(end - 1, size=size)
            total += last + header.length - first
        return total

    def splits(self, range: Range, ends: Ends, *, max_records: int) -> list[EmbeddedSplit]:
        """Cut a range into parts of `max_records`, the last one perhaps smaller."""
        if max_records < 1:
            raise UsageError(f"max_records is {max_records}; it must be at least 1.")
        check_range(range, self.extent(ends))
        splits: list[EmbeddedSplit] = []
        start = range.start
        while start < range.end:
            part = Range(range.partition, start, min(start + max_records, range.end))
            pieces = tuple(
                segment.piece(start, end, size=size)
                for segment, start, end, size in self._parts(part, ends)
            )
            splits.append(EmbeddedSplit(part, pieces))
            start = part.end
        return splits

    def _parts(self, range: Range, ends: Ends) -> Iterator[tuple[Segment, int, int, int]]:
        """Yield (segment, start, end, bytes to map) for every segment with records of the range."""
        bases = self._list(ends)
        for base, next_base in zip(bases, [*bases[1:], ends.acknowledged.offset], strict=True):
            start, end = max(range.start, base), min(range.end, next_base)
            if start < end:
                segment = self._segment(base)
                yield segment, start, end, self._size(segment, ends)

    def _size(self, segment: Segment, ends: Ends) -> int:
        """Return how far a segment's acknowledged bytes reach. PositionLost."""
        if segment.base_offset == ends.acknowledged.segment:
            return ends.acknowledged.position
        # A segment that is not the last was complete when it was first mapped after the roll; one
        # mapped before is mapped again, since its length grew past the mapping.
        try:
            return segment.path.stat().st_size
        except FileNotFoundError as error:
            raise gone(self._partition, segment.base_offset, segment.path) from error

    def offset_at(self, time_us: int, ends: Ends) -> int:
        """Return the first offset that arrived at a time or later; the end if there is none."""
        bases = self._list(ends)
        # A segment's header says when the last record before it arrived, and arrival never goes
        # back: what is sought is in the last segment before which all is too early.
        after = bisect.bisect_left(
            bases, time_us, lo=1, key=lambda base: self._segment(base).header().last_arrival_us
        )
        segment = self._segment(bases[after - 1])
        return segment.offset_at(time_us, size=self._size(segment, ends))

    def _list(self, ends: Ends) -> list[int]:
        with self._mutex:
            if not self._bases or self._bases[-1] < ends.acknowledged.segment:
                self._bases = list_segments(self._folder)
            for base in [base for base in self._segments if base < ends.first]:
                del self._segments[base]
            # A segment past the acknowledged end was made after these ends were read.
            bases = [b for b in self._bases if ends.first <= b <= ends.acknowledged.segment]
        if bases[:1] != [ends.first]:
            now = read_ends(self._folder / "ends")
            if now is None or now.first > ends.first:
                raise gone(self._partition, ends.first, segment_path(self._folder, ends.first))
            raise lost_file(self._folder, self._partition, ends.first)
        return bases

    def _segment(self, base: int) -> Segment:
        with self._mutex:
            try:
                segment = self._segments.pop(base, None)
                segment = segment or Segment(self._folder, self._partition, base)
            except FileNotFoundError as error:
                raise gone(self._partition, base, segment_path(self._folder, base)) from error
            self._segments[base] = segment
            if len(self._segments) > MAX_OPEN_SEGMENTS:
                self._segments.popitem(last=False)
            return segment


def _join(stored: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    small: list[pa.RecordBatch] = []
    small_records = small_bytes = 0
    for stored_bytes, records in stored:
        if records.num_rows >= SMALL_RECORDS or stored_bytes >= SMALL_BYTES:
            yield from _joined(small)
            small, small_records, small_bytes = [], 0, 0
            yield records
            continue
        small.append(records)
        small_records, small_bytes = small_records + records.num_rows, small_bytes + stored_bytes
        if small_records >= JOINED_RECORDS or small_bytes >= JOINED_BYTES:
            yield from _joined(small)
            small, small_records, small_bytes = [], 0, 0
    yield from _joined(small)


def _joined(small: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return small if len(small) < 2 else [pa.concat_batches(small)]


def _cut(batches: Iterable[pa.RecordBatch], max_batch_records: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, max_batch_records):
            yield batch.slice(start, max_batch_records)
