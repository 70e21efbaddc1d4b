"""Windows by hand: what is late for which window, what leaves when, what days of a zone are.

Method: a few records whose answer is worked out in the comments, in both gears; `audit` recomputes
each of them, and the reference agrees.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from agreement import assert_agrees_with_the_reference
from pyspark.sql import SparkSession

from headrace.engine.spark import zones
from headrace.errors import DefinitionError
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM clicks (page STRING, x BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts)
WITH (topic = 'clicks', format = 'json');
"""
HOPPING = """
CREATE MATERIALIZED VIEW hopping AS SELECT window.start AS start, count(*) AS n, max(x) AS x
FROM clicks GROUP BY window(ts, '30 seconds', '10 seconds');
"""
GEARS = pytest.mark.parametrize("gear", ["short", "long"])


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00")


def click(time: str | datetime, x: int = 1) -> dict[str, Any]:
    return {"page": "/", "x": x, "ts": at(time) if isinstance(time, str) else time}


def show(h: Harness, view: str, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in h.rows(view, meta=True))


def check(h: Harness) -> None:
    assert_agrees_with_the_reference(h)
    h.audit()


@GEARS
def test_a_record_is_late_for_its_first_windows_and_folded_into_the_others(gear: str) -> None:
    with harness(STREAM + HOPPING, partitions=1) as h:
        # 12:00:25 closes the windows that end by then. 12:00:05 comes after it: of its windows
        # [11:59:40, 12:00:10) is closed, [11:59:50, 12:00:20) too, [12:00:00, 12:00:30) is not.
        h.append("clicks", [click("12:00:25"), click("12:00:05", x=7)])
        h.turn(gear=gear)
        # Late for all three of its windows.
        h.append("clicks", [click("12:01:00"), click("12:00:00", x=9)])
        h.turn(gear=gear)
        assert show(h, "hopping", "start", "n", "x", "_closed") == [
            (at("12:00:00"), 2, 7, True),
            (at("12:00:10"), 1, 1, True),
            (at("12:00:20"), 1, 1, True),
            (at("12:00:40"), 1, 1, False),
            (at("12:00:50"), 1, 1, False),
            (at("12:01:00"), 1, 1, False),
        ]
        assert [record["reason"] for record in h.side("hopping.late")] == [
            "late by 15 s for 2 of 3 windows, [2026-01-01T11:59:40Z, 2026-01-01T12:00:10Z) to "
            "[2026-01-01T11:59:50Z, 2026-01-01T12:00:20Z); the watermark was 2026-01-01T12:00:25Z",
            "late by 50 s for 3 of 3 windows, [2026-01-01T11:59:40Z, 2026-01-01T12:00:10Z) to "
            "[2026-01-01T12:00:00Z, 2026-01-01T12:00:30Z); the watermark was 2026-01-01T12:01:00Z",
        ]
        assert h.counters("hopping") == {
            "seen": 4, "skipped": 0, "dead": 0, "matched": 4,
            "pairs": 12, "folded": 7, "late": 5, "corrected": 0,
        }  # fmt: skip
        check(h)


@GEARS
def test_what_becomes_of_late_records_is_said_by_the_view(gear: str) -> None:
    view = """
    CREATE MATERIALIZED VIEW {name} WITH ({options}) AS
    SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
    """
    views = {
        "kept": "allowed_lateness = '1 minute'",
        "dropped": "late = 'drop'",
        "folded": "late = 'fold'",
        "for_a_while": "late = 'fold', retention = '5 minutes'",
    }
    text = STREAM + "".join(view.format(name=name, options=views[name]) for name in views)
    with harness(text, partitions=1) as h:
        # 12:01:30 is corrected by all but `dropped`; 12:00:30 is 1 min behind the end of its window
        # already; 11:00:00 is too late for a row that is kept for five minutes.
        h.append("clicks", [click("12:01:10"), click("12:02:00"), click("12:01:30")])
        h.append("clicks", [click("12:00:30"), click("11:00:00")])
        h.turn(gear=gear)
        names = ("matched", "folded", "late", "corrected")
        counted = {view: tuple(h.counters(view)[name] for name in names) for view in views}
        assert counted == {
            "kept": (5, 3, 2, 1),
            "dropped": (5, 2, 3, 0),
            "folded": (5, 5, 0, 3),
            "for_a_while": (5, 4, 1, 2),
        }
        assert {view: len(h.side(f"{view}.late")) for view in views} == {
            "kept": 2, "dropped": 0, "folded": 0, "for_a_while": 1,
        }  # fmt: skip
        assert h.side("for_a_while.late")[0]["reason"] == (
            "late by 1 h 1 min for window [2026-01-01T11:00:00Z, 2026-01-01T11:01:00Z); "
            "the watermark was 2026-01-01T12:02:00Z"
        )
        check(h)


