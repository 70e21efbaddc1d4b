"""Definitions change, rows fail, and a reader of the topic still ends with the view.

Method: every sink retracts, so that a row which is told twice, or retracted and was never told, is
seen; after each edit what the topic holds has to be the rows of the view.
"""

import pytest
from told import held, held_rows

from headrace.errors import DefinitionError
from headrace.ledger.entries import Holding
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM clicks (k STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 'clicks');
CREATE MATERIALIZED VIEW fine AS SELECT count(*) AS n FROM clicks;
"""
RATIO = """
CREATE MATERIALIZED VIEW ratio WITH (emit = '{emit}') AS
SELECT k, 1 / {by} AS r FROM clicks GROUP BY k;
"""
FEW = """
CREATE MATERIALIZED VIEW few WITH (emit = '{emit}') AS
SELECT k, count(*) AS n FROM clicks GROUP BY k HAVING 1 / {by} < 7;
"""
SINKS = """
CREATE SINK ratios FROM ratio WITH (topic = 'ratio.rows', mode = 'retract');
CREATE SINK fews FROM few WITH (topic = 'few.rows', mode = 'retract');
"""
BAD, MENDED = "(count(*) - 2)", "nullif(count(*) - 2, 0)"


def clicks(h: Harness, *times: str, k: str = "a") -> None:
    """Append a record for each time of a day, and take turns until all is read."""
    h.append("clicks", [{"k": k, "ts": f"2026-01-01T{time}Z"} for time in times], partition=0)
    drain(h)


def drain(h: Harness) -> None:
    for _ in range(10):
        if not h.turn():
            return
    raise AssertionError("turns without end: nothing is left to read or to tell")


def versions(h: Harness, view: str) -> list[Holding]:
    with h.engine.tools.store.open() as snapshot:
        return [holding for holding in snapshot.holdings() if holding.name == view]


def project(emit: str, by: str, sinks: str = SINKS) -> str:
    return STREAM + RATIO.format(emit=emit, by=by) + FEW.format(emit=emit, by=by) + sinks


def assert_told(h: Harness, *views: str, closed: bool = False) -> None:
    for view in views:
        assert held(h, f"{view}.rows") == held_rows(h, view, closed=closed), view


def test_a_view_is_edited_while_some_of_its_rows_fail() -> None:
    with harness(project("every 1 hour", BAD), partitions=1) as h:
        clicks(h, "12:00:10")
        assert_told(h, "ratio", "few")
        clicks(h, "12:00:11")  # kept back: now this row fails
        clicks(h, "12:00:12", k="b")
        for by in ("(count(*) - 1)", MENDED):  # and here b's does
            h.restart(project("every 1 hour", by))
            drain(h)
            h.wall("+1 hour")
            drain(h)
            assert_told(h, "ratio", "few")
        for view in ("ratio", "few"):
            assert [(each.unit, each.reason) for each in versions(h, view)] == [("main", "")]
            assert h.errors(view) == []


def test_a_new_sink_is_told_of_the_rows_that_do_not_fail() -> None:
    with harness(project("changes", BAD, sinks=""), partitions=1) as h:
        clicks(h, "12:00:10", "12:00:11")
        clicks(h, "12:00:12", k="b")
        h.restart(project("changes", BAD))
        drain(h)
        assert [row["k"] for row in h.errors("ratio")] == ["a"]
        assert_told(h, "ratio", "few")
        clicks(h, "12:00:13", "12:00:14", k="b")
        clicks(h, "12:00:13")
        assert h.errors("ratio") == []
        assert_told(h, "ratio", "few")


def test_rows_that_wait_and_fail_when_all_is_to_be_told() -> None:
    with harness(project("every 1 hour", BAD), partitions=1) as h:
        clicks(h, "12:00:10")
        clicks(h, "12:00:11")
        h.restart(project("changes", BAD))
        clicks(h, "12:00:12", k="b")
        assert_told(h, "ratio", "few")
        h.restart(project("changes", MENDED))
        drain(h)
        assert_told(h, "ratio", "few")


def test_whether_only_final_rows_are_told_can_be_edited() -> None:
    def per_minute(emit: str) -> str:
        return STREAM + (
            f"CREATE MATERIALIZED VIEW minutes WITH (emit = '{emit}') AS SELECT window.start AS "
            "start, k, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute'), k;"
            "CREATE SINK told FROM minutes WITH (topic = 'minutes.rows', mode = 'retract');"
        )

    with harness(per_minute("final"), partitions=1) as h:
        clicks(h, "12:00:10", "12:01:10")
        clicks(h, "12:01:10", k="b")
        for emit in ("changes", "final", "every 1 hour", "final", "changes"):
            h.restart(per_minute(emit))
            drain(h)
            assert_told(h, "minutes", closed=emit == "final")
            clicks(h, "12:01:20")
            if emit != "every 1 hour":
                assert_told(h, "minutes", closed=emit == "final")


def test_a_topic_is_told_of_one_view_in_one_mode() -> None:
    views = STREAM + (
        "CREATE MATERIALIZED VIEW totals WITH (emit = 'every 1 hour') AS "
        "SELECT k, count(*) AS n FROM clicks GROUP BY k;"
        "CREATE SINK told FROM totals WITH (topic = 'totals.rows', mode = 'retract');"
    )
    with harness(views, partitions=1) as h:
        clicks(h, "12:00:10")
        clicks(h, "12:00:20")  # kept back
        for edit in (("FROM totals", "FROM fine"), ("retract", "upsert")):
            with pytest.raises(DefinitionError) as refused:
                h.restart(views.replace(*edit))
            assert "totals.rows, which holds rows of totals in mode 'retract'" in str(refused.value)
            assert "choose another topic" in str(refused.value)
        h.restart(views.replace("SINK told", "SINK renamed"))
        drain(h)
        assert_told(h, "totals")
        h.restart(views.replace("FROM totals", "FROM fine").replace("totals.rows", "fine.rows"))
        drain(h)
        assert_told(h, "fine")
        assert_told(h, "totals")  # it stays as it was told
