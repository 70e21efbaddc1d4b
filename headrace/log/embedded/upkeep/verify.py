"""Check every stored byte of a partition: what a read would refuse, found before it is needed.

A damaged batch is reported, and the search goes on behind it, so that one look finds everything.
"""

import bisect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.errors import LogDamaged
from headrace.log.base import Partition
from headrace.log.embedded.ends import Ends, read_ends
from headrace.log.embedded.format import (
    BatchHeader,
    Unreadable,
    check_batch,
    check_place,
    decode_batch_header,
    decode_records,
    decode_segment_header,
)
from headrace.log.embedded.listing import SegmentFile, list_files, segment_path
from headrace.log.embedded.segments import damaged, lost_file, map_file
from headrace.log.embedded.tail import holds_a_batch

__all__ = ["CheckedSegment", "verify_partition"]


class CheckedSegment(NamedTuple):
    """What one segment holds: readable records, bytes, and a sentence for every damage."""

    partition: Partition
    path: Path
    records: int
    bytes: int
    damages: tuple[str, ...]


def verify_partition(
    folder: Path, partition: Partition, settled_ends: Callable[[], Ends]
) -> Iterator[CheckedSegment]:
    """Yield what is found in each segment, oldest first, up to the acknowledged end.

    `settled_ends` returns that; where damage keeps it from doing so, that is told, and the segments
    are checked up to the end that the file `ends` says.
    """
    try:
        ends = settled_ends()
    except LogDamaged as error:
        known = read_ends(folder / "ends")
        found = [] if known is None else list(_verify_segments(folder, partition, known))
        if not any(str(error) in segment.damages for segment in found):
            yield CheckedSegment(partition, folder, 0, 0, (str(error),))
        yield from found
    else:
        yield from _verify_segments(folder, partition, ends)


def _verify_segments(folder: Path, partition: Partition, ends: Ends) -> Iterator[CheckedSegment]:
    offset: int | None = ends.first
    while offset is not None:
        file, following = _find(folder, offset, ends)
        last = file.end_offset is None and file.base_offset == ends.acknowledged.segment
        size = ends.acknowledged.position if last else None
        end_offset = ends.acknowledged.offset if following is None else following
        try:
            yield _verify_segment(file, partition, file.end_offset or end_offset, size)
        except FileNotFoundError:
            now = read_ends(folder / "ends")
            if now is None or now.first <= file.base_offset:  # retention did not remove it
                if file == _find(folder, offset, ends)[0]:
                    lost = str(lost_file(folder, partition, file.base_offset))
                    yield CheckedSegment(partition, file.path, 0, 0, (lost,))
                else:
                    continue  # compacted meanwhile: look at what took its place
        offset = following


def _find(folder: Path, offset: int, ends: Ends) -> tuple[SegmentFile, int | None]:
    """Return the segment with an offset, as if it were there, and where the next one begins."""
    files = [f for f in list_files(folder) if f.base_offset <= ends.acknowledged.segment]
    after = bisect.bisect_right(files, offset, key=lambda file: file.base_offset)
    following = files[after].base_offset if after < len(files) else None
    if after == 0:
        return SegmentFile(offset, segment_path(folder, offset)), following
    file = files[after - 1]
    if file.end_offset is not None and file.end_offset <= offset:
        return SegmentFile(offset, segment_path(folder, offset)), following
    if file.end_offset is not None and following is not None:
        following = file.end_offset
    return file, following


def _verify_segment(
    file: SegmentFile, partition: Partition, following: int, size: int | None
) -> CheckedSegment:
    base, path, *_ = file
    buffer = map_file(path)
    view = memoryview(buffer)
    size = len(view) if size is None else size
    damages: list[str] = []

    def note(position: int, offset: int, reason: str) -> None:
        damages.append(str(damaged(path, position, partition, offset, reason)))

    records, offset = 0, base
    position: int | None = 0
    try:
        position = decode_segment_header(view, base).length
    except Unreadable as error:
        note(0, base, str(error))
        position = holds_a_batch(view, 0, size)
    while position is not None and position < size:
        try:
            header = decode_batch_header(view, position)
            check_batch(view, position, header)
            check_place(header, offset)
            _check_order(decode_records(buffer, position, header), header)
        except Unreadable as error:
            note(position, offset, str(error))
            position = holds_a_batch(view, position, size)
            if position is not None:
                offset = decode_batch_header(view, position).base_offset
            continue
        records += header.records
        offset, position = header.end_offset, position + header.length
    if not damages and offset != following:
        reason = f"the file ends, but records up to offset {following} were in it"
        if file.end_offset is None:
            reason += f", or in {segment_path(path.parent, offset).name}, which is gone"
        note(size, offset, reason)
    return CheckedSegment(partition, path, records, size, tuple(damages))


def _check_order(records: pa.RecordBatch, header: BatchHeader) -> None:
    """Verify that the records of a compacted batch are in order, and within what it covers."""
    if header.covered is None:
        return
    offsets = records.column("offset").to_numpy()
    arrivals = records.column("arrival").view(pa.int64()).to_numpy()
    place = np.concatenate(([header.base_offset - 1], offsets, [header.end_offset]))
    if not (np.diff(place) > 0).all() or not (np.diff(arrivals) >= 0).all():
        raise Unreadable("the records of the batch are not in order")
