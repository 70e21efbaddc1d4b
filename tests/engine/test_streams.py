"""Streams as people have them: times in their own words, keys and paths, computed columns.

Method: logs with good and failing records are turned in pieces, in both gears; tables, dead and
duplicate sets and counters are the reference's, and the audit holds. Reasons are written out.
"""

from datetime import UTC, datetime, timedelta

import pytest
from agreement import any_split, assert_agrees_with_the_reference
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DefinitionError
from headrace.observe.lateness import measure_lateness
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.harness import Value

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REQUESTS = """
CREATE STREAM requests (
  raw_time STRING FROM '@timestamp',
  ts TIMESTAMP AS to_timestamp(raw_time, 'dd/MMM/yyyy:HH:mm:ss Z'),
  host STRING FROM '$.http.host', status INT FROM '$.http.status', bytes BIGINT,
  sizes ARRAY<BIGINT NOT NULL>, first BIGINT FROM '$.sizes[0]',
  kilobytes AS bytes / 1000, share DECIMAL(12,2) AS CAST(100 * first / bytes AS DECIMAL(12,2)),
  id STRING AS concat(host, '-', bytes),
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (unique = 'id', unique_within = '20 seconds', duplicates = 'topic');

CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, host, count(*) AS n, sum(bytes) AS bytes, max(kilobytes) AS most
FROM requests WHERE status < 400 GROUP BY window(ts, '1 minute'), host;

CREATE MATERIALIZED VIEW shares AS SELECT id, ts, share FROM requests WHERE status = 200;
"""


def written(time: datetime) -> str:
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000")


def request(number: int) -> Value:
    """Return the record of a number: mostly sound, some dead for the stream, some for a view."""
    time = NOON + timedelta(seconds=number - 4 * (number % 3))
    sound = {
        "@timestamp": written(time),
        "http": {"host": f"h{number % 2}", "status": 200 if number % 5 else 404},
        "bytes": number % 9,
        "sizes": [number, 1],
    }
    match number % 17:
        case 3:
            return sound | {"@timestamp": "yesterday"}
        case 5:
            return sound | {"@timestamp": None}
        case 7:
            return sound | {"bytes": None}
        case 9:
            return sound | {"sizes": [1, None]}
        case 11:
            return sound | {"http": "no object"}
        case 13:
            return "broken"
    return sound


def append(h: Harness, start: int, count: int) -> None:
    for partition in (0, 1):
        # When they came: a bit after the newest of them.
        numbers = range(start + 1000 * partition, start + 1000 * partition + count)
        for number in numbers:
            arrival = NOON + timedelta(seconds=number + 1)
            h.append("requests", [request(number)], partition=partition, arrival=arrival)


CUTS = st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["short", "long"])), max_size=4)


@any_split(2)
@given(cuts=CUTS)
def test_a_computed_event_time_and_id_agree_with_the_reference(cuts: list[tuple[int, str]]) -> None:
    with harness(REQUESTS, partitions=2, settings=Settings(split_folds=2, split_records=20)) as h:
        append(h, 0, 30)
        for size, gear in cuts:
            h.turn(max_records=size, gear=gear)
        append(h, 30, 10)
        while h.turn(gear="long"):
            pass
        h.close_time()
        assert_agrees_with_the_reference(h)
        assert h.counters("requests")["dead"] > 20
        assert h.counters("requests")["duplicate"] > 0
        assert h.counters("shares")["dead"] > 0
        h.audit()


@pytest.mark.parametrize("gear", ["short", "long"])
def test_the_reason_names_the_column_and_what_it_is_computed_from(gear: str) -> None:
    with harness(REQUESTS, partitions=1) as h:
        h.append("requests", [request(number) for number in [*range(17), 27]], arrival=NOON)
        h.turn(gear=gear)
        time = "cast(to_timestamp(raw_time, 'dd/MMM/yyyy:HH:mm:ss Z') as timestamp)"
        assert {row["offset"]: row["reason"] for row in h.dead("requests")} == {
            3: f'ts: {time} fails where raw_time = "yesterday"',
            5: "ts: the event time is null where raw_time = null",
            7: 'id: the unique id is null where host = "h1" and bytes = null',
            9: "sizes[1]: is null, and the elements are NOT NULL",
            11: "host (FROM '$.http.host'): \"no object\" at http is not an object",
            13: "not JSON: unexpected broken at byte 0",
        }
        # Only the view that asks for it has this one dead.
        [dead] = h.dead("shares")
        assert "DIVIDE_BY_ZERO" in dead["reason"]
        assert not h.dead("per_minute")
        assert measure_lateness(h.log, h.project.stream("requests")).records == 12


NOTES = """
CREATE STREAM notes (
  text STRING, words AS size(split(text, ' ')),
  WATERMARK FOR _arrival AS _arrival - INTERVAL 5 SECONDS
);
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n, sum(words) AS words, max(_arrival) AS last
FROM notes GROUP BY window(_arrival, '1 minute');
"""


def test_records_without_a_time_go_by_their_arrival() -> None:
    with harness(NOTES, partitions=1, settings=Settings(split_folds=2, split_records=20)) as h:
        for number in range(12):
            arrival = NOON + timedelta(seconds=20 * number)
            h.append("notes", [{"text": "a b" if number % 2 else "a"}], arrival=arrival)
            h.append("notes", ["broken"])  # at the same time
        for gear in ("short", "long"):
            h.turn(max_records=7, gear=gear)
        h.close_time()
        last = [NOON + timedelta(seconds=60 * minute + 40) for minute in range(4)]
        assert sorted(h.rows("per_minute"), key=lambda row: row["minute"]) == [
            {
                "minute": NOON + timedelta(minutes=minute),
                "n": 3,
                "words": 4 + minute % 2,
                "last": last[minute],
            }
            for minute in range(4)
        ]
        assert h.counters("notes") == {
            "read": 24, "accepted": 12, "dead": 12, "duplicate": 0, "unguarded": 0
        }  # fmt: skip
        assert_agrees_with_the_reference(h)
        h.audit()


def test_what_spark_refuses_is_told_with_its_place() -> None:
    definitions = """
CREATE STREAM a (x STRING, t TIMESTAMP AS to_timestamp(x, x, x), WATERMARK FOR t AS t);
CREATE MATERIALIZED VIEW v AS SELECT x FROM a;
"""
    refusal = r"test.sql:2:28: column t of a: Spark refuses"
    with pytest.raises(DefinitionError, match=refusal), harness(definitions):
        pass
