"""Which windows a time is in, by definition, one after the other.

All windows are `[start, end)`.
- tumbling, hopping: they begin at `offset`, and every slide before and after it; a tumbling one's
  slide is its size.
- cumulative: they begin where tumbling ones of their size do, and end one, two, ... steps later, up
  to the size.
- session: the one that a time would be alone, which ends the gap after it.
With a time zone, sizes and slides are whole days and edges are local midnights; one that the clocks
skip or repeat is read with the offset before the change.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from headrace.model.nodes import Window

__all__ = ["OutOfRange", "Span", "to_datetime", "to_us", "windows_around"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000


class OutOfRange(Exception):
    """A window around the time reaches outside of the years 1 to 9999 (of its zone's days)."""


class Span(NamedTuple):
    """A window, in microseconds since 1970."""

    start_us: int
    end_us: int


def to_us(time: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def to_datetime(time_us: int) -> datetime:
    """Return microseconds since 1970 as a time. OverflowError: not of the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=time_us)


def windows_around(window: Window, time_us: int) -> list[Span]:
    """Return all windows that a time is in, the first one first. OutOfRange."""
    try:
        if window.zone is None:
            found = [Span(*edges) for edges in _candidates(window, time_us, unit_us=1)]
            for span in found:
                to_datetime(span.start_us), to_datetime(span.end_us)
        else:
            zone = ZoneInfo(window.zone)
            day = _day_of(zone, time_us)
            found = [
                Span(_midnight(zone, first), _midnight(zone, end))
                for first, end in _candidates(window, day, unit_us=_DAY_US)
            ]
    except OverflowError as error:
        raise OutOfRange from error
    assert all(span.start_us <= time_us < span.end_us for span in found)
    return sorted(found)


def _day_of(zone: ZoneInfo, time_us: int) -> int:
    for day in range(time_us // _DAY_US - 2, time_us // _DAY_US + 3):
        with suppress(OverflowError):
            if _midnight(zone, day) <= time_us < _midnight(zone, day + 1):
                return day
    raise OverflowError


def _candidates(window: Window, time: int, *, unit_us: int) -> Iterator[tuple[int, int]]:
    """Yield the windows whose numbers say that they hold a time, in units."""
    size, slide = window.size_us // unit_us, window.slide_us // unit_us
    offset = window.offset_us // unit_us
    if window.kind == "session":
        yield time, time + size
        return
    if window.kind == "cumulative":
        start = time - (time - offset) % size
        end = start + slide
        while end <= start + size:
            if end > time:
                yield start, end
            end += slide
        return
    if window.kind == "tumbling":
        slide = size
    start = time - (time - offset) % slide
    while start + size > time:
        yield start, start + size
        start -= slide


def _midnight(zone: ZoneInfo, day: int) -> int:
    # The first and the last day there are have no midnight in every zone.
    if not datetime.min.toordinal() < day + _EPOCH.toordinal() <= datetime.max.toordinal():
        raise OverflowError
    date = datetime.fromordinal(day + _EPOCH.toordinal())
    return to_us(date.replace(tzinfo=zone).astimezone(UTC))
