"""Which segments of a partition retention keeps. Whole segments only; the last one always."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from headrace.log.base import Partition
from headrace.log.embedded.segments import Segment, segment_path

__all__ = ["first_kept"]


def first_kept(
    folder: Path,
    partition: Partition,
    bases: Sequence[int],
    *,
    before_us: int | None,
    max_bytes: int | None,
) -> int:
    """Return which of the segments is the oldest to keep. Needs the partition's lock.

    A segment goes when all of it arrived before `before_us`, or when those after it have
    `max_bytes` by themselves: never so much that less than `max_bytes` is left.
    """
    left = sum(segment_path(folder, base).stat().st_size for base in bases)
    for base, following in pairwise(bases):
        # A segment's header says when the last record before it arrived.
        last_arrival_us = Segment(folder, partition, following).header().last_arrival_us
        left -= segment_path(folder, base).stat().st_size
        expired = before_us is not None and last_arrival_us < before_us
        oversized = max_bytes is not None and left >= max_bytes
        if not expired and not oversized:
            return base
    return bases[-1]
