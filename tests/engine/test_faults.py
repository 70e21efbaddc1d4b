"""Faults of a turn: whatever dies where, nothing is lost, nothing is there twice.

Method: the engine dies at a named point, is started again on the same log and store, and is asked
the same questions; more than once, so that what crashes leave behind would show.
"""

import pytest
from agreement import assert_agrees_with_the_reference
from crashing import crash_at_every_point
from shop import SHOP, payments

from headrace import faults
from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.errors import DiskFull, EngineFenced, HeadraceError, LogDamaged
from headrace.faults import POINTS
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.strategies import TURN_POINTS

pytestmark = pytest.mark.spark


def append(h: Harness, start: int, count: int) -> None:
    for partition in (0, 1):
        h.append("payments", payments(start + partition * 1000, count), partition=partition)


def test_every_fault_point_of_a_turn_is_tested_here() -> None:
    elsewhere = ("log_", "group_", "queue_", "sink_", "state_", "stream_")
    others = {point for point in POINTS if point.startswith(elsewhere)}
    assert set(TURN_POINTS) == set(POINTS) - others - {"before_swap"}


@pytest.mark.soak
@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_crash_at_any_step_changes_nothing(gear: str) -> None:
    with harness(SHOP, partitions=2, settings=Settings()) as h:
        crash_at_every_point(h, TURN_POINTS, lambda number: append(h, number * 8, 8), gear=gear)
        h.audit()
        assert sorted(path.name for path in h.folder.iterdir()) in (
            ["log", "store.duckdb"],
            ["log", "store.duckdb", "store.duckdb.wal"],
        )


def test_a_crash_in_the_middle_of_a_crash_recovery_changes_nothing() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 30)
        for point in ["after_stage", "after_stage", "before_commit", "after_commit"]:
            h.crash(point)
            h.turn(max_records=20)
            h.restart()
        while h.turn():
            pass
        assert_agrees_with_the_reference(h)
        h.audit()


def test_a_journalled_range_runs_again_after_a_crash() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 10)
        h.crash("after_fold")
        h.turn(max_records=6)
        append(h, 100, 10)
        h.restart()
        assert [report.records for report in h.turn()] == [6]


def test_an_engine_that_was_taken_over_cannot_commit() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 10)
        newer = Engine(h.project, h.log, h.engine.tools.store, start_spark())
        newer.start()
        with pytest.raises(EngineFenced, match=r"has begun|took over"):
            h.turn()
        newer.turn()
        append(h, 10, 10)
        newer.turn()
        newer.close()
        assert_agrees_with_the_reference(h)


def test_a_full_disk_stops_the_turn_and_loses_nothing() -> None:
    def no_space() -> None:
        import duckdb

        raise duckdb.IOException("IO Error: Could not write file: No space left on device")

    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.turn(max_records=10)
        faults.arm("before_commit", no_space)
        with pytest.raises(DiskFull, match="Free some space"):
            h.turn()
        h.restart()
        while h.turn():
            pass
        assert_agrees_with_the_reference(h)


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_damaged_log_stops_the_turn_and_fails_no_view(gear: str) -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 30)
        (segment,) = (h.folder / "log" / "payments" / "1").glob("*.log")
        sound = segment.read_bytes()
        segment.write_bytes(sound[:-30] + bytes([sound[-30] ^ 1]) + sound[-29:])
        with pytest.raises(LogDamaged, match=r"payments/1@\d+: the checksum"):
            h.turn(gear=gear)
        segment.write_bytes(sound)
        h.restart()
        h.turn(gear=gear)
        assert_agrees_with_the_reference(h)


def test_a_commit_whose_outcome_is_unknown_is_looked_up_not_repeated() -> None:
    def lose_the_answer() -> None:
        raise HeadraceError("the answer to the commit got lost")

    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        faults.arm("after_commit", lose_the_answer)
        with pytest.raises(HeadraceError, match="got lost"):
            h.turn()
        h.restart()
        assert h.turn() == []
        assert_agrees_with_the_reference(h)


def test_a_failed_publish_is_made_up_for_at_the_next_start() -> None:
    def broken() -> None:
        raise HeadraceError("the log does not answer")

    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        faults.arm("during_publish", broken)
        with pytest.raises(HeadraceError, match="does not answer"):
            h.turn()
        h.restart()
        assert_agrees_with_the_reference(h)


def test_a_store_made_anew_publishes_nothing_twice() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 40)
        h.turn(max_records=30)
        h.lose_store()
        h.restart()
        while h.turn(max_records=17):
            pass
        assert_agrees_with_the_reference(h)
        h.audit()
