"""What the clock of a partition shows, one thing after the other (DESIGN, section 4).

A partition begins with no time, no watermark, and the stream's delay. Then, offset by offset: the
markers that act there, in the order they were written, and then the record. A marker of time or a
readable record moves the clock forward, a marker of delay changes the delay, and after each of
them the watermark is the largest `clock - delay` so far.

A marker counts when it has the form that `time/markers.py` draws, knows the check before it, and
comes from the engine that began last.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.log.base import Partition
from headrace.model.definitions import Stream

__all__ = ["Marker", "PartitionClock", "read_markers"]


class Marker(NamedTuple):
    """A marker that counts."""

    stream: str
    topic: str
    partition: int
    offset: int
    time_us: int | None
    delay_us: int | None


def read_markers(values: Sequence[bytes | None]) -> list[Marker]:
    """Return the markers that count, in the order they were written."""
    markers: list[Marker] = []
    epoch, check = 0, ""
    for value in values:
        try:
            found: dict[str, Any] = json.loads(value or b"")
            claimed = found.pop("check")
            body = json.dumps(found, sort_keys=True, separators=(",", ":"))
            right = hashlib.sha256((check + body).encode()).hexdigest()[:16]
            begins = "stream" not in found
            newer = found["epoch"] > epoch if begins else found["epoch"] == epoch
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            continue
        if claimed != right or not newer:
            continue
        epoch, check = found["epoch"], claimed
        for partition, offset, time_us in found.get("marks", ()):
            delay_us = found.get("delay_us")
            place = (found["stream"], found["topic"], partition)
            # One that goes back acts no earlier than the one before it.
            offset = max([offset, *(each.offset for each in markers if each[:3] == place)])
            markers.append(Marker(*place, offset, time_us, delay_us))
    return markers


class PartitionClock:
    """The clock of one partition, as a stream reads it."""

    def __init__(self, stream: Stream, partition: Partition, markers: Sequence[Marker]) -> None:
        here = (stream.name, partition.topic, partition.number)
        self._ahead = [marker for marker in markers if marker[:3] == here]
        self._delay = stream.delay_us
        self.time: float = -math.inf
        self.watermark: float = -math.inf

    def reach(self, offset: float) -> None:
        """Let the markers act that act on an offset or before it."""
        for marker in [marker for marker in self._ahead if marker.offset <= offset]:
            self._ahead.remove(marker)
            if marker.delay_us is not None:
                self._delay = marker.delay_us
                self.move(-math.inf)
            if marker.time_us is not None:
                self.move(marker.time_us)

    def move(self, time_us: float) -> None:
        """Move the clock forward to a time, if it is behind it."""
        self.time = max(self.time, time_us)
        self.watermark = max(self.watermark, self.time - self._delay)
