"""Segment files as a reader sees them: mapped, never locked, found by offset.

Promises:
- Whatever a reader is given passed its checksum; bytes that fail it raise LogDamaged with the file,
  the byte and `topic/partition@offset`.
- Bytes past the acknowledged end are mapped but never looked at, so cutting them is safe.
- A piece whose file was compacted since is found again by its offsets.
- An offset is found without walking from the start each time: the index keeps one position per
  INDEX_BYTES of a segment and the last one looked up, for at most MAX_OPEN_SEGMENTS segments of a
  partition.
"""

import bisect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headrace.errors import LogDamaged, PositionLost
from headrace.log.base import Partition
from headrace.log.embedded.format import (
    BatchHeader,
    SegmentHeader,
    Unreadable,
    check_batch,
    check_place,
    decode_batch_header,
    decode_records,
    decode_segment_header,
)
from headrace.log.embedded.listing import SegmentFile, list_files, list_segments, segment_path
from headrace.log.names import TIME_TOPIC

__all__ = [
    "MAX_OPEN_SEGMENTS",
    "Piece",
    "Segment",
    "damaged",
    "gone",
    "lost_file",
    "map_file",
]

INDEX_BYTES = 64 * 1024
MAX_OPEN_SEGMENTS = 64


def map_file(path: Path) -> Any:
    """Return a file as a buffer; what is cut out of it keeps the mapping alive, not the file."""
    if path.stat().st_size == 0:
        return pa.py_buffer(b"")  # nothing to map is an error to the system
    with pa.memory_map(str(path)) as mapped:
        return mapped.read_buffer()


def damaged(
    path: Path, position: int, partition: Partition, offset: int, reason: str
) -> LogDamaged:
    """Return the error for acknowledged bytes that cannot be read."""
    return LogDamaged(
        f"{path} is damaged at byte {position}, record {partition}@{offset}: {reason}. Nothing was "
        f"cut or skipped. {_cure(path, partition)}"
    )


def _cure(path: Path, partition: Partition) -> str:
    """Return what to do about a file that is damaged or gone."""
    topic, number = partition
    restore = (
        f"Restore it: `cp COPY/{topic}/{number}/{path.name} {path}`, then "
        f"`headrace log verify {topic}`."
    )
    if topic == TIME_TOPIC:
        return (
            f"{restore} Without a copy, stop the engine, move {path.parent.parent} and the store "
            f"away, and start it again: it builds the store anew. What the markers of idle "
            f"partitions said is lost then: records that were late because of them are late no "
            f"more."
        )
    return f"{restore} Without a copy, give up its records: `headrace log repair {topic}`."


def lost_file(folder: Path, partition: Partition, base_offset: int) -> LogDamaged:
    """Return the error for a segment that nobody removed and that is not there."""
    return damaged(segment_path(folder, base_offset), 0, partition, base_offset, "the file is gone")


def gone(partition: Partition, offset: int, path: Path) -> PositionLost:
    """Return the error for a segment that was removed before it was read."""
    try:
        left = f"the log begins at {list_segments(path.parent)[0]} now"
    except (FileNotFoundError, IndexError):
        left = "the topic is gone"
    return PositionLost(
        f"{partition}@{offset}: the next record to read is gone, with the file {path}; {left}. "
        f"Retention overtook the reader, or the topic was deleted. Raise its retention, then "
        f"rebuild from what the log still has."
    )


