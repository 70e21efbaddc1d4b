"""Prepared folds: one plan, and in every turn the rows of that turn alone."""

import io
from pathlib import Path

import pytest
from agreement import assert_agrees_with_the_reference
from pyspark import SparkFiles

from headrace.engine.gears import folding, prepared, rows_file, short
from headrace.engine.gears.prepared import Prepared, prepare_fold
from headrace.engine.gears.rows_file import lend_file
from headrace.engine.spark.session import start_spark
from headrace.errors import DiskFull
from headrace.schema.types import parse_type
from headrace.testing import harness

pytestmark = pytest.mark.spark

DEFINITIONS = """
CREATE STREAM clicks (
  k STRING, x BIGINT, times ARRAY<TIMESTAMP>, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'clicks', format = 'json');
CREATE MATERIALIZED VIEW per_key AS
SELECT k, count(*) AS n, sum(100 / x) AS share, max(size(times)) AS times FROM clicks GROUP BY k;
CREATE MATERIALIZED VIEW plain AS SELECT x, k FROM clicks WHERE x > 1;
"""


def click(second: int, x: int = 1) -> dict[str, object]:
    time = f"2026-01-01T12:00:{second:02d}Z"
    return {"k": f"k{second % 3}", "x": x, "times": [time, None], "ts": time}


def test_every_turn_runs_the_plan_of_the_first_over_rows_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Prepared] = []

    class Counted(Prepared):
        def __init__(self, frame) -> None:
            made.append(self)
            super().__init__(frame)

    def planned_for_one_turn(fold, *_):
        raise AssertionError(f"{fold.name} was planned for one turn")

    monkeypatch.setattr(prepared, "Prepared", Counted)
    monkeypatch.setattr(folding, "_fold_part", planned_for_one_turn)
    prepared._prepare.cache_clear()
    with harness(DEFINITIONS, partitions=1) as h:
        for second in (1, 20, 2, 40):
            h.append("clicks", [click(second + number) for number in range(3)])
            h.turn(gear="short")
        # One record fails: the rest of its turn is folded with the plan, and so is the next one.
        h.append("clicks", [click(41, x=0), click(42, x=5)])
        h.turn(gear="short")
        assert [row["offset"] for row in h.dead("per_key")] == [12]
        h.append("clicks", [click(43, x=7)])
        h.turn(gear="short")
        assert_agrees_with_the_reference(h)
        h.audit()  # which folds the same queries
        assert len(made) == 2
        files = list(Path(SparkFiles.getRootDirectory()).glob("rows-*"))
        assert files
        assert sum(file.stat().st_blocks for file in files) == 0  # holes, with no rows in them


def test_a_full_disk_stops_the_turn_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(DEFINITIONS, partitions=1) as h:
        h.append("clicks", [click(1), click(2)])
        with monkeypatch.context() as patch:
            patch.setattr(rows_file.Path, "open", lambda *_: io.FileIO("/dev/full", "wb"))
            patch.setattr(rows_file.os, "truncate", lambda *_: None)
            with pytest.raises(DiskFull, match="No space left"):
                h.turn(gear="short")
        h.turn(gear="short")
        assert_agrees_with_the_reference(h)
        h.audit()


def test_plans_of_every_kind_of_view_can_be_run_again() -> None:
    views = """
    CREATE MATERIALIZED VIEW distinct_keys AS
    SELECT window.start AS start, count(DISTINCT k) AS n, approx_top_k(x, 2) AS top
    FROM clicks GROUP BY window(ts, '1 minute');
    CREATE MATERIALIZED VIEW hops AS
    SELECT window.start AS start, collect_list(x) AS xs, stddev(x) AS deviation
    FROM clicks GROUP BY window(ts, '1 minute', '10 seconds');
    CREATE MATERIALIZED VIEW sessions AS
    SELECT k, last(x) AS x, max_by(x, ts) AS latest
    FROM clicks GROUP BY session_window(ts, '5 seconds'), k;
    CREATE MATERIALIZED VIEW exploded AS
    SELECT time, count(*) AS n
    FROM clicks LATERAL VIEW explode(times) AS time GROUP BY ROLLUP (time);
    """
    with harness(DEFINITIONS + views, partitions=1) as h:
        for second in (1, 20):
            h.append("clicks", [click(second + number) for number in range(3)])
            h.turn(gear="short")
        folds = h.engine.units["main"].folds
        with lend_file("clicks") as file:
            spark = h.engine.tools.spark
            again = {fold.name: prepare_fold(spark, fold, file).repeatable for fold in folds}
        assert len(again) == 6
        assert all(again.values())
        assert_agrees_with_the_reference(h)


def test_a_plan_that_keeps_what_it_shuffled_is_not_run_again() -> None:
    session = start_spark().newSession()
    with lend_file("clicks") as file:
        rows = file.frame(session, {"k": parse_type("STRING"), "x": parse_type("BIGINT")})
        rows.createOrReplaceTempView("rows")
        grouped = session.sql("SELECT k, sum(x) FROM rows GROUP BY GROUPING SETS ((k), ())")
        assert not Prepared(grouped).repeatable
        assert Prepared(session.sql("SELECT k, sum(x) FROM rows GROUP BY k")).repeatable


def test_views_on_which_records_fail_take_no_other_along() -> None:
    """The job of all views fails with one of them; every view has its answer all the same."""
    others = "".join(
        f"CREATE MATERIALIZED VIEW v{at} AS SELECT k, sum(x + {at}) AS n FROM clicks GROUP BY k;"
        for at in range(3)
    )
    with harness(DEFINITIONS + others, partitions=1) as h:
        unit = h.engine.units["main"]
        for second, x, apart in (
            (1, 0, {"per_key"}),
            (2, 0, {"per_key"}),
            (3, 1, set()),
            (4, 2, set()),
        ):
            h.append("clicks", [click(second, x=x), click(second)])
            h.turn(gear="short")
            assert {fold.name for fold in unit.apart} == apart
        assert len(h.dead("per_key")) == 2
        assert_agrees_with_the_reference(h)


def test_where_tasks_do_not_see_the_drivers_files_rows_travel_with_a_plan_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short, "can_prepare", lambda _: False)
    monkeypatch.setattr(short, "prepare_fold", None)
    with harness(DEFINITIONS, partitions=1) as h:
        h.append("clicks", [click(second, x=second % 4) for second in range(8)])
        h.turn(gear="short")
        assert [row["offset"] for row in h.dead("per_key")] == [0, 4]
        assert_agrees_with_the_reference(h)
