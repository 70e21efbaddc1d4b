"""Spark tasks that read and decode their parts of the log, and work on what they decoded.

Where Spark computes columns that records are read with, a split goes through two tasks in a row:
the first reads and decodes, the second works; between them Spark computes. They are one pass, in
one process of Spark, and keep the order of the records.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.computing import RowShape, compute, include, sources
from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.gears.stamping import failure, gather, raise_failure
from headrace.engine.gears.tasks import Task, spare_the_collector
from headrace.engine.spark.shares import bounded
from headrace.engine.tables.topic_facts import NO_FACTS, TopicFacts
from headrace.errors import LogError, Unreachable
from headrace.log.base import RECORDS, Range, Split
from headrace.model.definitions import Stream
from headrace.plan.spark.names import identifier
from headrace.schema.codec import Codec, Decoded
from headrace.schema.formats import make_codec
from headrace.time.clocks import Clock, Mark

__all__ = ["Assignment", "Batches", "Work", "run_tasks"]


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
    facts: TopicFacts = NO_FACTS


#: Records in offset order, and what became of them. LogError, Unreachable: they cannot be read.
Batches = Iterator[tuple[pa.Table, Decoded]]
#: What a task does with its assignment, by number, once that is decoded.
Work = Callable[[int, Assignment, Batches], Iterator[pa.RecordBatch]]

# What goes from the task that decodes to the one that works, beside the columns themselves.
_CARRIED = {
    "offset": "BIGINT",
    "arrival": "TIMESTAMP",
    "key": "BINARY",
    "headers": "ARRAY<STRUCT<name: STRING, value: BINARY>>",
}
_BETWEEN = pa.schema(
    [
        *((f"__{name}", RECORDS.field(name).type) for name in _CARRIED),
        ("__number", pa.int32()),
        ("__reason", pa.string()),  # why the record is dead
        ("__end", pa.binary()),  # of the last row of an assignment: empty, or why it ended
    ]
)


def run_tasks(
    session: SparkSession,
    stream: Stream,
    assignments: Sequence[Assignment],
    wanted: frozenset[str],
    work: Work,
    schema: str,
) -> DataFrame:
    """Return what work makes of assignments, each by itself, in as many tasks as are allowed."""
    tasks = session.range(len(assignments), numPartitions=len(assignments))
    if not stream.eager:
        return bounded(
            tasks.mapInArrow(_decode_and_work(stream, assignments, wanted, work), schema)
        )
    read = sources(stream, wanted)
    names = workers_decoder(stream, read).schema.names
    columns = [
        f"{identifier(column.name)} {column.type.sql}"
        for column in stream.columns
        if column.name in names
    ]
    columns += [f"__{name} {type}" for name, type in _CARRIED.items()]
    columns += ["__number INT", "__reason STRING", "__end BINARY"]
    decoded = tasks.mapInArrow(_decode(stream, assignments, read), ", ".join(columns))
    computed = compute(session, stream, decoded)
    return bounded(computed.mapInArrow(_work(stream, assignments, wanted, work), schema))


def _decode_and_work(
    stream: Stream, assignments: Sequence[Assignment], wanted: frozenset[str], work: Work
) -> Task:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = workers_decoder(stream, wanted)
        for number, assignment in _assigned(numbers, assignments):
            yield from work(number, assignment, _decoded(decoder, assignment))
        spare_the_collector()

    return run


def _decode(stream: Stream, assignments: Sequence[Assignment], read: frozenset[str]) -> Task:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = workers_decoder(stream, read)
        schema = pa.schema([*decoder.schema, *_BETWEEN])
        for number, assignment in _assigned(numbers, assignments):
            end = b""
            try:
                for records, decoded in _decoded(decoder, assignment):
                    yield pa.record_batch(
                        [*decoded.rows.columns, *_between(number, records, decoded)], schema=schema
                    )
            except (LogError, Unreachable) as error:
                end = failure(error)
            last = dict.fromkeys(schema.names) | {"__number": number, "__end": end}
            yield pa.RecordBatch.from_pylist([last], schema)
        spare_the_collector()

    return run


def _between(number: int, records: pa.Table, decoded: Decoded) -> list[pa.Array]:
    count = records.num_rows
    reasons = pa.nulls(count, pa.string())
    if len(decoded.dead):
        dead = pc.is_in(pa.array(range(count), pa.int64()), decoded.dead)
        reasons = pc.replace_with_mask(reasons, dead, decoded.reasons)
    return [
        *(records[name].combine_chunks() for name in _CARRIED),
        pa.repeat(pa.scalar(number, pa.int32()), count),
        reasons,
        pa.nulls(count, pa.binary()),
    ]


def _work(
    stream: Stream, assignments: Sequence[Assignment], wanted: frozenset[str], work: Work
) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shape = RowShape(stream, wanted)
        rows = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        for first in rows:
            number = first["__number"][0].as_py()
            # One task, one assignment: what follows is its own, up to its last row.
            found = _received(stream, shape, chain([first], rows))
            yield from work(number, assignments[number], found)
        spare_the_collector()

    return run


def _received(stream: Stream, shape: RowShape, tables: Iterator[pa.Table]) -> Batches:
    """Yield what the decoding task sent of one assignment, up to its last row."""
    for table in tables:
        is_end = table["__end"][-1].is_valid
        rows = table.slice(0, table.num_rows - int(is_end))
        records = pa.table({name: rows[f"__{name}"] for name in _CARRIED})
        reasons = rows["__reason"].combine_chunks()
        dead = pc.indices_nonzero(pc.is_valid(reasons)).cast(pa.int64())
        before = Decoded(pa.RecordBatch.from_pylist([], pa.schema([])), dead, reasons.drop_null())
        if rows.num_rows:
            yield records, include(stream, shape, rows, before)
        if is_end:
            told = table["__end"][-1].as_py()
            if told:
                raise_failure(pa.ipc.open_stream(told).read_all())
            return


@lru_cache(maxsize=16)
def workers_decoder(stream: Stream, wanted: frozenset[str]) -> Codec:
    """Return a decoder that one worker process keeps from task to task: a new one costs 30 ms."""
    return make_codec(stream.encoding, wanted)


def _assigned(
    numbers: Iterator[pa.RecordBatch], assignments: Sequence[Assignment]
) -> Iterator[tuple[int, Assignment]]:
    """Yield the assignments of a task, which Spark tells by their numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield number, assignments[number]


def _decoded(decoder: Codec, assignment: Assignment) -> Batches:
    for records in gather(chain.from_iterable(part.read() for part in assignment.parts)):
        yield records, decoder.decode(records)
