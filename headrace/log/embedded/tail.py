"""What an appender must know of a partition: where it ends, its last arrival, its producers.

The tail is found in one segment: its header says how things stood before it, and walking over its
batches brings them up to date.

Promises:
- Batches past the acknowledged end count only if their checksum holds; what does not is left for
  the caller to cut.
- Bytes before the acknowledged end that cannot be walked over raise LogDamaged.
- The newest MAX_PRODUCERS producers of a partition are remembered; the longest silent is forgotten
  first, and would then be taken for a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.log.base import Partition, Producer
from headrace.log.embedded.ends import Mark
from headrace.log.embedded.format import (
    BATCH_MAGIC,
    BatchHeader,
    Unreadable,
    check_batch,
    check_place,
    decode_batch_header,
    decode_producer,
    decode_transaction,
)
from headrace.log.embedded.listing import segment_path
from headrace.log.embedded.segments import Segment, damaged, map_file

__all__ = ["Tail", "holds_a_batch", "load_tail", "walk"]

MAX_PRODUCERS = 65_536


@dataclass
class Tail:
    """A partition's state at a mark."""

    mark: Mark
    last_arrival_us: int
    producers: dict[str, Producer]

    def note(self, header: BatchHeader, producer: Producer | None) -> None:
        """Go on past one batch."""
        offset, segment, position = self.mark
        assert header.base_offset == offset
        self.mark = Mark(header.end_offset, segment, position + header.length)
        self.last_arrival_us = max(self.last_arrival_us, header.arrival_us)
        if producer is not None:
            self.producers.pop(producer.id, None)
            self.producers[producer.id] = producer
            if len(self.producers) > MAX_PRODUCERS:
                del self.producers[next(iter(self.producers))]


def load_tail(folder: Path, partition: Partition, base_offset: int) -> Tail:
    """Return the tail at the start of a segment. LogDamaged: its header is not readable."""
    path = segment_path(folder, base_offset)
    header = Segment(path, partition, base_offset).header()
    mark = Mark(base_offset, base_offset, header.length)
    return Tail(mark, header.last_arrival_us, header.producers)


def walk(
    tail: Tail,
    folder: Path,
    partition: Partition,
    *,
    trusted: int,
    decided: Callable[[int], bool],
) -> str | None:
    """Move the tail over all whole batches of its segment.

    Returns why it stopped before the file's end, or None. Batches before the byte `trusted` are
    acknowledged: they are not verified again, but one that is not there raises LogDamaged. Past it
    a batch of a transaction counts if that was `decided`.
    """
    path = segment_path(folder, tail.mark.segment)
    view = memoryview(map_file(path))
    while tail.mark.position < max(len(view), trusted):
        position = tail.mark.position
        try:
            header = decode_batch_header(view, position)
            if position >= trusted:
                check_batch(view, position, header)
                _check_decided(decode_transaction(view, position, header), decided)
            check_place(header, tail.mark.offset)
        except Unreadable as error:
            if position < trusted:
                raise damaged(path, position, partition, tail.mark.offset, str(error)) from error
            return str(error)
        tail.note(header, decode_producer(view, position, header))
    return None


def _check_decided(transaction: int | None, decided: Callable[[int], bool]) -> None:
    if transaction is not None and not decided(transaction):
        raise Unreadable("it belongs to a transaction that was not committed")


def holds_a_batch(view: memoryview, position: int, end: int) -> int | None:
    """Return the first byte past `position` and before `end` where a whole batch lies, if any."""
    view = view[:end]
    data = bytes(view[position:])
    found = data.find(BATCH_MAGIC, 1)
    while found >= 0:
        try:
            check_batch(view, position + found, decode_batch_header(view, position + found))
        except Unreadable:
            found = data.find(BATCH_MAGIC, found + 1)
        else:
            return position + found
    return None
