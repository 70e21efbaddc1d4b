"""The clock of a partition, and the stamps it gives to records (docs/design.md, Time).

A clock is moved by one thing after the other, in this order: by the markers that act at an offset,
as they were written, then by the record that stands there.
- A marker of time moves it to that time, one of delay changes the delay; neither turns it back.
- A record carries the watermark that holds before it. If it is readable, it moves the clock to
  `min(event time, arrival)`.
- After each of them the watermark is at least the clock's time less the delay, and never sinks.
So a stamp depends on what stands before the record and on nothing else, and how the log is cut
into turns never shows. An arrival that the log did not stamp is UNKNOWN and holds no clock back:
such a stream is unguarded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "NEVER",
    "UNKNOWN",
    "Clock",
    "EventTime",
    "Mark",
    "Stamped",
    "after_span",
    "moves",
    "stamp",
]

#: -infinity in microseconds: before every time a record can carry.
NEVER = int(np.iinfo(np.int64).min)
#: An arrival that nobody stamped: after every time a record can carry.
UNKNOWN = int(np.iinfo(np.int64).max)

Micros = npt.NDArray[np.int64]
#: What a stream takes for its time: the column, and how it is written (None: ISO 8601).
EventTime = tuple[str, str | None]


class Clock(NamedTuple):
    """Where the time of a partition stands."""

    time_us: int = NEVER  # the largest of records and markers
    watermark_us: int = NEVER
    delay_us: int = 0
    records_us: int = NEVER  # the largest of records alone

    def moved(self, time_us: int) -> "Clock":
        """Return the clock after a marker of this time."""
        time_us = max(self.time_us, time_us)
        return self._replace(time_us=time_us, watermark_us=self._watermark(time_us, self.delay_us))

    def delayed(self, delay_us: int) -> "Clock":
        """Return the clock after a marker that changes the delay."""
        watermark_us = self._watermark(self.time_us, delay_us)
        return self._replace(delay_us=delay_us, watermark_us=watermark_us)

    def marked(self, marks: Sequence["Mark"]) -> "Clock":
        """Return the clock after markers, in the order they were written."""
        clock = self
        for mark in marks:
            if mark.delay_us is not None:
                clock = clock.delayed(mark.delay_us)
            if mark.time_us is not None:
                clock = clock.moved(mark.time_us)
        return clock

    def _watermark(self, time_us: int, delay_us: int) -> int:
        return self.watermark_us if time_us == NEVER else max(self.watermark_us, time_us - delay_us)


class Mark(NamedTuple):
    """What a marker says of one partition: it acts before the record at `offset`.

    `number` is the marker's own place, its offset in the topic of markers. `event_time` is the one
    it speaks of, None where it does not say: of any.
    """

    number: int
    offset: int
    time_us: int | None = None
    delay_us: int | None = None
    event_time: EventTime | None = None


class Stamped(NamedTuple):
    """What holds before every record, and the clock after the last one."""

    clocks_us: Micros
    watermarks_us: Micros
    end: Clock


def moves(event_times_us: Micros, arrivals_us: Micros, readable: npt.NDArray[np.bool_]) -> Micros:
    """Return how far each record moves a clock: NEVER for one that cannot be read."""
    return np.where(readable, np.minimum(event_times_us, arrivals_us), NEVER)


def stamp(
    moves_us: Micros, clock: Clock, *, offsets: Micros | None = None, marks: Sequence[Mark] = ()
) -> Stamped:
    """Stamp one partition's records, given in offset order, from the clock before the first.

    `marks` act within the records, in order; those past the last record are left to the caller.
    """
    if not marks:
        return _stamp(moves_us, clock)
    assert offsets is not None
    clocks, watermarks = [], []
    start = at = 0
    while start < len(moves_us):
        while at < len(marks) and marks[at].offset <= offsets[start]:
            clock = clock.marked(marks[at : at + 1])
            at += 1
        end = len(moves_us)
        if at < len(marks):
            end = int(np.searchsorted(offsets, marks[at].offset))
        part = _stamp(moves_us[start:end], clock)
        clocks.append(part.clocks_us)
        watermarks.append(part.watermarks_us)
        clock, start = part.end, end
    return Stamped(np.concatenate(clocks), np.concatenate(watermarks), clock)


def after_span(clock: Clock, span: Clock, marks: Sequence[Mark]) -> Clock:
    """Return the clock after a span of records and marks, from what the span did to a new clock.

    `span` began with the delay of `clock` and without any time: so the parts of a long range are
    looked at side by side, and put together here.
    """
    delays_us = [mark.delay_us for mark in marks if mark.delay_us is not None]
    watermark_us = max(clock.watermark_us, span.watermark_us)
    if clock.time_us != NEVER:
        watermark_us = max(watermark_us, clock.time_us - min([clock.delay_us, *delays_us]))
    return Clock(
        max(clock.time_us, span.time_us),
        watermark_us,
        span.delay_us,
        max(clock.records_us, span.records_us),
    )


def _stamp(moves_us: Micros, clock: Clock) -> Stamped:
    running = np.maximum.accumulate(np.concatenate(([np.int64(clock.time_us)], moves_us)))
    # A clock that never moved has no watermark of its own; the subtraction must not wrap around.
    unmoved = running == NEVER
    watermarks = np.maximum(
        np.where(unmoved, NEVER, running - np.where(unmoved, 0, clock.delay_us)), clock.watermark_us
    )
    end = Clock(
        int(running[-1]),
        int(watermarks[-1]),
        clock.delay_us,
        int(moves_us.max(initial=clock.records_us)),
    )
    return Stamped(running[:-1], watermarks[:-1], end)
