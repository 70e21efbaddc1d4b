"""Hypothesis strategies for promise 1: random logs, cuts into turns, gears and crash points.

A `Script` is a list of steps for a `Harness`; `play` carries it out. What the log holds is the
same whatever the cuts and crashes, so the answer has to be, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from headrace.faults import POINTS
from headrace.testing.harness import Harness, Value

__all__ = ["Append", "Crash", "Script", "Turn", "Wall", "play", "scripts"]

#: The points of a turn where an engine can die; the log's own are tested with the log.
TURN_POINTS = [
    point for point in POINTS if point.startswith(("after_", "before_commit", "before_p", "during"))
]


@dataclass(frozen=True)
class Append:
    """Append one record to a partition of a stream's topic."""

    stream: str
    partition: int
    value: Value
    arrival: datetime
    key: bytes | None = None


@dataclass(frozen=True)
class Turn:
    """Take a turn; `max_records` None takes all that is there."""

    max_records: int | None
    gear: str


@dataclass(frozen=True)
class Wall:
    """Let time pass, so that partitions become idle at the next turn."""

    wait: str


@dataclass(frozen=True)
class Crash:
    """Die at a point of the next turn, then restart."""

    point: str


Step = Append | Turn | Wall | Crash
Script = list[Step]


def scripts(
    values: Callable[[datetime], st.SearchStrategy[Value]],
    *,
    streams: Sequence[str],
    partitions: int = 2,
    min_records: int = 0,
    max_records: int = 24,
    start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC),
) -> st.SearchStrategy[Script]:
    """Draw scripts of `min_records` to `max_records` for each of the streams, on average.

    Where only a few scripts are tried, a minimum keeps the trivial ones from being most of them.
    `values` draws a record for an event time; times wander, back and forth.
    """

    @st.composite
    def draw_script(draw: st.DrawFn) -> Script:
        script: Script = []
        clock = start
        fewest = max(1, min_records * len(streams))
        for _ in range(draw(st.integers(fewest, max_records * len(streams)))):
            clock += timedelta(seconds=draw(st.integers(0, 6)))
            behind = draw(st.sampled_from([0, 0, 0, 2, 7, 15, 40, 120]))
            # A phone whose clock runs ahead: arrival stays behind its event time.
            ahead = draw(st.sampled_from([0, 0, 0, 0, 0, 90]))
            event_time = clock + timedelta(seconds=ahead - behind)
            stream = draw(st.sampled_from(streams))
            partition = draw(st.integers(0, partitions - 1))
            script.append(Append(stream, partition, draw(values(event_time)), clock))
            # The simplest draw is no turn: a script of nothing but crashes is long and dull.
            step = 12 * len(streams) - draw(st.integers(0, 12 * len(streams)))
            if step == 0:
                script.append(Crash(draw(st.sampled_from(TURN_POINTS))))
            if step == 2:
                script.append(Wall(draw(st.sampled_from(["30 seconds", "1 minute", "1 day"]))))
            if step <= 2:
                gear = draw(st.sampled_from(["short", "short", "short", "short", "long"]))
                script.append(Turn(draw(st.sampled_from([None, 1, 3, 7])), gear))
        return script

    return draw_script()


def play(harness: Harness, script: Script) -> None:
    """Carry out a script, and then turn until everything is read."""
    for step in script:
        match step:
            case Append(stream, partition, value, arrival, key):
                harness.append(stream, [value], partition=partition, arrival=arrival, keys=[key])
            case Wall(wait):
                harness.wall(wait)
            case Crash(point):
                harness.crash(point)
            case Turn(max_records, gear):
                harness.turn(max_records=max_records, gear=gear)
                if harness.crashed:
                    harness.restart()
    while True:
        reports = harness.turn()
        if harness.crashed:
            harness.restart()
        elif not reports:
            return
