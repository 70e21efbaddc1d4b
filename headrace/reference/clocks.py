"""What the clock of a partition shows, one thing after the other (docs/design.md, Time).

A partition begins with no time, no watermark, and the stream's delay. Then, offset by offset: the
markers that act there, in the order they were written, and then the record. A marker of time or a
readable record moves the clock forward, a marker of delay changes the delay, and after each of
them the watermark is the largest `clock - delay` so far.

A marker counts when it has the form that `time/markers.py` draws, knows the check before it, and
comes from the engine that began last. It acts on a stream that goes by the event time it names, if
it names one. Its delay acts on a stream that learns its own, up to the longest that one allows.
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
    event_time: list[str | None] | None


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
            formed = _has_the_form(found)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            continue
        if claimed != right or not newer or not formed:
            continue
        epoch, check = found["epoch"], claimed
        for partition, offset, time_us in found.get("marks", ()):
            delay_us = found.get("delay_us")
            place = (found["stream"], found["topic"], partition)
            # One that goes back acts no earlier than the one before it.
            offset = max([offset, *(each.offset for each in markers if each[:3] == place)])
            markers.append(Marker(*place, offset, time_us, delay_us, found.get("event_time")))
    return markers


def _has_the_form(found: dict[str, Any]) -> bool:
    """Say whether a value, without its check, is one that an engine writes."""
    begins = "stream" not in found
    names = {"v", "epoch"} if begins else {"v", "epoch", "stream", "topic", "why", "marks"}
    more = set() if begins else {"delay_us", "event_time"}
    if not names <= set(found) <= names | more:
        return False
    marks = found.get("marks", [])
    column, written = found.get("event_time", ["", None])
    texts = [*(found.get(name, "") for name in ("stream", "topic", "why")), column]
    texts += [] if written is None else [written]
    numbers = [found["v"], found["epoch"], found.get("delay_us", 0)]
    numbers += [number for mark in marks for number in mark[:2]]
    times = [mark[2] for mark in marks if mark[2] is not None]
    return (
        found["v"] == 1
        and all(type(text) is str for text in texts)
        and all(type(number) is int and 0 <= number < 2**63 - 1 for number in numbers)
        and all(type(time) is int and -(2**63) < time < 2**63 - 1 for time in times)
        and all(type(each) is list for each in [marks, *marks, found.get("event_time", [])])
        and all(len(mark) == 3 for mark in marks)
        and (len(times) == len(marks) or "delay_us" in found)
    )


class PartitionClock:
    """The clock of one partition, as a stream reads it."""

    def __init__(self, stream: Stream, partition: Partition, markers: Sequence[Marker]) -> None:
        here = (stream.name, partition.topic, partition.number)
        times = (None, list(stream.time_read or ()))
        self._ahead = [
            marker
            for marker in markers
            if marker[:3] == here and marker.event_time in times and stream.event_time is not None
        ]
        self._longest = None if stream.adaptive is None else stream.adaptive.max_us
        self._delay = stream.delay_us
        self.time: float = -math.inf
        self.watermark: float = -math.inf

    def reach(self, offset: float) -> None:
        """Let the markers act that act on an offset or before it."""
        for marker in [marker for marker in self._ahead if marker.offset <= offset]:
            self._ahead.remove(marker)
            if marker.delay_us is not None and self._longest is not None:
                self._delay = min(marker.delay_us, self._longest)
                self.move(-math.inf)
            if marker.time_us is not None:
                self.move(marker.time_us)

    def move(self, time_us: float) -> None:
        """Move the clock forward to a time, if it is behind it."""
        self.time = max(self.time, time_us)
        self.watermark = max(self.watermark, self.time - self._delay)
