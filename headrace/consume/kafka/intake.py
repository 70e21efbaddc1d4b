"""What librdkafka has fetched for a member and was not polled yet, by partition.

Promises:
- Each `take` gives every partition its share, so that a flooded one does not starve the others.
- Up to MAX_RECORDS and about MAX_BYTES are kept; librdkafka's own buffer is behind that.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Message

from headrace.consume.polling import share_evenly
from headrace.log.base import Partition, Range
from headrace.log.kafka.reader import offset_of

__all__ = ["Intake", "Taken"]

MAX_RECORDS = 10_000
MAX_BYTES = 16 << 20
RECORD_OVERHEAD_BYTES = 64


class Taken(NamedTuple):
    """What a member goes on with in one partition: maybe no record, where only markers were."""

    place: Partition
    messages: list[Message]
    next_offset: int


class Intake:
    """Messages in offset order, and how far partitions were read."""

    def __init__(self) -> None:
        self._queues: dict[Partition, deque[Message]] = {}
        self._ends: dict[Partition, int] = {}
        self._records = 0
        self._bytes = 0
        self._turn = 0

    @property
    def is_full(self) -> bool:
        """Whether no more is to be fetched for now."""
        return self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES

    def add(self, place: Partition, message: Message) -> None:
        """Take in the next message of a partition."""
        self._queues.setdefault(place, deque()).append(message)
        self._records += 1
        self._bytes += _size(message)

    def note_end(self, place: Partition, offset: int) -> None:
        """Take note that there is nothing more to see before an offset."""
        self._ends[place] = offset

    def drop(self, places: Iterable[Partition]) -> None:
        """Forget what came from partitions."""
        for place in places:
            self._ends.pop(place, None)
            for message in self._queues.pop(place, ()):
                self._forget(message)

    def take(self, max_records: int) -> list[Taken]:
        """Return the next messages, `max_records` in all."""
        waiting = [
            Range(place, 0, len(queue)) for place, queue in sorted(self._queues.items()) if queue
        ]
        shares = share_evenly(waiting, max_records, turn=self._turn)
        self._turn += 1
        empty = [place for place in self._ends if not self._queues.get(place)]
        return [
            *(self._take(place, count) for place, _, count in shares),
            *(self._take(place, 0) for place in empty),
        ]

    def _take(self, place: Partition, count: int) -> Taken:
        queue = self._queues.get(place, deque())
        messages = [queue.popleft() for _ in range(count)]
        for message in messages:
            self._forget(message)
        next_offset = offset_of(messages[-1]) + 1 if messages else 0
        if not queue:
            next_offset = max(next_offset, self._ends.pop(place, 0))
        return Taken(place, messages, next_offset)

    def _forget(self, message: Message) -> None:
        self._records -= 1
        self._bytes -= _size(message)


def _size(message: Message) -> int:
    return len(message) + RECORD_OVERHEAD_BYTES
