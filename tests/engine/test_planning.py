"""What a planner decides, without Spark: where positions hold, and when markers are written.

Method: a real log, a real store, and a unit whose turns are taken by hand: records are decoded and
stamped, and nothing is folded. Times are seconds from 1970 on.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from planning_desk import ADAPTIVE, SECOND_US, Desk

from headrace.errors import PositionLost, Unreachable
from headrace.ledger.entries import MAIN, StreamPartition
from headrace.log import EmbeddedLog, TopicSettings


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_a_topic_that_was_made_anew_is_not_read_from_the_middle(desk: Desk) -> None:
    desk.send(*range(20))
    desk.turn()
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    lost = r"clicks/0@20: the topic was made anew: it begins at 0 and ends at 5\."
    desk.send(*range(5))
    with pytest.raises(PositionLost, match=lost):
        desk.turn()
    # Also when nothing but the start looks, and when the unit may read no further than here.
    position = desk.main.progress[StreamPartition("clicks", 0)]
    desk.store.close()
    with pytest.raises(PositionLost, match=lost):
        desk.start(at={0: position})
    desk.planner.stop_at_the_end()
    with pytest.raises(PositionLost, match=lost):
        desk.turn()


def test_a_turn_is_not_resumed_past_the_end_of_the_log(desk: Desk) -> None:
    desk.send(*range(20))
    decided = desk.planner.decide(desk.main, None)
    assert decided is not None
    desk.store.hold(desk.planner.epoch, [], {MAIN: desk.main.progress})
    desk.store.journal(decided[0])
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    desk.send(*range(5))
    desk.store.close()
    with pytest.raises(PositionLost, match=r"clicks/0@20: the topic was made anew: .* ends at 5\."):
        desk.start()


def test_a_partition_that_is_gone_and_records_that_are_gone_are_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, partitions=2)
    desk.send(1, 2)
    desk.turn()
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    desk.send(1, 2)
    with pytest.raises(PositionLost, match=r"clicks/1@0: .* the topic has 1 partition now"):
        desk.turn()
    desk.store.close()
    desk.start()
    desk.turn()
    desk.send(3)
    desk.log.change_topic("clicks", settings=TopicSettings(retention_ms=1))
    later = EmbeddedLog(tmp_path / "log", clock=lambda: 1 << 60)
    later.maintain()
    later.close()
    with pytest.raises(PositionLost, match=r"clicks/0@2: the next record to read is gone"):
        desk.turn()
    desk.close()


def test_an_added_partition_gets_its_marker_though_the_first_attempt_fails(desk: Desk) -> None:
    desk.send(5, 100)
    desk.turn()
    desk.log.change_topic("clicks", partitions=2)
    with desk.without_markers(), pytest.raises(Unreachable):
        desk.turn()
    desk.turn()
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("new", [[1, 0, 100 * SECOND_US]])


def test_an_added_partition_is_entered_by_a_turn_that_reads_nothing(desk: Desk) -> None:
    desk.log.change_topic("clicks", partitions=2)
    planned = desk.turn()
    assert planned is not None
    assert planned.ranges == ()
    assert desk.turn() is None
    assert desk.markers() == []  # nobody has a clock that it could begin with


def test_a_rebuild_learns_nothing_for_records_that_were_judged_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ADAPTIVE)
    for half in (range(60), range(60, 120)):  # too few for an engine to learn from
        desk.send(*half)
        while desk.turn():
            pass
        position = desk.main.progress[StreamPartition("clicks", 0)]
        desk.store.close()
        desk.start(at={0: position})
    assert desk.markers() == []
    desk.store.close()
    (tmp_path / "store.duckdb").unlink()
    desk.start()
    desk.send(120, 121)
    while desk.turn(max_records=30):
        desk.now_s += 1
    # It has seen enough before it is where the last one was, and what it learnt acts behind that.
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("learnt", [[0, 120, None]])
    desk.close()


def test_a_steady_flow_of_broken_records_keeps_no_partition_awake(tmp_path: Path) -> None:
    desk = Desk(tmp_path, partitions=2)
    desk.send(0)
    for second in range(20, 120, 20):  # whenever somebody looks, there is one more to read
        desk.now_s = second
        desk.send(second)
        desk.send(None, partition=1)
        desk.turn()
    # At 100 all is read that came until 80, and the clock of the other one stands there.
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("idle", [[1, 4, 80 * SECOND_US]])
    desk.close()


def test_a_log_out_of_reach_does_not_stand_still(desk: Desk) -> None:
    desk.send(5)
    desk.turn()
    desk.now_s += 300
    desk.planner.marking.forget()  # nobody saw what came meanwhile
    assert desk.turn() is None
    desk.now_s += 60
    desk.turn()
    [marker] = desk.markers()
    assert marker["marks"] == [[0, 1, 65 * SECOND_US]]


def test_a_delay_that_could_not_be_written_is_written_at_once_when_it_can(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ADAPTIVE)
    desk.send(*range(120))
    desk.turn()
    with desk.without_markers(), pytest.raises(Unreachable):
        desk.turn()
    desk.turn()
    assert [marker["why"] for marker in desk.markers()] == ["learnt"]
    desk.close()


def test_no_partition_stands_still_that_is_not_read_to_its_end(desk: Desk) -> None:
    desk.send(5)
    desk.turn()
    desk.planner.stop_at_the_end()
    desk.send(30, 100)  # in time, and nobody reads them now
    desk.now_s += 600
    assert desk.turn() is None
    assert desk.markers() == []
