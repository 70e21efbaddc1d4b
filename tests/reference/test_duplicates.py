"""Duplicates in the reference, worked out by hand: it defines what other tests expect."""

import json
from datetime import UTC, datetime, timedelta

from headrace.log.base import Partition
from headrace.reference import Answer, Record, answer
from headrace.sql import parse_project

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLICKS = """
CREATE STREAM clicks (
  id STRING NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (unique = 'id', unique_within = '10 seconds');
CREATE MATERIALIZED VIEW ids AS SELECT id, count(*) AS n FROM clicks GROUP BY id;
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""


def click(offset: int, id: str | None, second: int, arrival: int | None = None) -> Record:
    """Return a click at a second after noon; it arrives when it happens, or at another second."""
    value = {"ts": (NOON + timedelta(seconds=second)).isoformat()} | ({"id": id} if id else {})
    arrives = NOON + timedelta(seconds=second if arrival is None else arrival)
    return Record(offset, int(arrives.timestamp() * 1e6), None, json.dumps(value).encode())


def ask(*partitions: list[Record]) -> Answer:
    log = {Partition("clicks", number): found for number, found in enumerate(partitions)}
    return answer(parse_project({"a.sql": CLICKS}), log)


def duplicates(found: Answer) -> list[int]:
    return [offset for _, _, offset in found.duplicates["clicks"]]


def test_an_id_comes_again_within_the_horizon_and_after_it() -> None:
    # After the first the clock is 0. The clocks before the others are 0, 3, 10 and 11.
    times = [0, 3, 10, 11, 12]
    found = ask([click(offset, "a", second) for offset, second in enumerate(times)])
    assert duplicates(found) == [1, 2, 3]
    assert found.counters["clicks"]["read"] == 5
    assert found.counters["clicks"]["accepted"] == 2
    assert found.counters["clicks"]["duplicate"] == 3
    assert [(row["id"], row["n"]) for row in found.rows["ids"]] == [("a", 2)]


def test_the_clock_decides_not_the_event_time() -> None:
    # The second happened an hour later by its own word, but the clock before it is still 0.
    assert duplicates(ask([click(0, "a", 0), click(1, "a", 3600)])) == [1]
    # Another record moved the clock by 11 seconds; that the third is of the same second is nothing.
    log = [click(0, "a", 0), click(1, "b", 11), click(2, "a", 0, arrival=11)]
    assert duplicates(ask(log)) == []


def test_a_phone_whose_clock_runs_ahead_makes_nobody_forget() -> None:
    log = [click(0, "a", 0), click(1, "b", 3600, arrival=1), click(2, "a", 2)]
    assert duplicates(ask(log)) == [2]


def test_an_old_record_is_remembered_from_the_clock_that_it_met() -> None:
    # The second stands where the clock is 100 already: it is remembered until 110.
    log = [
        click(0, "b", 100),
        click(1, "a", 0, arrival=100),
        click(2, "a", 109),
        click(3, "a", 111),
    ]
    assert duplicates(ask(log)) == [2, 3]


def test_a_duplicate_moves_the_clock_and_reaches_no_view() -> None:
    log = [click(0, "a", 0), click(1, "a", 200), click(2, "b", 30, arrival=200)]
    found = ask(log)
    assert duplicates(found) == [1]
    # The duplicate moved the watermark to 195, so the third is late for its window.
    assert found.late["per_minute"] == [("clicks", 0, 2)]
    assert found.counters["per_minute"]["seen"] == 2


def test_partitions_do_not_know_each_others_ids() -> None:
    found = ask([click(0, "a", 0), click(1, "a", 1)], [click(0, "a", 1)])
    assert found.duplicates["clicks"] == [("clicks", 0, 1)]


def test_a_dead_record_is_no_duplicate_and_is_not_remembered() -> None:
    found = ask([click(0, None, 0), click(1, None, 0), click(2, "a", 0)])
    assert duplicates(found) == []
    assert found.counters["clicks"]["dead"] == 2
