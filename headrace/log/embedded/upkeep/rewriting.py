"""Reading a sealed segment as a whole, and writing the one that takes the place of several.

Promises:
- What is read passed its checksums and covers all its offsets, or LogDamaged is raised.
- What is written is seen by nobody: its name is not that of a segment until it is renamed.
- Records go into batches of about BATCH_BYTES, however they were appended. The offsets of what was
  removed are covered by the batch after it, and at the end by the last one.
"""

import os
import secrets
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace import faults
from headrace.log.base import APPENDS, RECORDS, Partition
from headrace.log.embedded.files import FILE_MODE, sync_descriptor, write_whole
from headrace.log.embedded.format import (
    NEVER,
    STORED,
    BatchHeader,
    SegmentHeader,
    Unreadable,
    check_batch,
    check_place,
    decode_appended,
    decode_batch_header,
    decode_stored,
    encode_compacted,
    encode_segment_header,
)
from headrace.log.embedded.listing import SegmentFile
from headrace.log.embedded.segments import Segment, damaged
from headrace.log.embedded.upkeep.survivors import Kept

__all__ = ["UNFINISHED", "NewSegment", "Source", "earliest_until", "read_segment"]

#: How the name of a file ends that is being written.
UNFINISHED = ".compacting"
# Small enough that reading one record does not mean a checksum over a segment; large enough that
# the 40 µs of reading a batch do not count.
BATCH_BYTES = 1 << 20
BATCH_RECORDS = 65_536


class Source(NamedTuple):
    """A sealed segment that a pass looks at."""

    file: SegmentFile
    end_offset: int
    bytes: int
    clean: bool


def read_segment(source: Source, partition: Partition) -> tuple[SegmentHeader, pa.Table]:
    """Return a segment's header and its records as STORED. LogDamaged.

    FileNotFoundError: the file is no longer there.
    """
    base, path, end, _ = source.file
    segment = Segment(path, partition, base)
    header, buffer = segment.header(), segment.buffer(0)
    view = memoryview(buffer)
    decode = decode_appended if end is None else decode_stored
    batches: list[pa.RecordBatch] = []
    arrivals: list[int] = []
    offset, position = base, header.length
    try:
        while position < len(view):
            batch = decode_batch_header(view, position)
            check_batch(view, position, batch)
            check_place(batch, offset)
            _check_kind(batch, source.file)
            batches.append(decode(buffer, position, batch))
            arrivals.append(batch.arrival_us)
            offset, position = batch.end_offset, position + batch.length
    except Unreadable as error:
        raise damaged(path, position, partition, offset, str(error)) from error
    if offset != source.end_offset:
        reason = f"the file ends, but records up to offset {source.end_offset} were in it"
        raise damaged(path, position, partition, offset, reason)
    if end is not None:
        return header, pa.Table.from_batches(batches, STORED)
    return header, _add_columns(batches, arrivals, base)


def _check_kind(batch: BatchHeader, file: SegmentFile) -> None:
    if (batch.covered is None) != (file.end_offset is None):
        raise Unreadable("a batch is compacted and its segment is not, or the other way round")


def _add_columns(batches: list[pa.RecordBatch], arrivals: list[int], base: int) -> pa.Table:
    """Return appended batches as STORED, columns in one go: 60 µs less for each batch."""
    table = pa.Table.from_batches(batches, APPENDS)
    count = table.num_rows
    arrival = np.repeat(np.array(arrivals, np.int64), [batch.num_rows for batch in batches])
    added = [
        pa.array(np.arange(base, base + count)),
        pa.array(arrival, RECORDS.field("arrival").type),
        pa.nulls(count, pa.int64()),
    ]
    return pa.Table.from_arrays([*added[:2], *table.columns, added[2]], schema=STORED)


def earliest_until(file: SegmentFile, partition: Partition) -> int:
    """Return from when on a tombstone of a compacted segment may go; NEVER without one.

    Headers only are looked at: some 2 µs for each batch.
    """
    base, path, *_ = file
    segment = Segment(path, partition, base)
    view = memoryview(segment.buffer(0))
    earliest, position = NEVER, segment.header().length
    while position < len(view):
        try:
            header = decode_batch_header(view, position)
        except Unreadable as error:
            raise damaged(path, position, partition, base, str(error)) from error
        if header.covered is not None:
            earliest = min(earliest, header.covered.until_us)
        position += header.length
    return earliest


class NewSegment:
    """A compacted segment on its way."""

    def __init__(self, folder: Path, header: SegmentHeader) -> None:
        self.path = folder / f"{secrets.token_hex(8)}{UNFINISHED}"
        self.sources: list[Source] = []
        self.removed = 0
        self.bytes = 0
        self._covered = header.base_offset
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, FILE_MODE)
        # How things stood before the first of the segments is how they stood before this one.
        self._unwritten = encode_segment_header(
            header.base_offset, last_arrival_us=header.last_arrival_us, producers=header.producers
        )
        self._position = 0

    @property
    def base_offset(self) -> int:
        """The first offset that is covered."""
        return self.sources[0].file.base_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last one that is covered."""
        return self.sources[-1].end_offset

    @property
    def changes_nothing(self) -> bool:
        """Whether this would be the same segment once more."""
        return len(self.sources) == 1 and self.sources[0].clean and not self.removed

    def is_full(self, kept: Kept, segment_bytes: int) -> bool:
        """Whether what is kept of the next segment goes to another file; nothing always fits."""
        both = self.bytes > 0 and kept.records.num_rows > 0
        return both and self.bytes + kept.records.nbytes > segment_bytes

    def add(self, source: Source, kept: Kept) -> None:
        """Take over what is kept of the next segment."""
        assert not self.sources or source.file.base_offset == self.end_offset
        self.sources.append(source)
        self.removed += kept.removed
        self.bytes += kept.records.nbytes
        self._pending.append(kept.records)
        self._pending_bytes += kept.records.nbytes
        if self._pending_bytes >= BATCH_BYTES:
            *whole, rest = self._take_pending()
            for batch in whole:
                self._write_batch(batch, batch.column("offset")[-1].as_py() + 1)
            self._pending, self._pending_bytes = [pa.Table.from_batches([rest])], rest.nbytes

    def finish(self, *, sync: bool) -> None:
        """Write what is left; with `sync`, return once all of it is on the disk."""
        batches = self._take_pending()
        for batch, following in pairwise([*batches, None]):
            is_last = following is None
            faults.reach("log_in_compaction")
            self._write_batch(
                batch, self.end_offset if is_last else batch.column("offset")[-1].as_py() + 1
            )
        if sync:
            sync_descriptor(self._descriptor)
        self._close()

    def discard(self) -> None:
        """Remove the file, if it is still there."""
        self._close()
        self.path.unlink(missing_ok=True)

    def _take_pending(self) -> list[pa.RecordBatch]:
        table = pa.concat_tables(self._pending).combine_chunks()
        rows = BATCH_BYTES * table.num_rows // max(1, table.nbytes)
        batches = table.to_batches(max_chunksize=min(max(rows, 1), BATCH_RECORDS))
        return batches or [pa.RecordBatch.from_pylist([], STORED)]

    def _write_batch(self, batch: pa.RecordBatch, end_offset: int) -> None:
        data = encode_compacted(batch, base_offset=self._covered, end_offset=end_offset)
        data = self._unwritten + data
        write_whole(self._descriptor, data, self._position)
        self._unwritten, self._position = b"", self._position + len(data)
        self._covered = end_offset

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
