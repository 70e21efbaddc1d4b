"""A partition that is added turns no watermark back, and every unit finds its markers.

Method: random histories of the partitions that were there, whatever their stream has learnt; then
the markers that are written for the new one act on it, in memory, without a log.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.time.marking import Marking
from headrace.engine.time.timekeeping import Timekeeper
from headrace.engine.turn.outset import passed, set_out
from headrace.engine.unit import Unit, UnitStream
from headrace.ledger.entries import Progress, StreamPartition
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.time.clocks import Clock, Mark
from headrace.time.markers import MarkedPartition, MarkerBook, Marks, chain

MAX_US = 60_000_000
[ADAPTIVE] = parse_project(
    {
        "a.sql": """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ADAPTIVE (0.9, MAX INTERVAL 1 MINUTE)) WITH (topic = 'clicks');"""
    }
).streams

STEPS = st.one_of(
    st.tuples(st.integers(0, 10 * MAX_US), st.none()),
    st.tuples(st.none(), st.integers(0, MAX_US)),
)


class InMemory:
    """What a timekeeper does, without a log."""

    epoch = 7

    def __init__(self) -> None:
        self.book = MarkerBook()
        self.lock = threading.RLock()
        self.write([Marks(7)])

    def write(self, marks: Sequence[Marks]) -> None:
        for value in chain(marks, self.book.check):
            self.book.add(self.book.end_offset, value)


@given(st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=3))
def test_the_watermark_of_a_stream_does_not_sink_with_a_new_partition(
    histories: list[list[tuple[int | None, int | None]]],
) -> None:
    time = InMemory()
    main = Unit("main", Settings(), {"clicks": UnitStream(ADAPTIVE, owned=True)})
    for number, history in enumerate(histories):
        marks = [Mark(at, at, *step) for at, step in enumerate(history)]
        clock = Clock(delay_us=ADAPTIVE.delay_us).moved(0).marked(marks)
        main.progress[StreamPartition("clicks", number)] = Progress(10, clock)
    clocks = [place.clock for place in main.progress.values()]
    added = StreamPartition("clicks", len(histories))
    main.progress[added] = Progress(clock=Clock(delay_us=ADAPTIVE.delay_us))
    Marking(cast(Timekeeper, time), lambda: 0).mark_new(main, ADAPTIVE, [added.partition])
    found = set_out(main, time.book, time.book.end_offset).progress[added].clock
    assert found.time_us == min(clock.time_us for clock in clocks)
    assert found.watermark_us == min(clock.watermark_us for clock in clocks)
    assert found.delay_us == max(clock.delay_us for clock in clocks)


def test_markers_of_a_new_partition_are_needed_until_every_unit_has_noticed_it() -> None:
    streams = {"clicks": UnitStream(ADAPTIVE, owned=True)}
    elsewhere = {"clicks": UnitStream(replace(ADAPTIVE, topic="elsewhere"), owned=True)}
    p0, p1 = StreamPartition("clicks", 0), StreamPartition("clicks", 1)
    main = Unit("main", Settings(), streams, progress={p0: Progress(10), p1: Progress(50)})
    slow = Unit("slow", Settings(), streams, progress={p0: Progress(5)})
    other = Unit("other", Settings(), elsewhere, progress={p0: Progress(1)})
    assert passed([main]) == {
        MarkedPartition("clicks", "clicks", 0): 10,
        MarkedPartition("clicks", "clicks", 1): 50,
    }
    found = passed([main, slow, other])
    assert found[MarkedPartition("clicks", "clicks", 0)] == 5
    assert found[MarkedPartition("clicks", "clicks", 1)] == 0
    assert found[MarkedPartition("clicks", "elsewhere", 0)] == 1
