"""Which segments of a partition retention keeps. Whole segments only; the last one always."""

from collections.abc import Sequence
from itertools import pairwise

from headrace.log.base import Partition
from headrace.log.embedded.listing import SegmentFile
from headrace.log.embedded.segments import Segment

__all__ = ["first_kept"]


def first_kept(
    partition: Partition,
    files: Sequence[SegmentFile],
    *,
    before_us: int | None,
    max_bytes: int | None,
) -> int:
    """Return where the oldest of the segments that are kept begins. Needs the partition's lock.

    A segment goes when all of it arrived before `before_us`, or when those after it have
    `max_bytes` by themselves: never so much that less than `max_bytes` is left.
    """
    left = sum(file.path.stat().st_size for file in files)
    for file, following in pairwise(files):
        # A segment's header says when the last record before it arrived.
        base_offset, path, *_ = following
        last_arrival_us = Segment(path, partition, base_offset).header().last_arrival_us
        left -= file.path.stat().st_size
        expired = before_us is not None and last_arrival_us < before_us
        oversized = max_bytes is not None and left >= max_bytes
        if not expired and not oversized:
            return file.base_offset
    return files[-1].base_offset
