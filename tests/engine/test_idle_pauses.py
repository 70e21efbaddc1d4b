"""How often a partition that stands still is marked: as often as it helps, and no more.

Method: an engine's looks at its partitions, minute by minute, with times and markers by hand.
"""

from dataclasses import dataclass, field

from headrace.engine.time.idling import Idleness
from headrace.ledger.entries import Progress, StreamPartition
from headrace.model.definitions import Stream
from headrace.time.clocks import Clock

MINUTE_US = 60_000_000
STREAM = Stream("clicks", (), "clicks", event_time="ts", idle_timeout_us=MINUTE_US)
P0, P1 = StreamPartition("clicks", 0), StreamPartition("clicks", 1)


@dataclass
class Watched:
    """Two partitions with one record each, and the minutes in which each was marked."""

    minute: int = 0
    marked: dict[int, list[int]] = field(default_factory=lambda: {0: [], 1: []})

    def __post_init__(self) -> None:
        self.idleness = Idleness(lambda: self.minute * MINUTE_US)
        clock = Clock(0, 0, records_us=0)
        self.progress = {P0: Progress(1, clock), P1: Progress(1, clock)}
        self.idleness.moved(self.progress)

    def record(self, key: StreamPartition) -> None:
        """Let a record come in a partition, with the time that it is."""
        offset, clock = self.progress[key]
        now_us = self.minute * MINUTE_US
        clock = clock.moved(now_us)._replace(records_us=now_us)
        self.progress[key] = Progress(offset + 1, clock)
        self.idleness.moved([key])

    def look(self) -> None:
        ends = {key: place.offset for key, place in self.progress.items()}
        self.idleness.begin_look()
        for partition, time_us in self.idleness.look(STREAM, self.progress, ends).items():
            key = StreamPartition("clicks", partition)
            place = self.progress[key]
            self.progress[key] = place._replace(clock=place.clock.moved(time_us))
            self.marked[partition].append(self.minute)


def test_the_longer_a_stream_stands_still_the_less_often_it_is_marked() -> None:
    watched = Watched()
    for _ in range(24 * 60):
        watched.minute += 1
        watched.look()
        watched.look()  # with nothing new to say it says nothing
    hourly = list(range(64, 24 * 60 + 1, 60))
    assert watched.marked[0] == watched.marked[1] == [1, 2, 4, 8, 16, 32, *hourly]
    assert watched.progress[P0].clock.time_us == hourly[-1] * MINUTE_US


def test_a_partition_that_stands_still_alone_is_marked_as_often_as_ever() -> None:
    watched = Watched()
    for _ in range(300):
        watched.minute += 1
        watched.look()
    stood = watched.marked[1].copy()
    assert len(stood) < 12
    # One partition moves again: the other one must not hold it up for as long as it had stood.
    for _ in range(100):
        watched.minute += 1
        watched.record(P0)
        watched.look()
    assert watched.marked[1] == [*stood, *range(301, 401)]
    assert watched.marked[0] == stood
    # And when it stops, the pauses begin anew.
    for _ in range(20):
        watched.minute += 1
        watched.look()
    assert watched.marked[0] == [*stood, 401, 402, 404, 408, 416]


def test_who_looks_only_when_a_marker_is_due_misses_none() -> None:
    """The engine sleeps until then. Records come for a while, in one partition and then in both."""
    records = {P0: [5, 6, 7, 30, 31, 32, 33], P1: [5, 31]}
    always, seldom = Watched(), Watched()
    looks = wakes = 0
    due_minute = 0.0
    for minute in range(24 * 60):
        always.minute = seldom.minute = minute
        came = [key for key, minutes in records.items() if minute in minutes]
        for key in came:
            always.record(key)
            seldom.record(key)
        always.look()
        if came or minute >= due_minute:
            looks += 1
            seldom.look()
            due_us = seldom.idleness.due_in_us()
            due_minute = minute + due_us / MINUTE_US
            wakes += due_us < MINUTE_US / 10
    assert seldom.marked == always.marked
    assert looks < 120, "it looks far more often than there are markers"
    assert wakes == 0, "it would look without end"


def test_a_stream_without_a_readable_record_is_looked_at_only_when_something_comes() -> None:
    now_us = 0
    idleness = Idleness(lambda: now_us)
    progress = {P0: Progress(3, Clock()), P1: Progress(0, Clock())}  # dead records move no clock
    for minute in (0, 1, 2, 600):
        now_us = minute * MINUTE_US
        idleness.begin_look()
        assert idleness.look(STREAM, progress, {P0: 3, P1: 0}) == {}
    assert idleness.due_in_us() > 24 * 60 * MINUTE_US
