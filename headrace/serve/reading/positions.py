"""Positions in the log as texts: `payments/0@120,payments/1@33`, the next offset to read."""

import re
from collections.abc import Callable, Mapping

from headrace.errors import UsageError
from headrace.ledger.entries import StreamPartition
from headrace.log.base import Partition

__all__ = ["Position", "covers", "parse_position", "position_of", "position_text"]

#: The next offset to read of each partition.
Position = dict[Partition, int]

_PLACE = re.compile(r"([A-Za-z0-9._-]{1,249})/([0-9]{1,9})@([0-9]{1,18})")
_MAX_PLACES = 10_000


def position_of(
    progress: Mapping[StreamPartition, int], topic_of: Callable[[str], str]
) -> Position:
    """Return how far all streams of a view have read; the least, where two read one topic."""
    found: Position = {}
    for (stream, number), offset in sorted(progress.items()):
        partition = Partition(topic_of(stream), number)
        found[partition] = min(offset, found.get(partition, offset))
    return found


def position_text(position: Mapping[Partition, int]) -> str:
    """Return a position as text."""
    return ",".join(f"{partition}@{offset}" for partition, offset in sorted(position.items()))


def parse_position(text: str) -> Position:
    """Return the position that a text is. UsageError: it is none."""
    found: Position = {}
    for part in text.split(",", _MAX_PLACES):
        match = _PLACE.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"{part.strip()[:100]!r} is no position; write topic/partition@offset, several "
                f"with commas: payments/0@120,payments/1@33"
            )
        found[Partition(match[1], int(match[2]))] = int(match[3])
    return found


def covers(position: Mapping[Partition, int], wanted: Mapping[Partition, int]) -> bool:
    """Whether everything before a position has been read."""
    return all(position.get(partition, 0) >= offset for partition, offset in wanted.items())
