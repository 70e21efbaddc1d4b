"""The reference against answers worked out by hand: it defines what other tests expect."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from headrace.log.base import Partition
from headrace.reference import Answer, Record, answer
from headrace.sql import parse_project

DAY = datetime(2026, 3, 1, tzinfo=UTC)
CLICKS_PER_MINUTE = """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS)
WITH (topic = 'clicks', format = 'json');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""
VALUES = """
CREATE STREAM s (k STRING, i BIGINT, d DECIMAL(6,2), f DOUBLE, ts TIMESTAMP);
CREATE MATERIALIZED VIEW v AS
"""


def at(text: str) -> datetime:
    """Return a time of the day, such as 12:00:10."""
    hours, minutes, seconds = map(int, text.split(":"))
    return DAY + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def record(offset: int, row: object, arrival: datetime | None = None) -> Record:
    """Return a record of a row; a time without arrival arrives when it happens."""
    value = row if isinstance(row, bytes) else json.dumps(row, default=str).encode()
    time = row.get("ts") if isinstance(row, dict) else None
    stamp = arrival or (time if isinstance(time, datetime) else DAY)
    return Record(
        offset, (stamp - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), None, value
    )


def ask(sql: str, *partitions: list[object], topic: str = "s") -> Answer:
    """Return the answer over rows, one list per partition."""
    log = {
        Partition(topic, number): [
            each if isinstance(each, Record) else record(offset, each)
            for offset, each in enumerate(rows)
        ]
        for number, rows in enumerate(partitions)
    }
    return answer(parse_project({"a.sql": sql}), log)


def clicks(*times: str) -> list[object]:
    return [{"ts": at(each)} for each in times]


FIVE = clicks("12:00:10", "12:00:50", "12:01:30", "12:00:20", "12:01:40")


def minutes(found: Answer) -> dict[object, tuple[object, object]]:
    return {row["minute"]: (row["n"], row["_closed"]) for row in found.rows["per_minute"]}


def test_five_clicks() -> None:
    # The fourth is late: the third moved the watermark to 12:01:30, past the end of its window.
    found = ask(CLICKS_PER_MINUTE, FIVE, topic="clicks")
    assert minutes(found) == {at("12:00:00"): (2, True), at("12:01:00"): (2, False)}
    assert found.late["per_minute"] == [("clicks", 0, 3)]
    assert found.counters["per_minute"] == {
        "seen": 5, "skipped": 0, "dead": 0, "matched": 5,
        "pairs": 5, "folded": 4, "late": 1, "corrected": 0,
    }  # fmt: skip
    assert found.counters["clicks"] == {
        "read": 5,
        "accepted": 5,
        "dead": 0,
        "duplicate": 0,
        "unguarded": 0,
    }


def test_an_arrival_that_nobody_stamped_guards_nothing() -> None:
    # A phone that runs a day ahead closes the windows of all who come after it.
    ahead = record(0, {"ts": at("12:00:10") + timedelta(days=1)}, arrival=at("12:00:10"))
    after = record(1, {"ts": at("12:00:20")})
    assert ask(CLICKS_PER_MINUTE, [ahead, after], topic="clicks").late["per_minute"] == []
    unstamped = [each._replace(arrival_us=None) for each in (ahead, after)]
    found = ask(CLICKS_PER_MINUTE, list(unstamped), topic="clicks")
    assert found.late["per_minute"] == [("clicks", 0, 1)]


def test_a_delay_waits_for_the_late_click() -> None:
    # With 30 s of delay the watermark is 12:01:00 at the fourth: its window ends just then.
    late = CLICKS_PER_MINUTE.replace("0 SECONDS", "30 SECONDS")
    assert ask(late, FIVE, topic="clicks").late["per_minute"] == [("clicks", 0, 3)]
    found = ask(CLICKS_PER_MINUTE.replace("0 SECONDS", "31 SECONDS"), FIVE, topic="clicks")
    assert minutes(found) == {at("12:00:00"): (3, True), at("12:01:00"): (2, False)}


def test_allowed_lateness_takes_the_late_click_into_a_closed_window() -> None:
    allowing = CLICKS_PER_MINUTE.replace(
        "per_minute AS", "per_minute WITH (allowed_lateness = '{}') AS"
    )
    found = ask(allowing.replace("{}", "31 seconds"), FIVE, topic="clicks")
    assert minutes(found) == {at("12:00:00"): (3, True), at("12:01:00"): (2, False)}
    found = ask(allowing.replace("{}", "30 seconds"), FIVE, topic="clicks")
    assert found.late["per_minute"] == [("clicks", 0, 3)]


