"""Sharing an append out to partitions, as every log does it.

Promises:
- Nothing is shared out before everything about the append is checked.
- Records without keys go to one partition per append, and appends take the partitions in turn; an
  append with DEALT_RECORDS of them deals them out to all partitions.
"""

import threading
from collections.abc import Callable, Mapping

import pyarrow as pa

from headrace.log.base import MAX_RECORD_BYTES, Append, Extent, Partition, Topic
from headrace.log.checks import check_partition, check_producer
from headrace.log.names import refuse_closed
from headrace.log.records import (
    DEALT_RECORDS,
    check_keys,
    check_records,
    deal_out,
    share_out,
)

__all__ = ["PRODUCER_HEADER_BYTES", "KeylessTurns", "emptiest", "share_append"]

# The engine keeps a dead record of the full size beside the reason why, in headers of its own.
PRODUCER_HEADER_BYTES = 16 << 10


class KeylessTurns:
    """Which partition of a topic is next to take records without keys. Safe for several threads.

    Turns begin with the partition that has the fewest offsets, of which `extents` tells, so that
    processes that append one batch each and end do not all fill the same one.
    """

    def __init__(self, extents: Callable[[str], Mapping[Partition, Extent]]) -> None:
        self._extents = extents
        self._mutex = threading.Lock()
        self._next: dict[str, int] = {}

    def take(self, topic: Topic) -> int:
        """Return the partition whose turn it is."""
        with self._mutex:
            known = topic.name in self._next
        # Not with the mutex held: on Kafka it takes a while.
        extents = {} if known else self._extents(topic.name)
        start = emptiest(extents)
        with self._mutex:
            turn = self._next.setdefault(topic.name, start)
            self._next[topic.name] = turn + 1
        return turn % topic.partitions

    def forget(self, name: str) -> None:
        """Begin anew with a topic."""
        with self._mutex:
            self._next.pop(name, None)


def emptiest(extents: Mapping[Partition, Extent]) -> int:
    """Return the number of the partition with the fewest offsets; the first of several."""
    ends = ((extent.end_offset, place.number) for place, extent in extents.items())
    return min(ends, default=(0, 0))[1]


def share_append(
    append: Append, topic: Topic, keyless: Callable[[], int]
) -> list[tuple[Partition, pa.RecordBatch]]:
    """Return what an append brings to each partition; `keyless` tells who takes what has no key.

    UsageError, RecordTooLarge: it is refused.
    """
    refuse_closed(topic.name, None if append.producer is None else append.producer.id)
    if append.producer is not None:
        check_producer(topic.name, append.producer, append.partition)
    if append.partition is not None:
        check_partition(Partition(topic.name, append.partition), topic)
    extra = 0 if append.producer is None else PRODUCER_HEADER_BYTES
    batch = check_records(append.records, topic=topic.name, max_bytes=MAX_RECORD_BYTES + extra)
    if topic.settings.compact:
        check_keys(batch, topic=topic.name)
    if batch.num_rows == 0:
        return []
    if append.partition is not None:
        return [(Partition(topic.name, append.partition), batch)]
    without = batch.column("key").null_count
    dealt = without >= DEALT_RECORDS
    places = deal_out(without, topic.partitions) if dealt else keyless() if without else 0
    shared = share_out(batch, partitions=topic.partitions, keyless=places)
    return [(Partition(topic.name, number), rows) for number, rows in shared]
