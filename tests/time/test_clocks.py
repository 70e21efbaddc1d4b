"""The stamp of a record is a function of what stands before it; where the log is cut never shows.

Method: the vectorised stamps against a loop that reads like the definition, over random times and
markers, in one piece, in any pieces one after the other, and in pieces that are measured side by
side and put together.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.time.clocks import NEVER, UNKNOWN, Clock, Mark, Stamped, after_span, moves, stamp

# Few distinct times, so that ties and steps back are common; and times far away.
TIMES = st.one_of(st.integers(-5, 5), st.integers(-(2**61), 2**61))
DELAYS = st.one_of(st.integers(0, 4), st.integers(0, 2**60))


class Record(NamedTuple):
    """A record: its offset, event time, arrival, and whether it can be read."""

    offset: int
    event_us: int
    arrival_us: int
    readable: bool


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Record], list[Mark]]:
    """Draw records, some offsets left out, and markers, in order, also past the last record."""
    offsets = sorted(draw(st.sets(st.integers(0, 30), max_size=20)))
    records = [
        Record(offset, *draw(st.tuples(TIMES, st.one_of(TIMES, st.just(UNKNOWN)), st.booleans())))
        for offset in offsets
    ]
    places = sorted(draw(st.lists(st.integers(1, 32), max_size=5)))
    marks = [
        Mark(number, place, *draw(st.sampled_from([(3, None), (None, 1), (-2, 5), (9, 0)])))
        for number, place in enumerate(places)
    ]
    return records, marks


CLOCKS = st.builds(
    lambda delay, time: (
        Clock(delay_us=delay) if time is None else Clock(delay_us=delay).moved(time)
    ),
    DELAYS,
    st.one_of(st.none(), TIMES),
)


def stamp_slowly(
    records: list[Record], marks: list[Mark], clock: Clock
) -> tuple[list[tuple[int, int]], Clock]:
    time, watermark, delay, seen = clock
    stamps = []
    waiting = list(marks)

    def step() -> None:
        nonlocal watermark
        if time != NEVER:
            watermark = max(watermark, time - delay)

    for record in [*records, None]:
        while waiting and (record is None or waiting[0].offset <= record.offset):
            mark = waiting.pop(0)
            delay = delay if mark.delay_us is None else mark.delay_us
            step()
            time = time if mark.time_us is None else max(time, mark.time_us)
            step()
        if record is not None:
            stamps.append((time, watermark))
            if record.readable:
                moved = min(record.event_us, record.arrival_us)
                time, seen = max(time, moved), max(seen, moved)
                step()
    return stamps, Clock(time, watermark, delay, seen)


def stamp_columns(records: list[Record], marks: list[Mark], clock: Clock) -> Stamped:
    offsets, times, arrivals, readable = zip(*records, strict=True) if records else ((),) * 4
    moved = moves(np.array(times, np.int64), np.array(arrivals, np.int64), np.array(readable, bool))
    return stamp(moved, clock, offsets=np.array(offsets, np.int64), marks=marks)


def stamps(stamped: Stamped) -> list[tuple[int, int]]:
    return list(zip(stamped.clocks_us.tolist(), stamped.watermarks_us.tolist(), strict=True))


def within(marks: list[Mark], start: int, end: int) -> list[Mark]:
    return [mark for mark in marks if start < mark.offset <= end]


@given(logs(), CLOCKS)
def test_stamps_are_those_of_the_definition(
    log: tuple[list[Record], list[Mark]], clock: Clock
) -> None:
    records, marks = log
    last = records[-1].offset if records else -1
    stamped = stamp_columns(records, [mark for mark in marks if mark.offset <= last], clock)
    end = stamped.end.marked([mark for mark in marks if mark.offset > last])
    assert (stamps(stamped), end) == stamp_slowly(records, marks, clock)


@given(logs(), CLOCKS, st.lists(st.integers(0, 31), max_size=4))
def test_where_the_records_are_cut_never_shows(
    log: tuple[list[Record], list[Mark]], clock: Clock, cuts: list[int]
) -> None:
    records, marks = log
    expected = stamp_slowly(records, within(marks, 0, 33), clock)
    found: list[tuple[int, int]] = []
    for start, end in pairwise([0, *sorted(cuts), 33]):
        here = [record for record in records if start <= record.offset < end]
        last = here[-1].offset if here else start
        mine = within(marks, start, end)
        part = stamp_columns(here, [mark for mark in mine if here and mark.offset <= last], clock)
        found += stamps(part)
        clock = part.end.marked([mark for mark in mine if not here or mark.offset > last])
    assert (found, clock) == expected


@given(logs(), CLOCKS, st.lists(st.integers(0, 31), max_size=4))
def test_parts_that_are_measured_side_by_side_give_the_clocks_between_them(
    log: tuple[list[Record], list[Mark]], clock: Clock, cuts: list[int]
) -> None:
    records, marks = log
    expected = stamp_slowly(records, within(marks, 0, 33), clock)[1]
    delay_us = clock.delay_us
    for start, end in pairwise([0, *sorted(cuts), 33]):
        here = [record for record in records if start <= record.offset < end]
        mine = within(marks, start, end)
        span = stamp_slowly(here, mine, Clock(delay_us=delay_us))[1]
        delay_us = span.delay_us
        clock = after_span(clock, span, mine)
    assert clock == expected


@given(logs(), CLOCKS)
def test_no_watermark_ever_sinks(log: tuple[list[Record], list[Mark]], clock: Clock) -> None:
    records, marks = log
    last = records[-1].offset if records else -1
    stamped = stamp_columns(records, [mark for mark in marks if mark.offset <= last], clock)
    ends = [stamped.end]
    for mark in marks:
        if mark.offset > last:
            ends.append(ends[-1].marked([mark]))
    watermarks = [
        clock.watermark_us,
        *stamped.watermarks_us.tolist(),
        *(end.watermark_us for end in ends),
    ]
    assert watermarks == sorted(watermarks)


def test_a_phone_whose_clock_runs_ahead_moves_the_clock_to_its_arrival_only() -> None:
    stamped = stamp_columns([Record(0, 1_000, 10, True), Record(1, 11, 11, True)], [], Clock())
    assert stamps(stamped) == [(NEVER, NEVER), (10, 10)]
    assert stamped.end.time_us == 11


def test_an_arrival_that_nobody_stamped_holds_no_clock_back() -> None:
    phone = Record(0, 1_000, UNKNOWN, True)
    assert stamp_columns([phone, Record(1, 11, UNKNOWN, True)], [], Clock()).end.time_us == 1_000


def test_an_unreadable_record_moves_no_clock() -> None:
    records = [Record(0, 50, 50, False), Record(1, 11, 11, True)]
    stamped = stamp_columns(records, [], Clock(delay_us=2).moved(3))
    assert stamps(stamped) == [(3, 1), (3, 1)]
    assert stamped.end == Clock(11, 9, 2, 11)


def test_a_longer_delay_does_not_turn_the_watermark_back() -> None:
    clock = Clock(delay_us=1).moved(100)
    assert clock.watermark_us == 99
    assert clock.delayed(50).watermark_us == 99
    assert clock.delayed(50).moved(120).watermark_us == 99
    assert clock.delayed(0).watermark_us == 100