def test_each_partition_has_its_own_clock_and_the_slowest_closes() -> None:
    found = ask(
        CLICKS_PER_MINUTE, clicks("12:05:00"), clicks("12:00:10", "12:01:00"), topic="clicks"
    )
    assert found.late["per_minute"] == []
    assert minutes(found) == {
        at("12:05:00"): (1, False), at("12:00:00"): (1, True), at("12:01:00"): (1, False),
    }  # fmt: skip


def test_an_empty_partition_keeps_every_window_open() -> None:
    found = ask(CLICKS_PER_MINUTE, clicks("12:00:10", "12:05:00"), [], topic="clicks")
    assert minutes(found) == {at("12:00:00"): (1, False), at("12:05:00"): (1, False)}


def test_a_phone_whose_clock_runs_ahead_closes_nothing_for_the_others() -> None:
    ahead = record(1, {"ts": at("18:00:00")}, arrival=at("12:00:20"))
    found = ask(
        CLICKS_PER_MINUTE, [*clicks("12:00:10"), ahead, *clicks("12:00:30")], topic="clicks"
    )
    assert found.late["per_minute"] == []
    assert minutes(found) == {at("12:00:00"): (2, False), at("18:00:00"): (1, False)}


def test_a_record_after_its_own_time_counts_from_its_event_time() -> None:
    tunnel = record(1, {"ts": at("12:00:20")}, arrival=at("12:30:00"))
    found = ask(
        CLICKS_PER_MINUTE, [*clicks("12:00:10"), tunnel, *clicks("12:00:30")], topic="clicks"
    )
    assert minutes(found) == {at("12:00:00"): (3, False)}


def test_an_unreadable_record_is_dead_and_moves_no_clock() -> None:
    broken = [b"{", {"ts": "noon"}, {}, Record(3, 0, None, None)]
    found = ask(CLICKS_PER_MINUTE, [*broken, {"ts": at("12:00:00")}], topic="clicks")
    assert found.dead["clicks"] == [("clicks", 0, offset) for offset in range(4)]
    assert found.counters["clicks"] == {
        "read": 5,
        "accepted": 1,
        "dead": 4,
        "duplicate": 0,
        "unguarded": 0,
    }
    assert found.counters["per_minute"]["seen"] == 1


def test_a_division_by_zero_kills_the_record_for_the_view_alone() -> None:
    sql = f"""{VALUES} SELECT 10 / i AS a FROM s;
    CREATE MATERIALIZED VIEW w AS SELECT i FROM s WHERE 10 div i > 4"""
    found = ask(sql, [{"i": 2}, {"i": 0}, {"i": None}, {"i": 5}])
    assert [row["a"] for row in found.rows["v"]] == [5.0, None, 2.0]
    assert found.dead["v"] == found.dead["w"] == [("s", 0, 1)]
    assert found.dead["s"] == []
    assert [row["i"] for row in found.rows["w"]] == [2]
    assert found.counters["w"] == {
        "seen": 4, "skipped": 2, "dead": 1, "matched": 1,
        "pairs": 1, "folded": 1, "late": 0, "corrected": 0,
    }  # fmt: skip


def test_nothing_divided_by_zero_is_nothing() -> None:
    found = ask(VALUES + "SELECT i / 0 AS a, i DIV 0 AS b, i % 0 AS c FROM s", [{"i": None}])
    assert [(row["a"], row["b"], row["c"]) for row in found.rows["v"]] == [(None, None, None)]


def test_a_cast_that_fails_kills_the_record_and_try_cast_does_not() -> None:
    found = ask(VALUES + "SELECT sum(CAST(k AS INT)) AS a FROM s", [{"k": "1"}, {"k": "x"}])
    assert (found.rows["v"], found.dead["v"]) == (
        [{"a": 1, "_events": 1, "_closed": False}], [("s", 0, 1)],
    )  # fmt: skip
    found = ask(VALUES + "SELECT TRY_CAST(k AS INT) AS a FROM s", [{"k": "1"}, {"k": "x"}])
    assert [row["a"] for row in found.rows["v"]] == [1, None]


def test_a_late_record_is_late_even_where_its_argument_would_fail() -> None:
    sql = """CREATE STREAM s (i INT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);
    CREATE MATERIALIZED VIEW v AS SELECT sum(10 / i) AS a FROM s GROUP BY window(ts, '1 minute')"""
    found = ask(sql, [{"i": 1, "ts": at("12:05:00")}, {"i": 0, "ts": at("12:00:00")}])
    assert (found.late["v"], found.dead["v"]) == ([("s", 0, 1)], [])


