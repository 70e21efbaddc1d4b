"""Windows of the reference, against answers worked out by hand."""

from datetime import UTC, datetime

import pytest

from headrace.log.base import Partition
from headrace.model.nodes import Window
from headrace.reference import Answer, Record, answer
from headrace.reference.windows import OutOfRange, to_datetime, to_us, windows_around
from headrace.sql import parse_project
from headrace.testing.harness import to_json

SECOND = 1_000_000
DAY = 86_400 * SECOND
STREAM = """
CREATE STREAM s (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (topic = 's', format = 'json');
"""


def seconds(window: Window, time: int) -> list[tuple[int, int]]:
    spans = windows_around(window, time * SECOND)
    return [(span.start_us // SECOND, span.end_us // SECOND) for span in spans]


def test_a_time_is_in_every_window_around_it() -> None:
    assert seconds(Window(10 * SECOND), 25) == [(20, 30)]
    assert seconds(Window(10 * SECOND), 20) == [(20, 30)]
    assert seconds(Window(10 * SECOND, offset_us=-3 * SECOND), -4) == [(-13, -3)]
    hopping = Window(10 * SECOND, "hopping", 4 * SECOND)
    assert seconds(hopping, 9) == [(0, 10), (4, 14), (8, 18)]
    assert seconds(hopping, 10) == [(4, 14), (8, 18)]
    cumulative = Window(30 * SECOND, "cumulative", 10 * SECOND)
    assert seconds(cumulative, 35) == [(30, 40), (30, 50), (30, 60)]
    assert seconds(cumulative, 59) == [(30, 60)]
    assert seconds(cumulative, -1) == [(-30, 0)]


def days(window: Window, text: str) -> list[tuple[str, str]]:
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return [
        (f"{to_datetime(span.start_us):%m-%d %H:%M}", f"{to_datetime(span.end_us):%m-%d %H:%M}")
        for span in windows_around(window, to_us(time))
    ]


def test_the_days_of_a_zone_begin_at_its_midnights() -> None:
    berlin = Window(DAY, zone="Europe/Berlin")
    assert days(berlin, "2026-03-29 12:00") == [("03-28 23:00", "03-29 22:00")]
    assert days(berlin, "2026-10-25 12:00") == [("10-24 22:00", "10-25 23:00")]
    # In Havana the clocks go back from 01:00 to midnight: the day begins the first time.
    havana = Window(DAY, zone="America/Havana")
    assert days(havana, "2026-11-01 04:30") == [("11-01 04:00", "11-02 05:00")]
    # In Saint John's of 2010 they went back from 00:01 to 23:01: the new day had begun.
    johns = Window(DAY, zone="America/St_Johns")
    assert days(johns, "2010-11-07 02:45") == [("11-07 02:30", "11-08 03:30")]
    # Apia left out 30 December 2011.
    apia = Window(2 * DAY, "hopping", DAY, zone="Pacific/Apia")
    assert days(apia, "2011-12-30 12:00") == [
        ("12-30 10:00", "12-31 10:00"),
        ("12-30 10:00", "01-01 10:00"),
    ]


@pytest.mark.parametrize(
    ("window", "time"),
    [
        (Window(DAY), "9999-12-31 23:00"),  # its end is of the year 10000
        (Window(2 * DAY, "hopping", DAY), "0001-01-01 12:00"),  # its first window of the year 0
        (Window(DAY, zone="Europe/Berlin"), "0001-01-01 12:00"),
        (Window(2 * DAY, zone="Asia/Kathmandu"), "9999-12-31 12:00"),
    ],
)
def test_a_window_that_leaves_the_years_that_there_are_is_refused(
    window: Window, time: str
) -> None:
    with pytest.raises(OutOfRange):
        windows_around(window, to_us(datetime.fromisoformat(time).replace(tzinfo=UTC)))


def ask(options: str, window: str, *times: int) -> Answer:
    """Return the answer over records of a minute, in one partition."""
    text = f"""{STREAM} CREATE MATERIALIZED VIEW v {options} AS
    SELECT window.start AS start, count(*) AS n FROM s GROUP BY {window};"""
    records = [
        Record(offset, None, None, to_json({"ts": to_datetime(time * SECOND)}))
        for offset, time in enumerate(times)
    ]
    return answer(parse_project({"a.sql": text}), {Partition("s", 0): records})


def rows(found: Answer) -> dict[int, object]:
    return {to_us(row["start"]) // SECOND: row["n"] for row in found.rows["v"]}  # type: ignore[arg-type]


def test_a_record_is_counted_late_once_per_window_and_put_aside_once() -> None:
    # 25 closes [-10, 20) and what is before it; 5 is in that, in [-20, 10), and in [0, 30).
    found = ask("", "window(ts, '30 seconds', '10 seconds')", 25, 5)
    assert rows(found) == {0: 2, 10: 1, 20: 1}
    assert found.late["v"] == [("s", 0, 1)]
    assert found.counters["v"] == {
        "seen": 2, "skipped": 0, "dead": 0, "matched": 2,
        "pairs": 6, "folded": 4, "late": 2, "corrected": 0,
    }  # fmt: skip


def test_late_records_are_put_aside_counted_or_folded() -> None:
    times = (5, 25, 7)
    dropped = ask("WITH (late = 'drop')", "window(ts, '10 seconds')", *times)
    assert (rows(dropped), dropped.late["v"]) == ({0: 1, 20: 1}, [])
    assert dropped.counters["v"]["late"] == 1
    folded = ask("WITH (late = 'fold')", "window(ts, '10 seconds')", *times)
    assert (rows(folded), folded.counters["v"]["corrected"]) == ({0: 2, 20: 1}, 1)
    # Up to 15 seconds behind its end a row is there; at 25 it has left.
    kept = "WITH (late = 'fold', retention = '{} seconds')"
    for retention, expected, late in ((16, {0: 2, 20: 1}, 0), (15, {20: 1}, 1)):
        found = ask(kept.format(retention), "window(ts, '10 seconds')", *times)
        assert (rows(found), found.counters["v"]["late"]) == (expected, late)
