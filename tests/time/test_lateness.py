"""The histogram of lateness never makes a delay look better than it is.

Method: random lateness against the sorted values themselves.
"""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.time.clocks import NEVER
from headrace.time.lateness import BUCKETS, GROWTH, bounds_us, count_lateness, quantile_us

LATENESS = st.one_of(st.integers(0, 30), st.integers(0, 10**15))


@given(st.lists(LATENESS, min_size=1, max_size=50), st.sampled_from([0.1, 0.5, 0.9, 0.999]))
def test_a_quantile_is_long_enough_and_at_most_a_tenth_too_long(
    lateness: list[int], share: float
) -> None:
    clock = np.full(len(lateness), 10**16, np.int64)
    counts = count_lateness(clock - np.array(lateness, np.int64), clock)
    assert counts.sum() == len(lateness)
    found = quantile_us(counts, share)
    exact = sorted(lateness)[math.ceil(share * len(lateness)) - 1]
    assert exact <= found <= exact * GROWTH + 1
    assert sum(each <= found for each in lateness) >= share * len(lateness)


def test_what_moves_the_clock_or_has_none_before_it_is_in_time() -> None:
    moves = np.array([5, 7, 6, NEVER], np.int64)
    clocks = np.array([NEVER, 5, 7, 7], np.int64)
    counts = count_lateness(moves, clocks)
    assert counts[0] == 2
    assert counts[1] == 1
    assert counts.sum() == 3


def test_bounds_grow_and_hold_what_they_say() -> None:
    bounds = bounds_us()
    assert len(bounds) == BUCKETS
    assert (np.diff(bounds) >= 0).all()
    for bound in bounds.tolist():
        [bucket] = np.flatnonzero(count_lateness(np.array([-bound]), np.array([0])))
        assert bounds[bucket] >= bound


def test_nothing_counted_needs_no_delay() -> None:
    assert quantile_us(np.zeros(BUCKETS, np.int64), 0.999) == 0