def test_nulls_are_a_group_of_their_own_and_do_not_count() -> None:
    sql = f"""{VALUES} SELECT k, count(*) AS n, count(i) AS c, sum(i) AS s, min(i) AS lo,
    max(i) AS hi, avg(i) AS a FROM s GROUP BY k"""
    found = ask(
        sql, [{"k": None, "i": 1}, {"k": None}, {"k": "x"}, {"k": "y", "i": 2}, {"k": "y", "i": 5}]
    )
    rows = {row.pop("k"): tuple(row.values()) for row in found.rows["v"]}
    assert rows == {
        None: (2, 1, 1, 1, 1, 1.0, 2, False),
        "x": (1, 0, None, None, None, None, 1, False),
        "y": (2, 2, 7, 2, 5, 3.5, 2, False),
    }


def test_decimals_are_exact_and_their_average_is_rounded_half_up() -> None:
    sql = VALUES + "SELECT sum(d) AS s, avg(d) AS a, min(d) AS lo FROM s"
    rows = [{"d": "0.01"}, {"d": "0.01"}, {"d": "9999.99"}]
    assert ask(sql, rows).rows["v"] == [
        {
            "s": Decimal("10000.01"),
            "a": Decimal("3333.336667"),
            "lo": Decimal("0.01"),
            "_events": 3,
            "_closed": False,
        }
    ]
    # 0.01 / 32 = 0.0003125: a half, which goes up.
    assert ask(sql, [{"d": "0.01"}, *[{"d": "0"}] * 31]).rows["v"][0]["a"] == Decimal("0.000313")


def test_doubles_are_summed_without_rounding_on_the_way() -> None:
    found = ask(
        VALUES + "SELECT sum(f) AS s, avg(f) AS a FROM s", [{"f": 1e16}, {"f": 1.0}, {"f": -1e16}]
    )
    assert found.rows["v"][0]["s"] == 1.0


def test_a_view_without_keys_has_no_row_before_its_first_record() -> None:
    sql = VALUES + "SELECT count(*) AS n FROM s WHERE i > 0"
    assert ask(sql, [{"i": 0}]).rows["v"] == []
    assert ask(sql, []).rows["v"] == []
    assert ask(sql, [{"i": 1}]).rows["v"] == [{"n": 1, "_events": 1, "_closed": False}]


def test_having_hides_groups_and_outputs_are_computed_over_aggregates() -> None:
    sql = f"""{VALUES} SELECT upper(k) AS u, sum(i) / count(*) AS a,
    CASE WHEN max(i) > 3 THEN 'big' ELSE k END AS c FROM s GROUP BY k HAVING count(*) > 1"""
    found = ask(sql, [{"k": "a", "i": 3}, {"k": "a", "i": 4}, {"k": "b", "i": 1}])
    assert found.rows["v"] == [{"u": "A", "a": 3.5, "c": "big", "_events": 2, "_closed": False}]
    assert found.counters["v"]["folded"] == 3


def test_a_group_on_which_an_expression_fails_is_among_the_errors() -> None:
    sql = VALUES + "SELECT k, 1 / sum(i) AS a FROM s GROUP BY k HAVING 1 / (max(i) - 7) < 1"
    found = ask(sql, [{"k": "a", "i": 0}, {"k": "b", "i": 1}, {"k": "c", "i": 7}])
    assert [row["k"] for row in found.rows["v"]] == ["b"]
    assert sorted(row["k"] for row in found.errors["v"]) == ["a", "c"]


def test_small_numbers_over_aggregates_are_computed_with_as_large_ones() -> None:
    sql = """CREATE STREAM s (n TINYINT, f FLOAT); CREATE MATERIALIZED VIEW v AS
    SELECT max(n) * 100 AS a, max(f) > 0.1 AS b FROM s"""
    found = ask(sql, [{"n": 5, "f": 0.1}])
    assert found.rows["v"] == [{"a": 500, "b": True, "_events": 1, "_closed": False}]


def test_keys_may_use_the_window() -> None:
    sql = """CREATE STREAM s (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);
    CREATE MATERIALIZED VIEW v AS
    SELECT date_trunc('hour', window.start) AS hour, window.end AS until, count(*) AS n
    FROM s GROUP BY window(ts, '5 minutes')"""
    found = ask(sql, clicks("12:07:00", "12:09:59"))
    assert found.rows["v"] == [
        {"hour": at("12:00:00"), "until": at("12:10:00"), "n": 2, "_events": 2, "_closed": False}
    ]


def test_a_time_before_1970_falls_into_the_window_around_it() -> None:
    found = ask(CLICKS_PER_MINUTE, [record(0, {"ts": "1969-12-31T23:59:59.5Z"})], topic="clicks")
    assert [row["minute"] for row in found.rows["per_minute"]] == [
        datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
    ]


def test_rows_of_a_view_without_grouping_are_closed_and_in_order() -> None:
    found = ask(
        VALUES + "SELECT *, k || '!' AS loud FROM s WHERE k <> 'b'", [{"k": "a"}, {"k": "b"}, {}]
    )
    assert [(row["loud"], row["_events"], row["_closed"]) for row in found.rows["v"]] == [
        ("a!", 1, True)
    ]
    assert found.counters["v"]["skipped"] == 2


