"""Late pairs of record and window, counted for whole columns, are those of the definition.

Method: random windows of every kind, records and watermarks against the reference, which lists the
windows around each record; and days of a zone whose clocks are set back at midnight.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.nodes import Window
from headrace.reference.windows import windows_around
from headrace.time.clocks import NEVER
from headrace.time.losses import count_late_pairs, count_pairs
from headrace.time.windows import Cut

DAY = 86_400_000_000
WINDOWS = [
    Window(60, "tumbling"),
    Window(60, "tumbling", offset_us=-7),
    Window(60, "hopping", slide_us=25),
    Window(50, "hopping", slide_us=10, offset_us=3),
    Window(60, "cumulative", slide_us=20),
    Window(45, "session"),
    Window(DAY, "tumbling", zone="Europe/Berlin"),
    Window(7 * DAY, "hopping", slide_us=DAY, zone="America/Havana"),
    Window(3 * DAY, "cumulative", slide_us=DAY, offset_us=DAY, zone="Asia/Beirut"),
]
NEAR = st.integers(-300, 300)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(
    records=st.lists(st.tuples(NEAR, st.one_of(st.none(), NEAR)), min_size=1, max_size=20),
    lateness=st.integers(0, 60),
)
def test_late_pairs_are_those_of_the_definition(
    window: Window, records: list[tuple[int, int | None]], lateness: int
) -> None:
    # Days are counted in hours around a change of the clocks, others in microseconds.
    unit = 1 if window.zone is None else 3_600_000_000
    origin = 0 if window.zone is None else 1_730_600_000_000_000  # November 2024
    times = [origin + time * unit for time, _ in records]
    marks = [NEVER if mark is None else origin + mark * unit for _, mark in records]
    lateness_us = lateness * unit
    expected = [
        span.end_us + lateness_us <= mark
        for time, mark in zip(times, marks, strict=True)
        for span in windows_around(window, time)
    ]
    cut, columns = Cut.of(window), (np.array(times, np.int64), np.array(marks, np.int64))
    assert count_pairs(cut, columns[0]) == len(expected)
    assert count_late_pairs(cut, *columns, lateness_us=lateness_us) == sum(expected)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_first_and_the_last_day_there_are_count_like_others(window: Window) -> None:
    days = ["0001-01-01T00:00", "0001-01-01T23:59", "9999-12-31T00:00", "9999-12-31T23:59"]
    times = np.array(days, "datetime64[us]").astype(np.int64)
    cut = Cut.of(window)
    pairs = count_pairs(cut, times)
    assert pairs >= len(days)
    assert 0 <= count_late_pairs(cut, times, times[::-1].copy(), lateness_us=0) <= pairs
