"""Views over several streams, and rows that are made of records: the answer is the reference's.

Method: random logs of two streams, cut at random, with crashes, in both gears; and stories of
edits and sinks over a union.
"""

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from agreement import (
    any_split,
    assert_agrees_with_the_reference,
    assert_the_cuts_do_not_show,
    rich_scripts,
)
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headrace.engine.gears import folding
from headrace.plan.stages import Fold
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.harness import Value
from headrace.testing.strategies import Script

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

STREAMS = """
CREATE STREAM web (
  k STRING, n INT, tags ARRAY<STRING>, prices MAP<STRING, DECIMAL(6,2)>, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'web');
CREATE STREAM shop (
  customer STRING, amount BIGINT, lines ARRAY<STRUCT<item: STRING, count: INT>>,
  ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts
) WITH (topic = 'shop');
CREATE VIEW sold AS
SELECT k, n, ts FROM web WHERE n >= 0
UNION ALL SELECT customer, 10 / amount, ts FROM shop
UNION ALL SELECT upper(k), n, ts FROM web;
"""
SINGLE = """
CREATE MATERIALIZED VIEW single AS SELECT k, n, ts FROM sold WHERE k <> 'b';
"""
# Over both streams, over one alone, and over the other.
SOME = (
    SINGLE
    + """
CREATE MATERIALIZED VIEW per_window WITH (allowed_lateness = '4 seconds') AS
SELECT window.start AS start, k, count(*) AS c, sum(n) AS n, last(n) AS last,
  collect_list(n, 5) AS ns
FROM sold GROUP BY window(ts, '10 seconds'), k;
CREATE MATERIALIZED VIEW by_tag WITH (late = 'drop') AS
SELECT window.end AS until, tag, count(*) AS c, max(100 / n) AS most, collect_list(k, 4) AS ks
FROM web LATERAL VIEW explode(tags) t AS tag
WHERE tag <> 'x' GROUP BY window(ts, '20 seconds', '5 seconds'), tag;
CREATE MATERIALIZED VIEW both_tags AS
SELECT tag, count(*) AS c, min(ts) AS first FROM (
  SELECT explode(tags) AS tag, ts FROM web UNION ALL SELECT customer, ts FROM shop
) GROUP BY tag;
CREATE MATERIALIZED VIEW windows AS
SELECT customer, window_start AS start, window_end AS until
FROM TABLE(HOP(TABLE shop, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '15' SECONDS));
"""
)
VIEWS = (
    SOME
    + """
CREATE MATERIALIZED VIEW letters AS
SELECT k, i, tag, letter, p, o, topic
FROM (
  SELECT *, _partition AS p, _offset AS o, _topic AS topic FROM web WHERE n IS NULL OR n <> 2
)
LATERAL VIEW OUTER posexplode(tags) AS i, tag LATERAL VIEW explode(split(tag, '')) AS letter
WHERE letter <> 'y';
CREATE MATERIALIZED VIEW items AS
SELECT item, sum(count) AS c, first(customer) AS first
FROM (SELECT customer, inline(lines) FROM shop WHERE amount <> 5) GROUP BY item;
CREATE MATERIALIZED VIEW cube AS
SELECT k, n % 2 AS odd, count(*) AS c, grouping_id() AS id FROM web GROUP BY CUBE (k, n % 2);
"""
)


def values(event_time: datetime) -> st.SearchStrategy[Value]:
    """Draw records that both streams read; some are broken, some break an expression."""
    texts = st.sampled_from(["a", "b", "x", "xy", "", None])
    time = {"ts": st.just(event_time.isoformat())}
    good = st.fixed_dictionaries(
        time,
        optional={
            "k": texts,
            "customer": texts,
            "n": st.sampled_from([1, 2, 5, -1, None] * 3 + [0]),
            "amount": st.sampled_from([1, 2, 5, 2**40] * 3 + [0]),
            "tags": st.none() | st.lists(texts, max_size=3),
            "lines": st.lists(
                st.fixed_dictionaries({}, optional={"item": texts, "count": st.integers(0, 3)}),
                max_size=2,
            ),
        },
    )
    broken: list[Value] = ["{", None, '{"ts": "soon"}']
    return st.one_of(good, good, good, good, good, st.sampled_from(broken))


