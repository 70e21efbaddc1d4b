"""The long turn's reading: Spark tasks read, decode and stamp their splits of the log.

A split can be stamped when the clock at its start is known: it begins at the position, or at a
seed. A range without seeds inside is one split; when that leaves cores idle it is cut anyway, and
a first pass asks every part how far it moves the clock, if the stream has one.

A seed is the clock after all records before it. Where compaction or retention may have taken some
of them, whoever reads up to it comes to another clock, so there is no seed to be used. And where
the clock after a split is not the one that the next began with, all of it is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.gears.stamping import Stamper, Summary, failure, gather, input_schema
from headrace.engine.gears.tasks import Task, spare_the_collector
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import make_decoder
from headrace.errors import LogError, PositionLost, Unreachable
from headrace.ledger.entries import Seed, StreamPartition
from headrace.log.base import Log, Range, Split
from headrace.model.definitions import Stream
from headrace.plan.fold import input_columns
from headrace.plan.spark.names import identifier
from headrace.schema.json import JsonDecoder
from headrace.time.clocks import Clock, Mark, after_span

__all__ = [
    "Assignment",
    "assign",
    "assigned",
    "check_joined",
    "make_stamper",
    "records_of",
    "split_frame",
    "workers_decoder",
]


@dataclass(frozen=True)
class Assignment:
    """What one task reads: the parts of the log that make one range, and the clock before it.

    `marks` act within the range, up to its end. `duplicates` are left out of what it yields.
    """

    range: Range
    parts: tuple[Split, ...]
    clock: Clock
    marks: tuple[Mark, ...] = ()
    duplicates: OffsetSet = NO_OFFSETS


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
    return assignments


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
    frame = session.range(len(drafts), numPartitions=len(drafts)).mapInArrow(
        _measuring(stream, drafts), "side BINARY"
    )
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
    names = make_decoder(stream, wanted).schema.names
    types = input_columns(stream, wanted.union(names))
    columns = [f"{identifier(name)} {type.sql}" for name, type in types.items()]
    tasks = session.range(len(assignments), numPartitions=len(assignments))
    return tasks.mapInArrow(_stamping(stream, assignments, wanted), ", ".join(columns))


def _stamping(stream: Stream, assignments: Sequence[Assignment], wanted: frozenset[str]) -> Task:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = workers_decoder(stream, wanted)
        schema = input_schema(decoder)
        for _, assignment in assigned(numbers, assignments):
            stamper = make_stamper(stream, assignment, decoder)
            try:
                for records in records_of(assignment):
                    yield stamper.stamp(records, stamper.decode(records))
                side = stamper.summary().to_bytes()
            except (LogError, Unreachable) as error:
                side = failure(error)
            nulls = [pa.nulls(1, field.type) for field in schema]
            yield pa.record_batch([*nulls[:-1], pa.array([side], pa.binary())], schema=schema)
        spare_the_collector()

    return run


def _measuring(stream: Stream, assignments: Sequence[Assignment]) -> Task:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = workers_decoder(stream, frozenset({stream.event_time or ""}))
        for _, assignment in assigned(numbers, assignments):
            stamper = make_stamper(stream, assignment, decoder)
            try:
                for records in records_of(assignment):
                    stamper.move_clock(records, stamper.decode(records))
                side = stamper.summary().to_bytes()
            except (LogError, Unreachable) as error:
                side = failure(error)
            yield pa.record_batch({"side": pa.array([side], pa.binary())})
        spare_the_collector()

    return run


@lru_cache(maxsize=16)
def workers_decoder(stream: Stream, wanted: frozenset[str]) -> JsonDecoder:
    """Return a decoder that one worker process keeps from task to task: a new one costs 30 ms."""
    return make_decoder(stream, wanted)


def assigned(
    numbers: Iterator[pa.RecordBatch], assignments: Sequence[Assignment]
) -> Iterator[tuple[int, Assignment]]:
    """Yield the assignments of a task, which Spark tells by their numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield number, assignments[number]


def make_stamper(stream: Stream, assignment: Assignment, decoder: JsonDecoder) -> Stamper:
    """Return what decodes and stamps the records of an assignment."""
    return Stamper(
        stream,
        assignment.range,
        assignment.clock,
        decoder,
        marks=assignment.marks,
        duplicates=assignment.duplicates,
    )


def records_of(assignment: Assignment) -> Iterator[pa.Table]:
    """Yield the records of an assignment, in offset order."""
    return gather(chain.from_iterable(part.read() for part in assignment.parts))
