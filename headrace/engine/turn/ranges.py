"""Plan what a turn reads: one range of offsets per partition.

Promises:
- A position that the log does not have any more, or not yet, is refused and never read around.
- A range begins at the position: no record is skipped, none is read twice.
- At most `max_records` offsets and about `max_bytes` in all, but at least one record of every
  partition that has any, so that a flooded partition cannot starve a quiet one.
Not promised: equal shares. How the log is cut never changes an answer
(docs/design.md, The four promises).
"""

from collections.abc import Mapping

from headrace.errors import PositionLost
from headrace.ledger.entries import Progress, StreamPartition, StreamRange
from headrace.log.base import Extent, Log, Partition, Range

__all__ = ["backlog", "check_position", "plan_ranges"]


def backlog(
    progress: Mapping[StreamPartition, Progress], ends: Mapping[StreamPartition, int]
) -> int:
    """Return how many records stand between the position and the ends."""
    return sum(max(0, ends[key] - place.offset) for key, place in progress.items())


def check_position(partition: Partition, offset: int, extents: Mapping[Partition, Extent]) -> None:
    """Refuse an offset that a topic, which has these extents, cannot go on from. PositionLost."""
    advice = (
        "Restore the topic from a copy of the log; or move the store away, in the project's folder "
        "`mkdir old && mv .headrace/store.duckdb* old/`, and run again: it is built from what the "
        "log still has."
    )
    extent = extents.get(partition)
    if extent is None:
        raise PositionLost(
            f"{partition}@{offset}: the partition is gone; the topic has {len(extents)} "
            f"partition{'' if len(extents) == 1 else 's'} now, so it was made anew. {advice}"
        )
    if offset < extent.first_offset:
        raise PositionLost(
            f"{partition}@{offset}: the next record to read is gone; the log begins at "
            f"{extent.first_offset}. Retention overtook the reader, or the topic was made anew. "
            f"{advice}"
        )
    if offset > extent.end_offset:
        raise PositionLost(
            f"{partition}@{offset}: the topic was made anew: it begins at {extent.first_offset} "
            f"and ends at {extent.end_offset}. What stands there now is not what was read. "
            f"{advice}"
        )


def plan_ranges(
    log: Log,
    topics: Mapping[str, str],
    progress: Mapping[StreamPartition, Progress],
    extents: Mapping[StreamPartition, Extent],
    *,
    max_records: int,
    max_bytes: int,
) -> tuple[StreamRange, ...]:
    """Return the next turn's ranges, none at the ends. The positions were checked."""
    unread: dict[StreamPartition, int] = {}
    for key, place in progress.items():
        end_offset = extents[key].end_offset
        if place.offset < end_offset:
            unread[key] = end_offset - place.offset
    ranges: list[StreamRange] = []
    budget = max_records
    # Smallest backlog first, so that what it leaves of its share goes to the larger ones.
    for index, key in enumerate(sorted(unread, key=unread.__getitem__)):
        count = min(unread[key], max(1, budget // (len(unread) - index)))
        budget -= count
        start = progress[key].offset
        partition = Partition(topics[key.stream], key.partition)
        ranges.append(StreamRange(key.stream, Range(partition, start, start + count)))
    return _within_bytes(log, ranges, max_bytes)


def _within_bytes(log: Log, ranges: list[StreamRange], max_bytes: int) -> tuple[StreamRange, ...]:
    last_size = None
    while True:
        size = sum(log.measure(entry.range) for entry in ranges)
        # A stored batch is measured as a whole: once shrinking no longer helps, it is one batch.
        if size <= max_bytes or size == last_size:
            return tuple(ranges)
        last_size = size
        share = min(0.9, max_bytes / size)
        ranges = [
            StreamRange(stream, Range(partition, start, start + max(1, int((end - start) * share))))
            for stream, (partition, start, end) in ranges
        ]