@GEARS
def test_rows_leave_when_retention_ends_also_those_of_the_same_turn(gear: str) -> None:
    view = """
    CREATE MATERIALIZED VIEW {name} WITH (retention = '1 minute') AS
    SELECT window.start AS start, window.end AS end, count(*) AS n FROM clicks GROUP BY {window};
    """
    windows = {
        "tumbling": "window(ts, '10 seconds')",
        "hopping": "window(ts, '20 seconds', '10 seconds')",
        "cumulative": "cumulate(ts, '10 seconds', '30 seconds')",
    }
    text = STREAM + "".join(view.format(name=name, window=windows[name]) for name in windows)
    with harness(text, partitions=1) as h:
        h.append("clicks", [click("12:00:05")])
        h.turn(gear=gear)
        # W is 12:01:15: what ended by 12:00:15 has left. Of the hopping windows of 12:00:05 that is
        # [11:59:50, 12:00:10), and not [12:00:00, 12:00:20); the pane stays for the second.
        h.append("clicks", [click("12:00:12"), click("12:01:15")])
        h.turn(gear=gear)
        assert show(h, "tumbling", "start", "n") == [(at("12:00:10"), 1), (at("12:01:10"), 1)]
        assert show(h, "hopping", "start", "n") == [
            (at("12:00:00"), 2), (at("12:00:10"), 1), (at("12:01:00"), 1), (at("12:01:10"), 1),
        ]  # fmt: skip
        assert show(h, "cumulative", "end", "n") == [
            (at("12:00:20"), 2), (at("12:00:30"), 2), (at("12:01:20"), 1), (at("12:01:30"), 1),
        ]  # fmt: skip
        check(h)
        # A day later, in one turn with a record of the day before, which W passes on the way.
        h.append("clicks", [click("12:01:20"), click(datetime(2026, 1, 2, 12, tzinfo=UTC))])
        h.turn(gear=gear)
        with h.engine.tools.store.open() as snapshot:
            rows = {name.partition("__")[0]: n for name, n in snapshot.state_rows().items()}
            sizes = snapshot.state_bytes()
        assert rows == dict.fromkeys(windows, 1)
        assert all(8 <= size <= 64 for size in sizes.values())
        check(h)


@GEARS
def test_a_time_without_windows_kills_the_record_for_the_view_alone(gear: str) -> None:
    text = f"""{STREAM}
    CREATE MATERIALIZED VIEW derived AS SELECT window.end AS end, count(*) AS n FROM clicks
    WHERE x <> 4
    GROUP BY window(
      CASE second(ts) WHEN 2 THEN NULL
      WHEN 3 THEN CAST(concat(second(ts), ' o''clock') AS TIMESTAMP)
      ELSE ts + INTERVAL 1 HOUR END, '1 day'
    );
    CREATE MATERIALIZED VIEW days AS SELECT window.start AS start, count(*) AS n
    FROM clicks GROUP BY window(ts, '2 days', '1 day');
    """
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    first = datetime(1, 1, 1, 0, 30, tzinfo=UTC)
    with harness(text, partitions=1) as h:
        # The log stamps their arrival, so that a year 9999 closes nobody's windows.
        for record in (click(first), click("23:30:00"), click("12:00:02"), click("12:00:03")):
            h.append("clicks", [record], arrival=at("12:00:00"))
        # Skipped records are skipped, whatever their time.
        for record in (click("12:00:03", x=4), click(last), click(last, x=4)):
            h.append("clicks", [record], arrival=at("12:00:00"))
        h.turn(gear=gear)
        assert show(h, "derived", "end", "n") == [
            (datetime(1, 1, 2, tzinfo=UTC), 1),
            (datetime(2026, 1, 3, tzinfo=UTC), 1),
        ]
        reasons = {record["offset"]: record["reason"] for record in h.dead("derived")}
        assert reasons[2].startswith("the time of its window is null")
        assert "CAST_INVALID_INPUT" in reasons[3]
        outside = "its windows would reach outside of the years 1 to 9999"
        assert reasons[5].startswith(outside)
        assert sorted(reasons) == [2, 3, 5]
        found = {record["offset"]: record["reason"] for record in h.dead("days")}
        assert sorted(found) == [0, 5, 6]
        assert all(reason.startswith(outside) for reason in found.values())
        h.audit()


