"""Reading a partition: ranges become pieces of segments, pieces become batches of records.

Promises:
- A reader takes no lock and sees nothing past the acknowledged end.
- Large batches are handed out where they are mapped; runs of small ones are copied together, so
  that a topic filled record by record does not cost its reader a batch per record.
- A split reads the same records in any process, from the files alone; what compaction removed
  meanwhile is left out, and so it is where a range is read while it is compacted.
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
from headrace.log.embedded.listing import SegmentFile, list_files, segment_path
from headrace.log.embedded.segments import MAX_OPEN_SEGMENTS, Piece, Segment, gone, lost_file

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
        self._files: list[SegmentFile] = []
        self._compactions = 0  # before the files were listed
        self._segments: OrderedDict[Path, Segment] = OrderedDict()

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
        files = self._list(ends)
        start = range.start
        while start < range.end:
            after = bisect.bisect_right(files, start, key=lambda file: file.base_offset)
            if after == 0:
                raise gone(self._partition, start, segment_path(self._folder, start))
            file = files[after - 1]
            if file.end_offset is not None and file.end_offset <= start:
                raise lost_file(self._folder, self._partition, file.end_offset)
            try:
                segment, size = self._segment(file), self._size(file, ends)
                segment.buffer(size)
            except FileNotFoundError:
                # Retention took the segment, or compaction put another in its place.
                files = self._list_anew(start)
                continue
            next_base = files[after].base_offset if after < len(files) else range.end
            end = min(range.end, file.end_offset or next_base)
            yield segment, start, end, size
            start = end

    def _size(self, file: SegmentFile, ends: Ends) -> int:
        """Return how far a segment's acknowledged bytes reach. FileNotFoundError."""
        if file.end_offset is None and file.base_offset == ends.acknowledged.segment:
            return ends.acknowledged.position
        # A segment that is not the last was complete when it was first mapped after the roll; one
        # mapped before is mapped again, since its length grew past the mapping.
        return file.path.stat().st_size

    def offset_at(self, time_us: int, ends: Ends) -> int:
        """Return the first offset that arrived at a time or later; the end if there is none."""
        while True:
            files = self._list(ends)
            # A segment's header says when the last record before it arrived, and arrival never goes
            # back: what is sought is in the last segment before which all is too early.
            try:
                after = bisect.bisect_left(files, time_us, lo=1, key=self._arrived_before)
                file = files[after - 1]
                found = self._segment(file).offset_at(time_us, size=self._size(file, ends))
                return min(found, ends.acknowledged.offset)
            except FileNotFoundError:
                self._list_anew(ends.first)

    def _arrived_before(self, file: SegmentFile) -> int:
        return self._segment(file).header().last_arrival_us

    def _list(self, ends: Ends) -> list[SegmentFile]:
        with self._mutex:
            last = self._files[-1].base_offset if self._files else -1
            stale = last < ends.acknowledged.segment or self._compactions != ends.compactions
            # A mapping keeps a removed file's bytes on the disk.
            for path, segment in list(self._segments.items()):
                if segment.base_offset < ends.first:
                    del self._segments[path]
        known = self._list_anew(ends.first, ends.compactions) if stale else self._files
        # A segment past the acknowledged end was made after these ends were read.
        last = ends.acknowledged.segment
        files = [file for file in known if ends.first <= file.base_offset <= last]
        if not files or files[0].base_offset != ends.first:
            now = read_ends(self._folder / "ends")
            if now is None or now.first > ends.first:
                raise gone(self._partition, ends.first, segment_path(self._folder, ends.first))
            raise lost_file(self._folder, self._partition, ends.first)
        return files

    def _list_anew(self, offset: int, compactions: int | None = None) -> list[SegmentFile]:
        """List the segments for who reads at an offset. PositionLost: the topic is gone."""
        try:
            files = list_files(self._folder)
        except FileNotFoundError as error:
            raise gone(self._partition, offset, segment_path(self._folder, offset)) from error
        listed = {file.path for file in files}
        with self._mutex:
            self._files = files
            self._compactions = self._compactions if compactions is None else compactions
            for path in [path for path in self._segments if path not in listed]:
                del self._segments[path]
        return files

    def _segment(self, file: SegmentFile) -> Segment:
        """Return a segment, mapped. FileNotFoundError: it is no longer there."""
        with self._mutex:
            segment = self._segments.pop(file.path, None)
            segment = segment or Segment(file.path, self._partition, file.base_offset)
            self._segments[file.path] = segment
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
