"""Where a long turn cuts the log: where the clock is the one that reading up to there gives.

Method: assignments over a small log, with seeds that are easy to tell from what the log says. No
task is run, so none needs Spark.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.engine.gears.splits import Assignment, assign, check_joined
from headrace.engine.gears.stamping import SideRecords, Summary
from headrace.engine.turn.outset import Outset
from headrace.errors import PositionLost
from headrace.ledger.entries import Progress, Seed, StreamPartition
from headrace.log import EmbeddedLog, Partition, Range, TopicSettings, records
from headrace.model.definitions import Stream
from headrace.time.clocks import Clock

CLICKS = Stream("clicks", (), "clicks", event_time="ts")
BEGIN = Clock(1_000, 1_000)
SEED = Seed("clicks", "v1", 0, Progress(25, Clock(9_000, 9_000)), 0)


def make_log(path: Path, settings: TopicSettings) -> EmbeddedLog:
    """Return a log with 40 records; retention, if there is any, takes the first of them."""
    now_us = 1_000
    log = EmbeddedLog(path, sync=False, segment_bytes=1, clock=lambda: now_us)
    log.create_topic("clicks", partitions=1, settings=settings)
    log.append("clicks", records([b"{}"], keys=[b"first"]), partition=0)
    now_us = 10**15
    for number in range(39):
        log.append("clicks", records([b"{}"], keys=[b"%d" % number]), partition=0)
    log.maintain()
    return log


def cuts(log: EmbeddedLog, stream: Stream, *, cores: int) -> list[tuple[int, int, Clock]]:
    """Return the parts that the whole log is cut into, and the clock before each."""
    first, end = log.extents("clicks")[Partition("clicks", 0)]
    outset = Outset({StreamPartition("clicks", 0): Progress(first, BEGIN)}, 0)
    context = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))
    session = cast(SparkSession, context)
    whole = [Range(Partition("clicks", 0), first, end)]
    found = assign(session, log, stream, whole, outset, [SEED], split_records=10)
    return [(each.range.start, each.range.end, each.clock) for each in found]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TopicSettings(), [(0, 25, BEGIN), (25, 40, SEED.progress.clock)]),
        (TopicSettings(compact=True), [(0, 40, BEGIN)]),
        (TopicSettings(retention_ms=1_000), [(1, 40, BEGIN)]),
    ],
    ids=["whole", "compacted", "shortened"],
)
def test_a_seed_serves_only_while_the_log_has_all_that_made_it(
    tmp_path: Path, settings: TopicSettings, expected: list[tuple[int, int, Clock]]
) -> None:
    assert cuts(make_log(tmp_path, settings), CLICKS, cores=1) == expected


def test_without_an_event_time_there_is_no_clock_to_look_for(tmp_path: Path) -> None:
    log = make_log(tmp_path, TopicSettings(compact=True))
    timeless = Stream("clicks", (), "clicks")
    # A first pass would ask the session for tasks, and this one has none.
    expected = [(0, 10, BEGIN), (10, 20, BEGIN), (20, 30, BEGIN), (30, 40, BEGIN)]
    assert cuts(log, timeless, cores=4) == expected


def summary(start: int, end: int, clock: Clock) -> Summary:
    nothing = SideRecords(pa.array([], pa.int64()), pa.array([], pa.string()))
    whole = Range(Partition("clicks", 0), start, end)
    return Summary("clicks", whole, end - start, end - start, 0, 0, nothing, clock)


def test_splits_that_do_not_join_are_refused() -> None:
    seed = SEED.progress.clock
    parts = [Range(Partition("clicks", 0), 0, 25), Range(Partition("clicks", 0), 25, 40)]
    assignments = [Assignment(parts[0], (), BEGIN), Assignment(parts[1], (), seed)]
    check_joined(assignments, [summary(25, 40, Clock(9_500)), summary(0, 25, seed)])
    # As after compaction that was on for a while: nothing else tells that the log is not whole.
    with pytest.raises(PositionLost, match="clicks/0@25: the clock here is not the one that was"):
        check_joined(assignments, [summary(25, 40, Clock(9_500)), summary(0, 25, BEGIN)])
