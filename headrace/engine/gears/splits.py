"""The long turn's reading: Spark tasks read, decode and stamp their splits of the log.

A split can be stamped when the clock at its start is known: it begins at the position, or at a
seed. A range without seeds inside is one split; when that leaves cores idle it is cut anyway, and
a first pass asks every part how far it moves the clock, if the stream has one.

A seed is the clock after all records before it. Where compaction or retention may have taken some
of them, whoever reads up to it comes to another clock, so there is no seed to be used. And where
the clock after a split is not the one that the next began with, all of it is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.computing import RowShape
from headrace.engine.gears.reading import Assignment, Batches, run_tasks
from headrace.engine.gears.stamping import Shaped, Stamper, Summary, failure, input_schema
from headrace.engine.tables.topic_facts import TopicFacts
from headrace.engine.turn.outset import Outset
from headrace.errors import LogError, PositionLost, Unreachable
from headrace.ledger.entries import Seed, StreamPartition
from headrace.log.base import Log, Range
from headrace.model.definitions import Stream
from headrace.plan.fold import input_columns
from headrace.plan.spark.names import identifier
from headrace.time.clocks import Clock, Mark, after_span

__all__ = [
    "assign",
    "check_joined",
    "make_stamper",
    "split_frame",
]


def assign(
    session: SparkSession,
    log: Log,
    stream: Stream,
    ranges: Sequence[Range],
    outset: Outset,
    seeds: Sequence[Seed],
    *,
    split_records: int,
) -> list[Assignment]:
    """Return the tasks' assignments, in offset order within a partition, their clocks known."""
    cores = session.sparkContext.defaultParallelism
    compacted = log.topic(stream.topic).settings.compact
    extents = log.extents(stream.topic)
    facts = TopicFacts.of(log, stream)
    assignments: list[Assignment] = []
    for range in ranges:
        whole = not compacted and extents[range.partition].first_offset == 0
        key = StreamPartition(stream.name, range.partition.number)
        place = outset.progress[key]
        marks = outset.marks.get(key, ())
        starts = {place.offset: place.clock}
        for seed in seeds if whole else ():
            offset = seed.progress.offset
            inside = seed.partition == range.partition.number and range.start < offset < range.end
            if inside and offset - max(starts) >= split_records:
                since = [m for m in marks if m.offset == offset and m.number >= seed.time_offset]
                starts[offset] = seed.progress.clock.marked(since)
        if len(starts) == 1 and len(ranges) < cores and range.span >= 2 * split_records:
            uncut = Assignment(range, (), place.clock, marks)
            assignments += _cut(session, log, stream, uncut, split_records)
            continue
        for start, end in pairwise([*starts, range.end]):
            part = Range(range.partition, start, end)
            assignments.append(_assignment(log, part, starts[start], marks))
    return [replace(each, facts=facts) for each in assignments]


def _assignment(log: Log, range: Range, clock: Clock, marks: Sequence[Mark]) -> Assignment:
    parts = tuple(log.splits(range, max_records=range.span))
    within = tuple(mark for mark in marks if range.start < mark.offset <= range.end)
    return Assignment(range, parts, clock, within)


def _cut(
    session: SparkSession, log: Log, stream: Stream, uncut: Assignment, size: int
) -> list[Assignment]:
    """Cut a range without seeds; a first pass finds the clock at the start of every part."""
    range, clock = uncut.range, uncut.clock
    delay_us = clock.delay_us
    drafts = []
    for start, end in pairwise([*_steps(range.start, range.end, size), range.end]):
        part = Range(range.partition, start, end)
        draft = _assignment(log, part, Clock(delay_us=delay_us), uncut.marks)
        drafts.append(draft)
        delay_us = draft.clock.marked(draft.marks).delay_us
    if stream.event_time is None:  # nothing moves its clock
        return [replace(draft, clock=clock) for draft in drafts]
    wanted = frozenset({stream.event_time})
    work = partial(_measure_all, stream, RowShape(stream, wanted))
    frame = run_tasks(session, stream, drafts, wanted, work, "side BINARY")
    summaries = [Summary.from_bytes(bytes(row.side)) for row in frame.collect()]
    moved = {summary.range.start: summary.end for summary in summaries}
    assignments = []
    for draft in drafts:
        assignments.append(replace(draft, clock=clock))
        clock = after_span(clock, moved[draft.range.start], draft.marks)
    return assignments


def check_joined(assignments: Sequence[Assignment], summaries: Sequence[Summary]) -> None:
    """Refuse splits that began with other clocks than reading up to them gives. PositionLost."""
    ends = {summary.range: summary.end for summary in summaries}
    for before, after in pairwise(assignments):
        same = before.range.partition == after.range.partition
        if same and ends[before.range] != after.clock:
            raise PositionLost(
                f"{after.range.partition}@{after.range.start}: the clock here is not the one that "
                f"was known: records before it are gone, by compaction that no longer is or just "
                f"was. Run again; should it say so again, move the store away: it is built from "
                f"what the log still has."
            )


def _steps(start: int, end: int, size: int) -> Iterator[int]:
    offset = start
    # The last step takes what is left, so that no split is tiny.
    while offset == start or end - offset >= size:
        yield offset
        offset += size


def split_frame(
    session: SparkSession,
    stream: Stream,
    assignments: Sequence[Assignment],
    wanted: frozenset[str],
) -> DataFrame:
    """Return the stamped records of the assignments as a frame; one more row each: its summary."""
    shape = RowShape(stream, wanted)
    types = input_columns(stream, wanted.union(shape.schema.names))
    columns = [f"{identifier(name)} {type.sql}" for name, type in types.items()]
    work = partial(_stamp_all, stream, shape)
    return run_tasks(session, stream, assignments, wanted, work, ", ".join(columns))


def _stamp_all(
    stream: Stream, shape: Shaped, _: int, assignment: Assignment, batches: Batches
) -> Iterator[pa.RecordBatch]:
    schema = input_schema(shape)
    stamper = make_stamper(stream, assignment, shape)
    try:
        for records, decoded in batches:
            yield stamper.stamp(records, stamper.accept(records, decoded))
        side = stamper.summary().to_bytes()
    except (LogError, Unreachable) as error:
        side = failure(error)
    nulls = [pa.nulls(1, field.type) for field in schema]
    yield pa.record_batch([*nulls[:-1], pa.array([side], pa.binary())], schema=schema)


def _measure_all(
    stream: Stream, shape: Shaped, _: int, assignment: Assignment, batches: Batches
) -> Iterator[pa.RecordBatch]:
    stamper = make_stamper(stream, assignment, shape)
    try:
        for records, decoded in batches:
            stamper.move_clock(records, stamper.accept(records, decoded))
        side = stamper.summary().to_bytes()
    except (LogError, Unreachable) as error:
        side = failure(error)
    yield pa.record_batch({"side": pa.array([side], pa.binary())})


def make_stamper(stream: Stream, assignment: Assignment, decoder: Shaped) -> Stamper:
    """Return what stamps the records of an assignment."""
    return Stamper(
        stream,
        assignment.range,
        assignment.clock,
        decoder,
        marks=assignment.marks,
        duplicates=assignment.duplicates,
        facts=assignment.facts,
    )
