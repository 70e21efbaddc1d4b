"""watermark() is the record's own; the end of input closes everything that has rows.

Method: rows by hand, and the reference.
"""

import threading
from datetime import datetime

import pytest
from agreement import assert_agrees_with_the_reference

from headrace.engine.running import run_engine
from headrace.project.settings import Settings
from headrace.testing import harness

pytestmark = pytest.mark.spark

CLICKS = """
CREATE STREAM clicks (id STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'clicks');
"""


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00")


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_record_is_asked_for_its_own_watermark(gear: str) -> None:
    views = """
    CREATE MATERIALIZED VIEW old AS SELECT id, ts, watermark() AS mark FROM clicks
    WHERE watermark() IS NULL OR ts < watermark();
    CREATE MATERIALIZED VIEW spread AS SELECT upper(id) AS id, max(watermark()) AS latest,
      count(*) FILTER (WHERE ts < Watermark ( )) AS behind FROM clicks GROUP BY upper(id);
    """
    with harness(CLICKS + views, partitions=1) as h:
        times = ["12:00:00", "12:01:00", "12:00:30", "12:00:55"]
        h.append("clicks", [{"id": "a", "ts": at(time)} for time in times], partition=0)
        h.turn(gear=gear)
        assert sorted(h.rows("old"), key=lambda row: row["ts"]) == [
            {"id": "a", "ts": at("12:00:00"), "mark": None},
            {"id": "a", "ts": at("12:00:30"), "mark": at("12:00:50")},
        ]
        assert h.rows("spread") == [{"id": "A", "latest": at("12:00:50"), "behind": 1}]
        assert_agrees_with_the_reference(h)


WINDOWS = """
CREATE MATERIALIZED VIEW tumbling WITH (allowed_lateness = '5 minutes') AS
SELECT window.end AS t, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
CREATE MATERIALIZED VIEW hopping AS
SELECT window.end AS t, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour', '7 minutes');
CREATE MATERIALIZED VIEW cumulative AS
SELECT window.end AS t, count(*) AS n FROM clicks GROUP BY cumulate(ts, '1 minute', '10 minutes');
CREATE MATERIALIZED VIEW days WITH (time_zone = 'America/New_York') AS
SELECT window.end AS t, count(*) AS n FROM clicks GROUP BY window(ts, '1 day');
"""


def test_the_end_of_input_closes_every_window_and_goes_no_further() -> None:
    with harness(CLICKS + WINDOWS, partitions=2) as h:
        h.append("clicks", [{"ts": at("12:00:00")}, {"ts": at("12:30:00")}], partition=0)
        h.close_time()
        for view in ("tumbling", "hopping", "cumulative", "days"):
            assert all(row["_closed"] for row in h.rows(view, meta=True)), view
        last = max(row["t"] for row in h.rows("days"))
        clocks = {key: place.clock for key, place in h.engine.units["main"].progress.items()}
        assert {clock.watermark_us for clock in clocks.values()} == {int(last.timestamp() * 1e6)}
        markers = len(h.topic("headrace.time"))
        h.close_time()
        assert len(h.topic("headrace.time")) == markers
        h.append("clicks", [{"ts": at("12:31:00")}], partition=1)
        while h.turn():
            pass
        assert h.counters("days")["late"] == 1
        assert_agrees_with_the_reference(h)
        h.audit()


def test_the_end_of_input_closes_views_that_go_on_by_themselves() -> None:
    poison = (
        CLICKS
        + """
    CREATE MATERIALIZED VIEW ratios AS
    SELECT window.end AS t, sum(10 / length(id)) AS n FROM clicks GROUP BY window(ts, '1 minute');
    """
    )
    with harness(poison, partitions=1, settings=Settings(probe_jobs=5)) as h:
        clicks = [{"id": "a" * (number % 2), "ts": at("12:00:00")} for number in range(40)]
        h.append("clicks", clicks, partition=0)
        run_engine(h.engine, threading.Event(), once=True, end_of_input=True)
        assert [(row["n"], row["_closed"]) for row in h.rows("ratios", meta=True)] == [(200, True)]
        assert_agrees_with_the_reference(h)


def test_without_windows_there_is_nothing_to_close() -> None:
    with harness(CLICKS + "CREATE MATERIALIZED VIEW v AS SELECT id FROM clicks;") as h:
        h.append("clicks", [{"ts": at("12:00:00")}])
        h.close_time()
        assert not any(b"marks" in row["value"] for row in h.topic("headrace.time"))
