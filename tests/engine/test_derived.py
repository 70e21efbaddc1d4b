"""Queries over queries: CTEs, subqueries, UNION ALL and named queries mean what they say.

Method: one log of two streams, views of every form over it, in both gears, cut into turns; rows
worked out by hand where they are few, and the reference for all.
"""

from datetime import UTC, datetime, timedelta

import pytest
from agreement import assert_agrees_with_the_reference

from headrace.testing import harness

pytestmark = pytest.mark.spark

SHOPS = """
CREATE STREAM north (id STRING, cents INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS);
CREATE STREAM south (ts TIMESTAMP NOT NULL, id STRING, euros DECIMAL(8,2), tags ARRAY<STRING>,
  WATERMARK FOR ts AS ts);
CREATE STREAM orders AS
SELECT id, cents, ts, 'north' AS shop FROM north
UNION ALL SELECT id, euros * 100, ts, 'south' FROM south WHERE euros > 0;
CREATE VIEW counts AS
SELECT window.start AS minute, shop, count(*) AS n, sum(cents) AS total
FROM orders GROUP BY window(ts, '1 minute'), shop;
"""
VIEWS = """
CREATE MATERIALIZED VIEW united AS SELECT * FROM orders;
CREATE MATERIALIZED VIEW per_minute AS SELECT minute, shop, n, total FROM counts;
CREATE MATERIALIZED VIEW busy AS
SELECT shop, n + 1 AS more, upper(shop) AS loud FROM counts WHERE n > 1 AND shop <> 'x';
CREATE MATERIALIZED VIEW twice AS SELECT id FROM north UNION ALL SELECT id FROM north;
CREATE MATERIALIZED VIEW widened AS
WITH a (x) AS (SELECT cents FROM north), b AS (SELECT length(id) AS y FROM south)
SELECT x / 2 AS half FROM (SELECT x FROM a UNION ALL SELECT CAST(y AS BIGINT) FROM b) AS t;
CREATE MATERIALIZED VIEW marked AS
SELECT at, watermark() AS mark FROM (SELECT ts AS at FROM (SELECT * FROM orders) WHERE shop = 'south');
CREATE MATERIALIZED VIEW late_ones AS
WITH seen AS (SELECT ts, 10 / cents AS share FROM north)
SELECT window.start AS start, count(*) AS n, max(watermark()) AS mark
FROM (SELECT ts, share FROM seen UNION ALL SELECT ts, 1.5D FROM south)
WHERE share > 0 GROUP BY window(ts, '10 seconds');
"""  # noqa: E501


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


@pytest.mark.parametrize("gear", ["short", "long"])
def test_queries_over_queries_agree_with_the_reference(gear: str) -> None:
    with harness(SHOPS + VIEWS, partitions=1) as h:
        h.append(
            "north",
            [
                {"id": f"n{number}", "cents": cents, "ts": at(second)}
                for number, (cents, second) in enumerate([(100, 1), (5, 70), (0, 30), (7, 2)])
            ],
            partition=0,
        )
        h.turn(gear=gear)
        h.append(
            "south",
            [{"id": "s0", "euros": "1.25", "ts": at(3)}, {"id": "s1", "euros": "0", "ts": at(65)}],
            partition=0,
        )
        h.turn(gear=gear)
        rows = sorted((row["shop"], row["id"], float(row["cents"])) for row in h.rows("united"))
        assert rows == [
            ("north", "n0", 100.0), ("north", "n1", 5.0), ("north", "n2", 0.0),
            ("north", "n3", 7.0), ("south", "s0", 125.0),
        ]  # fmt: skip
        # The third and the fourth of north come behind its watermark of 65 seconds.
        counts = sorted((row["minute"], row["shop"], row["n"]) for row in h.rows("per_minute"))
        assert counts == [(at(0), "north", 1), (at(0), "south", 1), (at(60), "north", 1)]
        assert h.rows("busy") == []
        ids = sorted(row["id"] for row in h.rows("twice"))
        assert ids == ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"]
        assert h.rows("marked") == [{"at": at(3), "mark": None}]
        assert_agrees_with_the_reference(h)
        h.audit()
