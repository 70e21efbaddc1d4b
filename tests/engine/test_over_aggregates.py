"""Expressions over aggregates and over the edges of windows: the answer is Spark's, in both gears.

Method: records whose answers are worked out by hand, over hopping windows, sessions and no window,
cut into two turns. tests/plan/test_final_functions.py has every function on every type.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from headrace.testing import harness

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k STRING, x DOUBLE, money DECIMAL(12,2), n INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 's', format = 'json');

CREATE MATERIALIZED VIEW whole AS
SELECT k, round(sum(x) / count(*), 2) AS mean, sum(money) / count(*) AS each,
  CAST(avg(money) AS DECIMAL(10,1)) AS short, sum(n) % 4 AS rest, sum(n) DIV 4 AS times,
  concat(upper(k), '-', count(*)) AS label, named_struct('n', count(*), 'most', max(n)) AS pair,
  array_join(sort_array(collect_list(k)), '+') AS joined, max_by(k, ts) || '!' AS last
FROM s GROUP BY k HAVING round(avg(x), 1) < 3;

CREATE MATERIALIZED VIEW hops AS
SELECT date_format(window.start, 'HH:mm:ss') AS label, window.end - INTERVAL 1 SECOND AS until,
  hour(window.start) * 100 + count(*) AS code, size(collect_list(n)) AS listed
FROM s GROUP BY window(ts, '20 seconds', '10 seconds');

CREATE MATERIALIZED VIEW visits AS
SELECT k, date_trunc('minute', window.start) AS minute,
  unix_timestamp(window.end) - unix_timestamp(window.start) AS seconds,
  element_at(collect_list(n), -1) AS last
FROM s GROUP BY session_window(ts, '5 seconds'), k;
"""


def at(second: float) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)


RECORDS = [
    {"k": "a", "x": 2.675, "money": "10.00", "n": 7, "ts": at(1)},
    {"k": "a", "x": 2.675, "money": "0.05", "n": -2, "ts": at(4)},
    {"k": "b", "x": 9.0, "money": "1.00", "n": 1, "ts": at(12)},
    {"k": "a", "x": 2.5, "money": "0.00", "n": 1, "ts": at(14)},
]


@pytest.mark.parametrize("gear", ["short", "long"])
def test_expressions_over_aggregates_and_edges(gear: str) -> None:
    with harness(SQL) as h:
        h.append("s", RECORDS[:2])
        h.turn(gear=gear)
        h.append("s", RECORDS[2:])
        h.turn(gear=gear)
        [row] = h.rows("whole")  # HAVING leaves b out
        assert row == {
            "k": "a",
            "mean": 2.62,  # 7.85 / 3 = 2.61666...
            "each": Decimal("3.350000000000000000"),
            "short": Decimal("3.4"),  # 3.35, HALF_UP
            "rest": 2,
            "times": 1,
            "label": "A-3",
            "pair": {"n": 3, "most": 7},
            "joined": "a+a+a",
            "last": "a!",
        }
        hops = sorted(h.rows("hops"), key=lambda row: row["until"])
        assert [(row["label"], row["until"], row["code"], row["listed"]) for row in hops] == [
            ("11:59:50", at(9), 1102, 2),
            ("12:00:00", at(19), 1204, 4),
            ("12:00:10", at(29), 1202, 2),
        ]
        visits = sorted(h.rows("visits"), key=lambda row: (row["k"], row["last"]))
        assert [(row["k"], row["minute"], row["seconds"], row["last"]) for row in visits] == [
            ("a", at(0), 8, -2),
            ("a", at(0), 5, 1),
            ("b", at(0), 5, 1),
        ]
        h.audit()
