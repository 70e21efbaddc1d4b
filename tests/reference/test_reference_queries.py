"""The reference over queries as they are written, against answers worked out by hand."""

import json
from typing import Any

from headrace.log.base import Partition
from headrace.reference import Answer, Record, answer
from headrace.sql import parse_project

STREAM = """
CREATE STREAM s (
  a STRING, b STRING, n BIGINT, tags ARRAY<STRING>, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS
);
"""


def ask(query: str, *values: dict[str, Any]) -> Answer:
    project = parse_project({"a.sql": f"{STREAM} CREATE MATERIALIZED VIEW v AS {query}"})
    records = [
        Record(at, None, None, json.dumps({"ts": "2026-03-01T00:00:00Z"} | value).encode())
        for at, value in enumerate(values)
    ]
    return answer(project, {Partition("s", 0): records})


def rows(found: Answer) -> list[tuple[Any, ...]]:
    values = (
        tuple(value for name, value in row.items() if not name.startswith("_"))
        for row in found.rows["v"]
    )
    return sorted(values, key=lambda row: tuple((each is not None, each) for each in row))


PAIRS = [{"a": "x", "b": "p", "n": 1}, {"a": "x", "b": "q", "n": 2}, {"a": None, "b": "p", "n": 4}]


def test_a_rollup_tells_nulls_of_the_data_from_those_of_a_set() -> None:
    found = ask(
        "SELECT a, b, grouping(a) AS ga, grouping_id() AS g, sum(n) AS n FROM s "
        "GROUP BY ROLLUP (a, b)",
        *PAIRS,
    )
    assert rows(found) == [
        (None, None, 0, 1, 4),
        (None, None, 1, 3, 7),
        (None, "p", 0, 0, 4),
        ("x", None, 0, 1, 3),
        ("x", "p", 0, 0, 1),
        ("x", "q", 0, 0, 2),
    ]
    assert found.counters["v"]["records"] == found.counters["v"]["expanded"] == 3
    assert found.counters["v"]["seen"] == found.counters["v"]["folded"] == 9


def test_a_grouping_set_that_stands_twice_gives_its_rows_twice() -> None:
    found = ask("SELECT a, max(a) AS m FROM s GROUP BY GROUPING SETS ((a), (a), ())", *PAIRS[:2])
    assert rows(found) == [(None, "x"), ("x", "x"), ("x", "x")]


def test_a_record_that_fails_in_one_set_is_dead_in_all() -> None:
    found = ask("SELECT count(*) AS n FROM s GROUP BY CUBE (10 / (n - 1))", *PAIRS)
    assert found.dead["v"] == [("s", 0, 0)]
    assert rows(found) == [(1,), (1,), (2,)]


def test_groups_of_elements() -> None:
    found = ask(
        "SELECT tag, count(*) AS n, max(at) AS latest FROM s LATERAL VIEW posexplode(tags) t AS "
        "at, tag WHERE tag <> 'c' GROUP BY tag",
        {"tags": ["a", "b", "a"]},
        {"tags": ["c", "a"]},
        {"tags": []},
    )
    assert rows(found) == [("a", 3, 2), ("b", 1, 1)]
    assert {name: count for name, count in found.counters["v"].items() if count} == {
        "records": 3, "empty": 1, "expanded": 2,
        "seen": 5, "skipped": 1, "matched": 4, "pairs": 4, "folded": 4,
    }  # fmt: skip


def test_the_generator_of_a_select_list_stands_behind_where() -> None:
    query = "SELECT explode(tags) AS tags, n FROM s WHERE 10 / n > 1"
    found = ask(query, {"n": 1, "tags": ["a", "b"]}, {"n": 0, "tags": []}, {"n": 20, "tags": ["c"]})
    assert rows(found) == [("a", 1), ("b", 1)]
    assert found.dead["v"] == [("s", 0, 1)]
    assert found.counters["v"]["left_out"] == 1


def test_distinct_rows() -> None:
    found = ask("SELECT DISTINCT a, upper(a) AS u, 1 AS one FROM s", *PAIRS)
    assert rows(found) == [(None, None, 1), ("x", "X", 1)]


def test_windows_of_single_records_and_groups_over_them() -> None:
    hop = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)"
    query = "SELECT n, minute(window_start) AS a, minute(window_end) AS b FROM {} WHERE n > 1"
    found = ask(query.format(hop), *PAIRS)
    assert rows(found) == [(2, 0, 2), (2, 59, 1), (4, 0, 2), (4, 59, 1)]
    found = ask(f"SELECT count(*) AS n, count(DISTINCT window_end) AS w FROM {hop}", *PAIRS)
    assert rows(found) == [(6, 2)]