@GEARS
def test_the_days_of_a_zone_have_23_and_25_hours_when_its_clocks_change(gear: str) -> None:
    view = """
    CREATE MATERIALIZED VIEW {name} WITH (time_zone = '{zone}', late = 'fold') AS
    SELECT window.start AS start, window.end AS end, count(*) AS n FROM clicks GROUP BY {window};
    """
    text = STREAM
    text += view.format(name="berlin", zone="Europe/Berlin", window="window(ts, '1 day')")
    text += view.format(name="york", zone="America/New_York", window="window(ts, '1 day')")
    text += view.format(name="both", zone="Europe/Berlin", window="window(ts, '2 days', '1 day')")
    text += view.format(
        name="so_far", zone="Europe/Berlin", window="cumulate(ts, '1 day', '2 days')"
    )

    def utc(text: str) -> datetime:
        return datetime.fromisoformat(f"2026-{text}+00:00")

    # Berlin's 29 March and 25 October, New York's 8 March and 1 November.
    times = ["03-08T12:00", "03-28T23:00", "03-29T21:59:59", "03-29T22:00", "10-24T22:00"]
    times += ["10-25T22:59:59", "11-01T04:00", "11-02T04:59:59"]
    with harness(text, partitions=1) as h:
        h.append("clicks", [click(utc(time)) for time in times])
        h.turn(gear=gear)
        hours = {
            (row["start"], (row["end"] - row["start"]).total_seconds() / 3600): row["n"]
            for row in h.rows("berlin") + h.rows("york")
        }
        assert hours[utc("03-28T23:00"), 23] == 2  # in Berlin
        assert hours[utc("03-29T22:00"), 24] == 1
        assert hours[utc("10-24T22:00"), 25] == 2
        assert hours[utc("03-08T05:00"), 23] == 1  # in New York
        assert hours[utc("11-01T04:00"), 25] == 2
        both = dict(show(h, "both", "start", "n"))
        assert both[utc("03-27T23:00")] == 2
        assert both[utc("03-28T23:00")] == 3
        # Two days from 28 March on, and two from 30 March on: counted from 1 January 1970.
        assert show(h, "so_far", "start", "end", "n")[2:5] == [
            (utc("03-27T23:00"), utc("03-29T22:00"), 2),
            (utc("03-29T22:00"), utc("03-30T22:00"), 1),
            (utc("03-29T22:00"), utc("03-31T22:00"), 1),
        ]
        check(h)


def test_a_zone_that_spark_and_the_store_disagree_on_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = """
    CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
    SELECT window.start AS day, count(*) AS n FROM clicks GROUP BY {};
    """
    honest = zones._days_of_spark

    def outdated(spark: SparkSession, begin: str) -> pa.ChunkedArray:
        days = honest(spark, begin).to_pylist()
        days[20_000] += 3_600_000_000
        return pa.chunked_array([days])

    monkeypatch.setattr(zones, "_days_of_spark", outdated)
    with (
        pytest.raises(DefinitionError, match="different rules for it, first for 2024-10-04"),
        harness(STREAM + view.format("window(ts, '2 days', '1 day')")),
    ):
        pass
    # Its days alone are kept as Spark finds them.
    with harness(STREAM + view.format("window(ts, '1 day')")) as h:
        assert h.rows("v") == []


def test_a_derived_time_of_another_type_is_refused() -> None:
    view = "CREATE MATERIALIZED VIEW v AS "
    view += "SELECT count(*) AS n FROM clicks GROUP BY window({}, '1 day')"
    for expression, found in (("CAST(ts AS DATE)", "DATE"), ("unix_micros(ts)", "BIGINT")):
        with (
            pytest.raises(DefinitionError, match=f"windows are over a TIMESTAMP, .* is {found};"),
            harness(STREAM + view.format(expression)),
        ):
            pass


def test_a_filter_on_the_start_is_asked_before_panes_are_joined() -> None:
    with harness(STREAM + HOPPING, partitions=1) as h:
        h.append("clicks", [click(f"12:0{minute}:05") for minute in range(9)])
        h.turn()
        with h.engine.tools.store.open() as snapshot:
            asked = "SELECT n FROM hopping WHERE start = TIMESTAMPTZ '2026-01-01 12:03:00+00'"
            assert snapshot.query(asked).to_pylist() == [{"n": 1}]
            plan = snapshot.query(f"EXPLAIN (FORMAT json) {asked}").to_pylist()[0]["explain_value"]
        above = operators_above("12:03:00", json.loads(plan)[0])
        assert any("GROUP" in name for name in above), above
        assert any("JOIN" in name for name in above), above


def operators_above(text: str, node: dict[str, Any]) -> list[str] | None:
    """Return the operators of a plan that stand above the first one that speaks of a text."""
    if text in json.dumps(node["extra_info"]):
        return []
    for child in node["children"]:
        found = operators_above(text, child)
        if found is not None:
            return [node["name"].upper(), *found]
    return None
