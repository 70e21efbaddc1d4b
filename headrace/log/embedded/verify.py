"""Check every stored byte of a partition: what a read would refuse, found before it is needed.

A damaged batch is reported, and the search goes on behind it, so that one look finds everything.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from headrace.log.base import Partition
from headrace.log.embedded.ends import Ends, read_ends
from headrace.log.embedded.format import (
    Unreadable,
    check_batch,
    check_place,
    decode_batch_header,
    decode_records,
    decode_segment_header,
)
from headrace.log.embedded.segments import damaged, list_segments, lost_file, map_file, segment_path
from headrace.log.embedded.tail import holds_a_batch

__all__ = ["CheckedSegment", "verify_partition"]


class CheckedSegment(NamedTuple):
    """What one segment holds: readable records, bytes, and a sentence for every damage."""

    partition: Partition
    path: Path
    records: int
    bytes: int
    damages: tuple[str, ...]


def verify_partition(folder: Path, partition: Partition, ends: Ends) -> Iterator[CheckedSegment]:
    """Yield what is found in each segment, oldest first, up to the acknowledged end."""
    last = ends.acknowledged.segment
    bases = [base for base in list_segments(folder) if ends.first <= base <= last]
    if bases[:1] != [ends.first]:
        bases.insert(0, ends.first)
    for base, following in pairwise([*bases, ends.acknowledged.offset]):
        size = ends.acknowledged.position if base == last else None
        try:
            yield _verify_segment(folder, partition, base, following, size)
        except FileNotFoundError:
            now = read_ends(folder / "ends")
            if now is not None and base < now.first:
                continue  # retention removed it meanwhile
            lost = str(lost_file(folder, partition, base))
            yield CheckedSegment(partition, segment_path(folder, base), 0, 0, (lost,))


def _verify_segment(
    folder: Path, partition: Partition, base: int, following: int, size: int | None
) -> CheckedSegment:
    path = segment_path(folder, base)
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
            decode_records(buffer, position, header)
        except Unreadable as error:
            note(position, offset, str(error))
            position = holds_a_batch(view, position, size)
            if position is not None:
                offset = decode_batch_header(view, position).base_offset
            continue
        records += header.records
        offset, position = header.end_offset, position + header.length
    if not damages and offset != following:
        note(size, offset, f"the file ends, but records up to offset {following} were in it")
    return CheckedSegment(partition, path, records, size, tuple(damages))