class Piece(NamedTuple):
    """Offsets `[start, end)` of one segment, and the byte where the batch with `start` begins."""

    path: Path
    partition: Partition
    position: int
    start: int
    end: int

    def read(self, buffer: Any = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (stored bytes, records in the piece) of each batch. Needs no lock. LogDamaged."""
        if buffer is None:
            try:
                buffer = map_file(self.path)
            except FileNotFoundError as error:
                yield from self._read_compacted(error)
                return
        view = memoryview(buffer)
        position, offset = self.position, self.start
        while offset < self.end:
            try:
                header = decode_batch_header(view, position)
                check_batch(view, position, header)
                check_place(header, offset)
                records = decode_records(buffer, position, header)
            except Unreadable as error:
                raise damaged(self.path, position, self.partition, offset, str(error)) from error
            end = min(header.end_offset, self.end)
            if end - offset < header.end_offset - header.base_offset:
                records = _cut_out(records, header, offset, end)
            if records.num_rows:
                yield header.length, records
            position, offset = position + header.length, end

    def _read_compacted(self, missing: FileNotFoundError) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read the piece from what compaction put in the place of its file. PositionLost."""
        while True:
            # It merges segments and never cuts one, so all of the piece is in one file.
            file = _compacted_file(self.path.parent, self.start)
            if file is None or file.path == self.path:
                raise gone(self.partition, self.start, self.path) from missing
            try:
                segment = Segment(file.path, self.partition, file.base_offset)
            except FileNotFoundError:
                continue  # it was compacted once more
            piece = segment.piece(self.start, self.end, size=0)
            yield from piece.read(segment.buffer(0))
            return


def _compacted_file(folder: Path, offset: int) -> SegmentFile | None:
    try:
        files = list_files(folder)
    except FileNotFoundError:
        return None  # the topic was deleted
    covering = [f for f in files if f.base_offset <= offset < (f.end_offset or 0)]
    return covering[0] if covering else None


def _cut_out(records: pa.RecordBatch, header: BatchHeader, start: int, end: int) -> pa.RecordBatch:
    if header.covered is None:
        return records.slice(start - header.base_offset, end - start)
    first, last = np.searchsorted(records.column("offset").to_numpy(), [start, end])
    return records.slice(first, last - first)


class Segment:
    """One segment, mapped, with the index of what was walked so far. Safe for several threads."""

    def __init__(self, path: Path, partition: Partition, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._partition = partition
        self._mutex = threading.Lock()
        self._buffer: Any = map_file(self.path)
        self._header: SegmentHeader | None = None
        self._index: list[tuple[int, int]] = []  # (base offset, byte position) of a batch
        self._latest = (-1, -1)

    def header(self) -> SegmentHeader:
        """Return the segment's header. LogDamaged."""
        if self._header is None:
            try:
                self._header = decode_segment_header(memoryview(self._buffer), self.base_offset)
            except Unreadable as error:
                raise damaged(
                    self.path, 0, self._partition, self.base_offset, str(error)
                ) from error
        return self._header

    def buffer(self, size: int) -> Any:
        """Return the mapped file, of at least `size` bytes if it has so many."""
        if self._buffer.size < size:
            self._buffer = map_file(self.path)
        return self._buffer

    def locate(self, offset: int, *, size: int) -> tuple[int, BatchHeader]:
        """Return the byte and the header of the batch that covers an offset.

        `size` is how far the segment's acknowledged bytes reach. LogDamaged.
        """
        with self._mutex:
            view = memoryview(self.buffer(size))
            if not self._index:
                self._index.append((self.base_offset, self.header().length))
            nearest = bisect.bisect_right(self._index, offset, key=lambda entry: entry[0]) - 1
            expected, position = self._index[nearest]
            if expected < self._latest[0] <= offset:
                expected, position = self._latest
            while True:
                try:
                    header = decode_batch_header(view, position)
                    check_place(header, expected)
                except Unreadable as error:
                    raise damaged(
                        self.path, position, self._partition, expected, str(error)
                    ) from error
                if position - self._index[-1][1] >= INDEX_BYTES:
                    self._index.append((expected, position))
                if offset < header.end_offset:
                    self._latest = (expected, position)
                    return position, header
                expected, position = header.end_offset, position + header.length

    def offset_at(self, time_us: int, *, size: int) -> int:
        """Return the first offset before byte `size` that arrived at a time or later, or the end.

        Batches are walked one by one: some 2 us each.
        """
        buffer = self.buffer(size)
        view = memoryview(buffer)
        offset, position = self.base_offset, self.header().length
        while position < size:
            try:
                header = decode_batch_header(view, position)
                check_place(header, offset)
                if header.last_arrival_us >= time_us:
                    if header.covered is None:
                        return offset
                    check_batch(view, position, header)
                    return _arrived_at(decode_records(buffer, position, header), time_us)
            except Unreadable as error:
                raise damaged(self.path, position, self._partition, offset, str(error)) from error
            offset, position = header.end_offset, position + header.length
        return offset

    def piece(self, start: int, end: int, *, size: int) -> Piece:
        """Return where the offsets `[start, end)` of this segment are. LogDamaged."""
        position, _ = self.locate(start, size=size)
        return Piece(self.path, self._partition, position, start, end)


def _arrived_at(records: pa.RecordBatch, time_us: int) -> int:
    """Return the offset of the first record that arrived at a time or later; there is one."""
    arrivals = records.column("arrival").view(pa.int64()).to_numpy()
    return int(records.column("offset")[int(np.searchsorted(arrivals, time_us))].as_py())
