"""Sessions of real visitors: 10,000 requests of a web server against a plain query over all.

Method: the requests, in the order of the log, go through an engine in turns of random sizes; the
answer is that of one batch query by gaps and islands, written without any of our code. The log is
not ours to ship: the test is skipped where the folder beside the project is not there.
"""

import gzip
import re
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from headrace.log.records import records
from headrace.testing import harness
from headrace.testing.harness import to_json

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "access-log" / "apache_logs.gz"
REQUEST = re.compile(r'(\S+) \S+ \S+ \[([^\]]+)\] "[^"]*" \d+ (\d+|-)')
GAP_SECONDS = 1_800
VISITS = f"""
CREATE STREAM requests (
  visitor STRING NOT NULL, bytes BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 1 HOUR
) WITH (topic = 'requests');
CREATE MATERIALIZED VIEW visits WITH (late = 'fold') AS
SELECT visitor, window.start AS start, window.end AS end, count(*) AS n, sum(bytes) AS bytes
FROM requests GROUP BY session_window(ts, '{GAP_SECONDS} seconds'), visitor;
"""
# Lag by lag: a visit begins where the last request of the visitor is more than the gap ago.
PLAIN = f"""
WITH marked AS (
  SELECT *, coalesce(ts - lag(ts) OVER (PARTITION BY visitor ORDER BY ts)
    > INTERVAL {GAP_SECONDS} SECONDS, true) AS begins FROM requests
), numbered AS (
  SELECT *, sum(begins::INT) OVER (PARTITION BY visitor ORDER BY ts, begins DESC
    ROWS UNBOUNDED PRECEDING) AS visit FROM marked
)
SELECT visitor, min(ts), max(ts) + INTERVAL {GAP_SECONDS} SECONDS, count(*), sum(bytes)::BIGINT
FROM numbered GROUP BY visitor, visit ORDER BY ALL
"""


def read_requests() -> list[dict[str, object]]:
    found = []
    with gzip.open(CORPUS, "rt", encoding="utf-8", errors="replace") as file:
        lines = list(file)
    for line in lines:
        match = REQUEST.match(line)
        assert match is not None, line
        visitor, moment, size = match.groups()
        ts = datetime.strptime(moment, "%d/%b/%Y:%H:%M:%S %z")
        found.append({"visitor": visitor, "bytes": None if size == "-" else int(size), "ts": ts})
    return found


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project")
@pytest.mark.parametrize("gear", ["short", "long"])
def test_the_visits_of_a_web_server_are_those_of_a_plain_query(gear: str) -> None:
    requests = read_requests()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        schema = {"visitor": pa.string(), "bytes": pa.int64(), "ts": pa.timestamp("us", "UTC")}
        connection.register("requests", pa.Table.from_pylist(requests, pa.schema(schema)))
        expected = connection.execute(PLAIN).fetchall()
    assert len(expected) > 1_500
    with harness(VISITS, partitions=1) as h:
        h.log.append("requests", records([to_json(each) for each in requests]), partition=0)
        for size in (1, 700, 4_000, None):
            h.turn(max_records=size, gear=gear)
        names = ("visitor", "start", "end", "n", "bytes")
        found = sorted(tuple(row[name] for name in names) for row in h.rows("visits"))
        assert found == expected
        assert h.counters("visits")["folded"] == len(requests)
