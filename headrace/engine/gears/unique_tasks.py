"""Step 4 of a long turn, in Spark: a first, narrow pass over the log finds the duplicates.

Tasks decode id and event time alone, stamp, hash, and send every record to the task of its shard;
that one runs the step over its shards of the state, writes its own files, and returns which records
are duplicates and what the manifest will say. Records travel as columns, a few blocks to a task,
not as rows: 36 bytes each.

A task takes about 500,000 records, whatever the turn's size, and merges its state in blocks
(operators/state/tiers.py): 160 MB over what a worker has anyway. Only an id that stands in a turn
again and again makes a task larger, since its records are decided together; `max_turn_records`
bounds that. 4,000,000 records of one id took 580 MB and 2 core-seconds.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.gears.computing import RowShape
from headrace.engine.gears.offset_sets import OffsetSet
from headrace.engine.gears.reading import Assignment, Batches, run_tasks
from headrace.engine.gears.splits import make_stamper
from headrace.engine.gears.stamping import Shaped, failure, raise_failure
from headrace.engine.gears.tasks import Task, spare_the_collector
from headrace.engine.gears.uniqueness import Memory, Stepped
from headrace.engine.spark.errors import SPARK_ERRORS, explain
from headrace.engine.spark.shares import bounded
from headrace.errors import EngineError, HeadraceError, LogError, Unreachable
from headrace.model.definitions import Stream
from headrace.operators.dedup import Batch, deduplicate
from headrace.operators.state import SHARDS, Hasher, Keys, Run, Shards, State, join_runs
from headrace.operators.state.entries import shards_of

__all__ = ["TASK_RECORDS", "find_duplicates"]

TASK_RECORDS = 500_000  # of a deciding task; hashes are spread evenly
# Blocks that a task gets at once from Spark: 5 MB each at most.
_BLOCKS_AT_ONCE = 8

_COLUMNS = {
    "high": np.uint64,
    "low": np.uint64,
    "clock_us": np.int64,
    "after_us": np.int64,
    "place": np.uint32,  # among the turn's offsets, range after range
}
_BLOCKS = pa.schema(
    [
        ("task", pa.int32()),
        ("first", pa.int64()),  # the place of its first record
        *((name, pa.binary()) for name in _COLUMNS),
        ("failure", pa.binary()),
    ]
)


def find_duplicates(
    session: SparkSession, stream: Stream, assignments: Sequence[Assignment], memory: Memory
) -> tuple[list[Assignment], Stepped]:
    """Return the assignments with their duplicates, and the same by partition.

    LogError, Unreachable, StoreError, DiskFull; then nothing that was written is left.
    EngineError: Spark's own failure; which files its tasks had written nobody knows, and the next
    engine removes them as it starts.
    """
    bases = [0, *accumulate(assignment.range.span for assignment in assignments)]
    tasks = _count_tasks(bases[-1], session.sparkContext.defaultParallelism)
    sides = _run(session, stream, assignments, bases, tasks, memory)
    flags = np.zeros(bases[-1], dtype=bool)
    runs: list[Run] = []
    idle = set(range(tasks))
    for side in sides:
        if found := side.schema.metadata.get(b"step"):
            task, entries = json.loads(found)
            idle.discard(task)
            runs += [Run(file, Shards(*shards), *rest) for file, shards, *rest in entries]
            flags[side["place"].to_numpy()] = True
    for side in sides:
        if b"failure" in side.schema.metadata:
            known = {run.file for run in memory.runs}
            memory.folder.remove({run.file for run in runs} - known)
            raise_failure(side)
    # A task without records has no say, and its shards stay as they are.
    for task in idle:
        runs += State(memory.folder, memory.runs, _shards(task, tasks)).runs
    found_in: list[Assignment] = []
    by_partition: dict[int, list[OffsetSet]] = {}
    for assignment, (base, end) in zip(assignments, pairwise(bases), strict=True):
        here = OffsetSet.of(assignment.range.start, flags[base:end])
        found_in.append(replace(assignment, duplicates=here))
        by_partition.setdefault(assignment.range.partition.number, []).append(here)
    joined = {number: _join(sets) for number, sets in by_partition.items()}
    return found_in, Stepped(join_runs(runs), joined)


def _run(
    session: SparkSession,
    stream: Stream,
    assignments: Sequence[Assignment],
    bases: Sequence[int],
    tasks: int,
    memory: Memory,
) -> list[pa.Table]:
    """Return what every deciding task has found or failed with. EngineError."""
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_BLOCKS_AT_ONCE))
    types = {"task": "INT", "first": "BIGINT"}
    schema = ", ".join(f"{name} {types.get(name, 'BINARY')}" for name in _BLOCKS.names)
    assert stream.unique is not None
    assert stream.event_time is not None
    wanted = frozenset({stream.unique, stream.event_time})
    work = partial(_hash_all, stream, RowShape(stream, wanted), bases, tasks)
    blocks = run_tasks(session, stream, assignments, wanted, work, schema)
    decided = blocks.repartitionById(tasks, "task").mapInArrow(
        _deciding(stream, memory, tasks), "side BINARY"
    )
    try:
        rows = bounded(decided).collect()
    except SPARK_ERRORS as error:
        raise EngineError(
            f"stream {stream.name}: the search for duplicates fails in Spark: "
            f"{explain(error).sentence}. The turn is not committed, and nothing is lost. Run "
            f"again; should it fail again, give Spark's workers more memory, or lower "
            f"max_turn_records in headrace.toml."
        ) from error
    return [pa.ipc.open_stream(bytes(row.side)).read_all() for row in rows]


def _count_tasks(records: int, cores: int) -> int:
    """Return a power of two, so that the cuts of one turn are cuts of the next."""
    wanted = max(cores, -(-records // TASK_RECORDS))
    return min(SHARDS, 1 << (wanted - 1).bit_length())


def _shards(task: int, tasks: int) -> Shards:
    return Shards(task * SHARDS // tasks, (task + 1) * SHARDS // tasks)


def _join(sets: Sequence[OffsetSet]) -> OffsetSet:
    return OffsetSet.from_offsets(np.concatenate([each.offsets() for each in sets]))


def _hash_all(
    stream: Stream,
    shape: Shaped,
    bases: Sequence[int],
    tasks: int,
    number: int,
    assignment: Assignment,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    stamper = make_stamper(stream, assignment, shape)
    first = bases[number] - assignment.range.start
    try:
        for records, decoded in batches:
            rows = stamper.stamp(records, stamper.accept(records, decoded))
            keys = _workers_hasher().keys(rows["__partition"], rows[stream.unique])
            places = (rows["__offset"].to_numpy() + first).astype(np.uint32)
            yield _blocks(keys, [*stamper.clocks, places], tasks)
    except (LogError, Unreachable) as error:
        nothing = dict.fromkeys(_BLOCKS.names)
        told = nothing | {"task": 0, "first": 0, "failure": failure(error)}
        yield pa.RecordBatch.from_pylist([told], _BLOCKS)


@lru_cache(maxsize=1)
def _workers_hasher() -> Hasher:
    return Hasher()


def _blocks(keys: Keys, others: Sequence[np.ndarray], tasks: int) -> pa.RecordBatch:
    """Return a batch cut by task; the records of a block stay in order."""
    # The task of a shard: shards are cut evenly.
    task = (shards_of(keys.high).astype(np.uint32) * tasks // SHARDS).astype(np.uint16)
    order = np.argsort(task, kind="stable")
    bounds = np.searchsorted(task[order], np.arange(tasks + 1))
    columns = [column[order] for column in (*keys, *others)]
    filled = [at for at in range(tasks) if bounds[at] < bounds[at + 1]]
    cut = [[column[bounds[at] : bounds[at + 1]] for column in columns] for at in filled]
    if not filled:
        return pa.RecordBatch.from_pylist([], _BLOCKS)
    arrays = [
        pa.array(filled, pa.int32()),
        pa.array([int(block[-1][0]) for block in cut], pa.int64()),
        *(pa.array([part.tobytes() for part in parts]) for parts in zip(*cut, strict=True)),
        pa.nulls(len(filled), pa.binary()),
    ]
    return pa.record_batch(arrays, schema=_BLOCKS)


def _deciding(stream: Stream, memory: Memory, tasks: int) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks: list[tuple[int, list[np.ndarray]]] = []
        task = None
        for batch in batches:
            for row in range(batch.num_rows):
                if batch["failure"][row].is_valid:
                    yield pa.record_batch({"side": batch["failure"].slice(row, 1)})
                    return
                task = batch["task"][row].as_py()
                columns = [
                    np.frombuffer(batch[name][row].as_buffer(), dtype=type)
                    for name, type in _COLUMNS.items()
                ]
                blocks.append((batch["first"][row].as_py(), columns))
        if task is None:
            return
        try:
            side = _decide(stream, memory, task, tasks, blocks)
        except HeadraceError as error:
            side = failure(error)
        yield pa.record_batch({"side": pa.array([side], pa.binary())})
        spare_the_collector()

    return run


def _decide(
    stream: Stream,
    memory: Memory,
    task: int,
    tasks: int,
    blocks: list[tuple[int, list[np.ndarray]]],
) -> bytes:
    blocks.sort(key=lambda block: block[0])
    high, low, clock_us, after_us, places = (
        np.concatenate(parts) for parts in zip(*(columns for _, columns in blocks), strict=True)
    )
    blocks.clear()
    state = State(memory.folder, memory.runs, _shards(task, tasks))
    batch = Batch(high, low, clock_us, after_us)
    found = deduplicate(state, batch, within_us=stream.unique_within_us)
    runs = state.add(found.entries, drop_before_us=memory.drop_before_us)
    entries = [
        [run.file, run.shards, run.rows, run.largest_clock_us, run.file_bytes] for run in runs
    ]
    table = pa.table({"place": places[found.duplicate]})
    table = table.replace_schema_metadata({"step": json.dumps([task, entries])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