@pytest.mark.parametrize(
    "chosen", [Settings(), Settings(split_records=6, seed_records=5)], ids=["whole", "split"]
)
@any_split(1, soaked=2)
@given(
    script=rich_scripts(
        values,
        streams=["web", "shop"],
        min_records=10,
        max_records=24,
        start=datetime(2026, 3, 28, 12, tzinfo=UTC),
    ),
)
def test_the_cut_into_turns_never_shows(script: Script, chosen: Settings) -> None:
    assert_the_cuts_do_not_show(script, STREAMS + VIEWS, chosen)


def at(second: int) -> str:
    return f"2026-03-28T12:{second // 60:02}:{second % 60:02}Z"


def fill(h: Harness, first: int = 0) -> None:
    numbers = range(first, first + 8)  # zero fails in some views
    web = [{"k": "a", "n": n, "tags": ["x", "y"], "ts": at(n)} for n in numbers]
    shop = [{"customer": "b", "amount": n, "ts": at(n)} for n in numbers]
    h.append("web", web, partition=0)
    h.append("shop", shop[:4], partition=0)
    h.append("shop", shop[4:], partition=1)


def settle(h: Harness) -> None:
    while h.turn():
        pass


def test_a_view_over_two_streams_is_built_anew_when_one_or_both_are_edited() -> None:
    edited = STREAMS.replace("ts - INTERVAL 5 SECONDS", "ts - INTERVAL 1 MINUTE")
    both = STREAMS.replace("amount BIGINT", "amount INT")  # and web is as it was before
    with harness(STREAMS + SOME, partitions=2) as h:
        fill(h)
        h.turn(max_records=5)
        h.turn()
        for definitions, unit in ((edited, "stream:web@"), (both, "+web@")):
            h.restart(definitions + SOME)
            assert [name for name in h.engine.units if unit in name]
            fill(h, first=60)
            settle(h)
            assert list(h.engine.units) == ["main"]
            assert_agrees_with_the_reference(h)
        h.audit()


def test_a_sink_is_told_each_row_of_a_union_under_its_coordinates() -> None:
    sink = "CREATE SINK told FROM single WITH (topic = 'told');"
    with harness(STREAMS + SINGLE + sink, partitions=2) as h:
        fill(h)
        h.turn(max_records=5)
        h.crash("after_commit")
        h.turn()
        h.restart()
        settle(h)
        told = [
            (json.loads(record["key"]), json.loads(record["value"])) for record in h.topic("told")
        ]
        rows = h.rows("single")
        assert len(told) == len(rows) == 16
        assert set(told[0][0]) == {"branch", "partition", "offset"}
        assert len({tuple(key.values()) for key, _ in told}) == len(told)


def test_branches_that_run_side_by_side_do_not_see_each_others_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In both branches a record fails, so both are folded slice by slice, in threads."""
    both = threading.Barrier(2)
    fold_frame = folding.fold_frame

    def wait(fold: Fold, session: SparkSession) -> pa.Table:
        with suppress(threading.BrokenBarrierError):  # one has more slices than the other
            both.wait(timeout=3)
        return fold_frame(fold, session)

    view = "SELECT 10 / n AS x FROM (SELECT n FROM web UNION ALL SELECT amount FROM shop)"
    with harness(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {view};", partitions=1) as h:
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        h.append("web", [{"n": n, "ts": moment} for n in (0, 1, 2)])
        h.append("shop", [{"amount": n, "ts": moment} for n in (0, 5)])
        monkeypatch.setattr(folding, "fold_frame", wait)
        h.turn(gear="long")
        assert sorted(row["x"] for row in h.rows("v")) == [2.0, 5.0, 10.0]
        assert sorted(row["topic"] for row in h.dead("v")) == ["shop", "web"]