def test_minus_zero_and_zero_are_one_group() -> None:
    found = ask(VALUES + "SELECT f, count(*) AS n FROM s GROUP BY f", [{"f": 0.0}, {"f": -0.0}])
    assert [row["n"] for row in found.rows["v"]] == [2]


def test_a_call_over_keys_beside_an_aggregate_is_asked_of_the_record() -> None:
    rows = [{"k": "2026-01-31"}, {"k": "x"}, {"k": "2026-01-31"}, {"k": None}]
    outputs = (
        "CAST(count(*) AS STRING) || CAST(year(to_date(k)) AS STRING) AS a",
        "named_struct('n', count(*), 'y', CASE WHEN k <> 'x' THEN year(to_date(k)) END).y AS a",
        "CASE WHEN count(*) > 0 THEN length(k) END AS a",
    )
    dead = []
    for output in outputs:
        found = ask(VALUES + f"SELECT k, {output} FROM s GROUP BY k", rows)
        dead.append([offset for _, _, offset in found.dead["v"]])
        assert found.counters["v"]["folded"] == len(rows) - len(dead[-1])
    assert dead == [[1], [], []]


def test_functions_that_differ_are_not_answered() -> None:
    for function in ("trunc(ts, 'month')", "regexp_replace(k, '(a)', '$1$1')"):
        with pytest.raises(NotImplementedError, match="the reference does not know"):
            ask(VALUES + f"SELECT {function} AS a FROM s", [{"k": "a"}])
    found = ask(VALUES + "SELECT CAST(ts AS STRING) AS a FROM s", [{"ts": "2026-01-31T01:02:03Z"}])
    assert [row["a"] for row in found.rows["v"]] == ["2026-01-31 01:02:03"]


def test_what_duckdb_does_not_know_is_not_answered() -> None:
    with pytest.raises(NotImplementedError):
        ask(VALUES + "SELECT luhn_check(k) AS a FROM s", [{"k": "a"}])


VISITS = """
CREATE STREAM clicks (
  k STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS
) WITH (topic = 'clicks');
CREATE MATERIALIZED VIEW visits WITH ({options}) AS
SELECT k, window.start AS start, window.end AS end, count(*) AS n
FROM clicks GROUP BY session_window(ts, '1 minute'), k;
"""


def visits(options: str, *records: tuple[str, str]) -> tuple[list[tuple[object, ...]], Answer]:
    values = [{"k": key, "ts": at(time)} for key, time in records]
    found = ask(VISITS.format(options=options), values, topic="clicks")
    names = ("k", "start", "end", "n", "_closed")
    rows = [tuple(row[name] for name in names) for row in found.rows["visits"]]
    return sorted(rows, key=str), found


def test_a_session_is_a_chain_of_records_at_most_the_gap_apart_whatever_their_order() -> None:
    # The clock stands at 12:02:30 after the third. The fourth is exactly the gap after the first;
    # its own session would have ended at 12:02:00, so it is a correction. The fifth closes the gap
    # to the third. The last could have begun a session that ended at 12:01:00, 90 seconds ago.
    rows, found = visits(
        "allowed_lateness = '1 minute'",
        ("a", "12:00:00"), ("b", "12:00:00"), ("a", "12:02:30"), ("a", "12:01:00"),
        ("a", "12:01:45"), ("b", "12:00:00"),
    )  # fmt: skip
    assert rows == [
        ("a", at("12:00:00"), at("12:03:30"), 4, False),
        ("b", at("12:00:00"), at("12:01:00"), 1, True),
    ]
    assert found.late["visits"] == [("clicks", 0, 5)]
    assert found.counters["visits"] == {
        "seen": 6, "skipped": 0, "dead": 0, "matched": 6,
        "pairs": 6, "folded": 5, "late": 1, "corrected": 1,
    }  # fmt: skip


def test_a_session_leaves_with_its_retention_and_takes_what_comes_until_then() -> None:
    records = [("a", "12:00:00"), ("b", "12:03:00"), ("a", "12:01:00")]
    # A record is folded while W can be less than two minutes behind it.
    rows, found = visits("late = 'fold', retention = '2 minutes'", *records)
    assert found.late["visits"] == [("clicks", 0, 2)]
    assert rows == [("b", at("12:03:00"), at("12:04:00"), 1, False)]
    rows, found = visits("late = 'fold', retention = '2 minutes 1 second'", *records)
    assert found.late["visits"] == []
    assert rows == [
        ("a", at("12:00:00"), at("12:02:00"), 2, True),
        ("b", at("12:03:00"), at("12:04:00"), 1, False),
    ]
    rows, found = visits("late = 'fold'", *records)
    assert len(rows) == 2
