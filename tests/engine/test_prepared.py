"""Prepared folds: one plan, and in every turn the rows of that turn alone."""

import errno
from pathlib import Path

import pytest
from agreement import assert_agrees_with_the_reference
from pyspark import SparkFiles

from headrace.engine.gears import folding, gears, prepared
from headrace.engine.gears.prepared import PreparedFold, prepare
from headrace.errors import DiskFull
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
    made: list[str] = []

    class Counted(PreparedFold):
        def __init__(self, fold, session) -> None:
            made.append(fold.name)
            super().__init__(fold, session)

    def planned_for_one_turn(fold, *_):
        raise AssertionError(f"{fold.name} was planned for one turn")

    monkeypatch.setattr(prepared, "PreparedFold", Counted)
    monkeypatch.setattr(folding, "_fold_part", planned_for_one_turn)
    prepared.prepare.cache_clear()
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
        assert sorted(made) == ["per_key", "plain"]
        assert not list(Path(SparkFiles.getRootDirectory()).glob("rows-*"))


def test_a_full_disk_stops_the_turn_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with harness(DEFINITIONS, partitions=1) as h:
        h.append("clicks", [click(1), click(2)])
        with monkeypatch.context() as patch:
            patch.setattr(prepared.pa.ipc, "new_file", full)
            with pytest.raises(DiskFull, match="No space left"):
                h.turn(gear="short")
        h.turn(gear="short")
        assert_agrees_with_the_reference(h)
        h.audit()


def test_a_plan_that_keeps_what_it_shuffled_is_not_run_again() -> None:
    view = """
    CREATE MATERIALIZED VIEW distinct_keys AS
    SELECT window.start AS start, count(DISTINCT k) AS n
    FROM clicks GROUP BY window(ts, '1 minute');
    """
    with harness(DEFINITIONS + view, partitions=1) as h:
        for second in (1, 20):
            h.append("clicks", [click(second + number) for number in range(3)])
            h.turn(gear="short")
        folds = h.engine.units["main"].folds
        assert {fold.name: prepare(h.engine.tools.spark, fold).repeatable for fold in folds} == {
            "per_key": True, "plain": True, "distinct_keys": False,
        }  # fmt: skip
        assert_agrees_with_the_reference(h)


def test_where_tasks_do_not_see_the_drivers_files_rows_travel_with_a_plan_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gears, "can_prepare", lambda _: False)
    monkeypatch.setattr(gears, "prepare", None)
    with harness(DEFINITIONS, partitions=1) as h:
        h.append("clicks", [click(second, x=second % 4) for second in range(8)])
        h.turn(gear="short")
        assert [row["offset"] for row in h.dead("per_key")] == [0, 4]
        assert_agrees_with_the_reference(h)
