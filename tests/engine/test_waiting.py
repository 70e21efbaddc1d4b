"""Units wait for what there is to do, and no longer; nothing else wakes them.

Method: the waits of a main unit and of one that follows it, on a real log, without Spark. The log
is looked at every 30 s only, so that what is not told fails the test.
"""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from planning_desk import SECOND_US, Desk

from headrace.engine.unit import Unit, UnitStream
from headrace.engine.waiting import Waiting
from headrace.ledger.entries import MAIN, Progress, StreamPartition
from headrace.log import Partition
from headrace.project.settings import Settings

POLL_S = 30.0
SOON_S = 5.0
CLICKS_0, CLICKS_1 = Partition("clicks", 0), Partition("clicks", 1)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path, partitions=2)
    yield made
    made.close()


class Waits:
    """The waits of a desk's units."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.stop = threading.Event()
        self.waiting = Waiting(desk.log, desk.planner, self.stop, poll_s=POLL_S)

    def took_s(self, unit: Unit, act: Callable[[], None]) -> float:
        """Return how long a unit waits that is level when somebody acts a moment later."""
        timer = threading.Timer(0.1, act)
        with self.waiting.waits_of(unit):
            while self.desk.turn() is not None:
                pass
            timer.start()
            began = time.monotonic()
            self.waiting.wait(unit)
            took_s = time.monotonic() - began
        timer.join()
        return took_s


def follower(desk: Desk, *, topic: str = "clicks") -> Unit:
    stream = desk.main.streams["clicks"].stream
    other = UnitStream(type(stream)(**{**vars(stream), "topic": topic}), owned=False)
    unit = Unit("clicks@1", Settings(), streams={"clicks": other})
    unit.progress = {StreamPartition("clicks", 0): Progress()}
    return unit


def test_a_unit_waits_until_a_record_comes(desk: Desk) -> None:
    waits = Waits(desk)
    desk.send(1)
    assert 0.05 < waits.took_s(desk.main, lambda: desk.send(2, partition=1)) < SOON_S
    planned = desk.turn()
    assert planned is not None
    assert [range.partition for _, range in planned.ranges] == [CLICKS_1]


def test_a_record_that_comes_between_the_look_and_the_wait_is_not_missed(desk: Desk) -> None:
    waits = Waits(desk)
    assert desk.turn() is None
    desk.send(1)
    with waits.waiting.waits_of(desk.main):
        began = time.monotonic()
        waits.waiting.wait(desk.main)
        assert time.monotonic() - began < SOON_S


def test_stop_ends_every_wait_at_once(desk: Desk) -> None:
    waits = Waits(desk)
    with waits.waiting.heeding_stop():
        assert 0.05 < waits.took_s(desk.main, waits.stop.set) < SOON_S
        assert waits.took_s(desk.main, lambda: None) < SOON_S


def test_a_unit_that_follows_waits_for_the_turns_of_its_leader(desk: Desk) -> None:
    waits = Waits(desk)
    unit = follower(desk)
    # The log holds a record that the main unit has not read: it must not keep the other awake.
    desk.send(1)
    assert desk.planner.awaited(unit) == {}
    assert desk.planner.awaited(desk.main) == {CLICKS_0: 0, CLICKS_1: 0}
    assert 0.05 < waits.took_s(unit, lambda: waits.waiting.wake_others(desk.main)) < SOON_S
    elsewhere = follower(desk, topic="elsewhere")
    assert desk.planner.awaited(elsewhere) == {Partition("elsewhere", 0): 0}


def test_a_unit_that_ends_wakes_the_others(desk: Desk) -> None:
    waits = Waits(desk)

    def end() -> None:
        with waits.waiting.waits_of(follower(desk)):
            pass

    assert 0.05 < waits.took_s(desk.main, end) < SOON_S


def test_a_unit_wakes_when_a_marker_is_due(desk: Desk) -> None:
    waits = Waits(desk)
    for partition in (0, 1):
        desk.send(1, partition=partition)
    while desk.turn() is not None:
        pass
    # `idle_timeout` is a minute: the engine's clock goes on by hand.
    assert desk.planner.due_in_us(desk.main) == 60 * SECOND_US
    desk.now_s = 59
    assert desk.turn() is None
    assert desk.planner.due_in_us(desk.main) == SECOND_US
    desk.now_s = 60
    with waits.waiting.waits_of(desk.main):
        began = time.monotonic()
        waits.waiting.wait(desk.main)
        assert time.monotonic() - began < SOON_S
    assert desk.turn() is not None
    assert desk.markers()
    assert desk.turn() is None
    assert desk.planner.due_in_us(desk.main) > 50 * SECOND_US


def test_who_reads_to_an_end_waits_for_no_record(desk: Desk) -> None:
    desk.planner.stop_at_the_end()
    assert desk.main.name == MAIN
    assert desk.planner.awaited(desk.main) == {}
