"""The clock of a record is a function of the records before it; where the log is cut never shows.

Method: the vectorised stamps against a loop that reads like the definition, over random times,
also extreme ones, in one piece and in any pieces.
"""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.time.clocks import NEVER, UNKNOWN, largest_time, stamp

# Few distinct times, so that ties and steps back are common; and the ends of what a time can be.
TIMES = st.one_of(
    st.integers(min_value=-5, max_value=5),
    st.sampled_from([NEVER + 1, 2**63 - 1]),
    st.integers(min_value=NEVER + 1, max_value=2**63 - 1),
)
RECORDS = st.lists(st.tuples(TIMES, TIMES, st.booleans()), max_size=20)
CLOCKS = st.one_of(st.just(NEVER), TIMES)

Record = tuple[int, int, bool]


def stamp_slowly(records: list[Record], clock: int) -> tuple[list[int], int]:
    clocks = []
    for event_time, arrival, readable in records:
        clocks.append(clock)
        if readable:
            clock = max(clock, min(event_time, arrival))
    return clocks, clock


def stamp_columns(records: list[Record], clock: int) -> tuple[list[int], int]:
    times, arrivals, readable = zip(*records, strict=True) if records else ((), (), ())
    stamped = stamp(
        np.array(times, np.int64), np.array(arrivals, np.int64), np.array(readable, bool), clock
    )
    return stamped.clocks_us.tolist(), stamped.end_clock_us


@given(RECORDS, CLOCKS)
def test_stamps_are_those_of_the_definition(records: list[Record], clock: int) -> None:
    assert stamp_columns(records, clock) == stamp_slowly(records, clock)


@given(RECORDS, CLOCKS, st.lists(st.integers(min_value=0, max_value=20), max_size=4))
def test_where_the_records_are_cut_never_shows(
    records: list[Record], clock: int, cuts: list[int]
) -> None:
    whole = stamp_columns(records, clock)
    edges = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    clocks: list[int] = []
    for start, end in pairwise(edges):
        part, clock = stamp_columns(records[start:end], clock)
        clocks += part
    assert (clocks, clock) == whole


@given(RECORDS, CLOCKS)
def test_the_largest_time_is_what_a_stamp_would_add(records: list[Record], clock: int) -> None:
    times, arrivals, readable = zip(*records, strict=True) if records else ((), (), ())
    largest = largest_time(
        np.array(times, np.int64), np.array(arrivals, np.int64), np.array(readable, bool)
    )
    assert max(clock, largest) == stamp_columns(records, clock)[1]


def test_a_phone_whose_clock_runs_ahead_moves_the_clock_to_its_arrival_only() -> None:
    assert stamp_columns([(1_000, 10, True), (11, 11, True)], NEVER) == ([NEVER, 10], 11)


def test_an_arrival_that_nobody_stamped_holds_no_clock_back() -> None:
    assert stamp_columns([(1_000, UNKNOWN, True), (11, UNKNOWN, True)], NEVER) == (
        [NEVER, 1_000],
        1_000,
    )


def test_an_unreadable_record_moves_no_clock() -> None:
    assert stamp_columns([(50, 50, False), (11, 11, True)], 3) == ([3, 3], 11)
