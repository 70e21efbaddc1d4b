"""Two gears, one meaning: how a turn brings its records to the folds.

- short (live, below some 50,000 records): the driver reads, decodes and stamps the slice as Arrow
  and hands it to Spark as one task per view, with a plan that is made once where it can be
  (prepared.py).
- long (catch-up, replay): Spark tasks read, decode and stamp their splits of the log, and Spark
  aggregates on all cores.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.folding import Outcome, RunFold, TooManyFailures, fold_frame, fold_rows
from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.gears.prepared import can_prepare, prepare
from headrace.engine.gears.reading import Assignment
from headrace.engine.gears.splits import assign, check_joined, split_frame
from headrace.engine.gears.stamping import Clocks, Stamper, Summary, gather, input_schema
from headrace.engine.gears.unique_tasks import find_duplicates
from headrace.engine.gears.uniqueness import Memory, Stepped, remembered, step_rows
from headrace.engine.spark.errors import SPARK_ERRORS, explain
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import Decoder, Unit, make_decoder
from headrace.errors import ViewFailed
from headrace.ledger.entries import PlannedTurn
from headrace.log.base import RECORDS, Log, Range
from headrace.model.definitions import Stream
from headrace.model.nodes import ARRIVAL
from headrace.operators.state import StateFolder
from headrace.plan.stages import Fold, Operator, Read, Step
from headrace.schema.json import Decoded
from headrace.store.base import Store

__all__ = ["Folded", "Gear", "LongGear", "ShortGear", "Work"]

#: What became of a fold: an outcome, or why there is none.
Folded = Outcome | ViewFailed | TooManyFailures

logger = logging.getLogger("headrace.turn")


@dataclass(frozen=True)
class Work:
    """What a gear works with for the length of a turn; `pool` runs the folds of several views."""

    unit: Unit
    spark: SparkSession
    log: Log
    store: Store
    planned: PlannedTurn
    outset: Outset
    state: StateFolder
    pool: ThreadPoolExecutor

    def ranges(self, stream: str) -> list[Range]:
        """Return what the turn reads of a stream."""
        return [entry.range for entry in self.planned.ranges if entry.stream == stream]

    def records(self, stream: Stream, range: Range) -> Iterator[pa.Table]:
        """Yield the records of a range as a stream reads them, in offset order."""
        return gather(self.log.read(range, produced=stream.event_time == ARRIVAL))

    @property
    def max_jobs(self) -> int | None:
        """How many Spark jobs may go into finding a view's failing records; None: any number."""
        return self.unit.settings.probe_jobs if self.unit.shared else None

    def memory(self, step: Step) -> Memory:
        """Return what a step remembers."""
        return remembered(self.unit.manifests, step, self.state, self.outset.progress)

    def each(self, folds: Sequence[Fold], run: Callable[[Fold], Outcome]) -> list[Folded]:
        """Run folds side by side; one that fails takes no other along."""

        def attempt(fold: Fold) -> Folded:
            try:
                return run(fold)
            except (ViewFailed, TooManyFailures) as error:
                return error

        return list(self.pool.map(attempt, folds))


class Gear(Protocol):
    """How the steps 2 to 5 of a turn are carried out: a verb takes all stages of its kind.

    `stepped` says what step 4 found, by operator.
    """

    name: str
    stepped: dict[Operator, Stepped]

    def read(self, reads: Sequence[Read], steps: Sequence[Step]) -> None:
        """Step 2: read and decode, also the columns that steps go by."""
        ...

    def stamp(self) -> None:
        """Step 3: stamp."""
        ...

    def step(self, steps: Sequence[Step]) -> None:
        """Step 4: step the keyed operators. StoreError, DiskFull."""
        ...

    def fold(self, folds: Sequence[Fold]) -> list[Folded]:
        """Step 5: return what became of every fold."""
        ...

    def summaries(self) -> list[Summary]:
        """Return what reading found, by range; in offset order within a partition."""
        ...

    def close(self) -> None:
        """Let go of what the turn held in Spark."""
        ...


class ShortGear:
    """The driver reads."""

    name = "short"

    def __init__(self, work: Work) -> None:
        self.stepped: dict[Operator, Stepped] = {}
        self._work = work
        self._clocks: dict[str, list[Clocks]] = {}
        self._decoders: dict[str, Decoder] = {}
        self._decoded: list[tuple[Stamper, list[tuple[pa.Table, Decoded]]]] = []
        self._rows: dict[str, pa.Table] = {}
        self._summaries: list[Summary] = []

    def read(self, reads: Sequence[Read], steps: Sequence[Step]) -> None:
        """Step 2: read and decode, also the columns that steps go by."""
        work = self._work
        for each in reads:
            name = each.stream.name
            by = {step.by for step in steps if step.operator.name == name}
            decoder = work.unit.streams[name].decoder(each.columns | by, work.spark)
            self._decoders[name] = decoder
            read = [(range, list(work.records(each.stream, range))) for range in work.ranges(name)]
            batches = [batch for _, found in read for batch in found]
            # One call for all partitions: each costs some milliseconds, whatever its size. There
            # may be none: offsets that a log leaves out are read as well.
            values = [batch.select(["value"]) for batch in (RECORDS.empty_table(), *batches)]
            decoded = decoder.decode(pa.concat_tables(values)["value"])
            start = 0
            for range, found in read:
                stamper = work.outset.stamper(each.stream, range, decoder)
                parts = []
                for batch in found:
                    part = decoded.slice(start, batch.num_rows)
                    parts.append((batch, stamper.accept(batch, part)))
                    start += batch.num_rows
                self._decoded.append((stamper, parts))

    def stamp(self) -> None:
        """Step 3: stamp."""
        stamped: dict[str, list[pa.RecordBatch]] = {name: [] for name in self._decoders}
        for stamper, batches in self._decoded:
            parts, clocks = [], []
            unique = stamper.stream.unique is not None
            for batch in batches:
                parts.append(stamper.stamp(*batch))
                if unique:
                    clocks.append(stamper.clocks)
            summary = stamper.summary()
            stamped[summary.stream] += parts
            self._clocks.setdefault(summary.stream, []).extend(clocks)
            self._summaries.append(summary)
        self._decoded.clear()
        for name, parts in stamped.items():
            schema = input_schema(self._decoders[name])
            self._rows[name] = pa.Table.from_batches(parts, schema).combine_chunks()

    def step(self, steps: Sequence[Step]) -> None:
        """Step 4: step the keyed operators. StoreError, DiskFull."""
        for step in steps:
            name = step.operator.name
            rows = self._rows[name]
            if not rows.num_rows:
                continue
            columns = zip(*self._clocks[name], strict=True)
            clocks = Clocks(*(np.concatenate(column) for column in columns))
            hasher = self._work.unit.streams[name].hasher
            duplicate, found = step_rows(step, self._work.memory(step), hasher, rows, clocks)
            self.stepped[step.operator] = found
            self._rows[name] = rows.filter(pa.array(~duplicate))
            for at, summary in enumerate(self._summaries):
                if summary.stream == name:
                    here = found.duplicates.get(summary.range.partition.number, NO_OFFSETS)
                    count = len(here.offsets())
                    accepted = summary.accepted - count
                    self._summaries[at] = replace(summary, accepted=accepted, duplicate=count)

    def fold(self, folds: Sequence[Fold]) -> list[Folded]:
        """Step 5: return what became of every fold."""
        return self._work.each(folds, self._fold)

    def _fold(self, fold: Fold) -> Outcome:
        work, rows = self._work, self._rows[fold.stream.name]
        return fold_rows(
            fold,
            work.unit.session(work.spark, fold.name),
            rows,
            run=self._prepared(fold) if rows.num_rows else None,
            parts=work.unit.settings.split_folds,
            max_jobs=work.max_jobs,
        )

    def _prepared(self, fold: Fold) -> RunFold | None:
        if not can_prepare(self._work.spark):
            return None
        try:
            prepared = prepare(self._work.spark, fold)
        except SPARK_ERRORS:
            return None  # made anew for the rows, the plan fails again, and that is the view's end
        return prepared.run if prepared.repeatable else None

    def summaries(self) -> list[Summary]:
        """Return what reading found, by range."""
        return self._summaries

    def close(self) -> None:
        """Nothing is held in Spark."""


class LongGear:
    """Spark's tasks read."""

    name = "long"

    def __init__(self, work: Work) -> None:
        self.stepped: dict[Operator, Stepped] = {}
        self._work = work
        self._reads: dict[str, Read] = {}
        self._assignments: dict[str, list[Assignment]] = {}
        self._sessions: dict[str, SparkSession] = {}
        self._frames: list[DataFrame] = []
        self._sides: dict[str, list[Summary]] = {}

    def read(self, reads: Sequence[Read], steps: Sequence[Step]) -> None:  # noqa: ARG002
        """Step 2: give every task its splits; reading itself happens when Spark runs step 5."""
        work = self._work
        for each in reads:
            name = each.stream.name
            ranges = work.ranges(name)
            if not ranges:
                continue
            self._reads[name] = each
            session = self._sessions[name] = work.unit.session(work.spark, f"stream {name}")
            self._assignments[name] = assign(
                session,
                work.log,
                each.stream,
                ranges,
                work.outset,
                work.store.seeds(name, work.unit.streams[name].version),
                split_records=work.unit.settings.split_records,
            )

    def stamp(self) -> None:
        """Step 3: nothing to do here; tasks stamp what they decode."""

    def step(self, steps: Sequence[Step]) -> None:
        """Step 4: each operator in a pass of its own over the log.

        LogError, Unreachable, StoreError, DiskFull, EngineError.
        """
        for step in steps:
            name = step.operator.name
            if name in self._reads:
                apart = self._work.unit.session(self._work.spark, f"{step.operator.kind} {name}")
                stream, memory = self._reads[name].stream, self._work.memory(step)
                found = find_duplicates(apart, stream, self._assignments[name], memory)
                self._assignments[name], self.stepped[step.operator] = found

    def fold(self, folds: Sequence[Fold]) -> list[Folded]:
        """Step 5: return what became of every fold."""
        for name, read in self._reads.items():
            session = self._sessions[name]
            frame = split_frame(session, read.stream, self._assignments[name], read.columns)
            if sum(fold.stream.name == name for fold in folds) > 1:
                # Decoding costs more than keeping: several views share one pass over the log.
                frame = frame.persist()
                self._frames.append(frame)
            frame.createOrReplaceTempView("__input")
        return self._work.each(folds, self._fold)

    def _fold(self, fold: Fold) -> Outcome:
        outcome = Outcome()
        session = self._sessions.get(fold.stream.name)
        if session is None:
            return outcome
        try:
            outcome.add(fold, fold_frame(fold, session))
        except SPARK_ERRORS as error:
            explained = explain(error)
            if not explained.of_value:
                # A record may be the reason all the same, and the slices will tell.
                logger.warning(
                    "view %s: turn %d fails in Spark's tasks, so its records are folded slice by "
                    "slice: %s",
                    fold.name, self._work.planned.turn, explained.sentence,
                )  # fmt: skip
            return self._fold_in_slices(fold)
        self._sides[fold.stream.name] = outcome.summaries
        return outcome

    def _fold_in_slices(self, fold: Fold) -> Outcome:
        """Find the records that fail, slice by slice, in the driver's bounded memory."""
        work, name = self._work, fold.stream.name
        outcome = Outcome()
        session = work.unit.session(work.spark, fold.name)
        duplicates: dict[int, OffsetSet] = {}
        for operator, stepped in self.stepped.items():
            duplicates |= stepped.duplicates if operator.name == name else {}
        for range in work.ranges(name):
            # Other views' threads may do the same, and a decoder serves one thread at a time.
            decoder = make_decoder(fold.stream, self._reads[name].columns, work.spark)
            here = duplicates.get(range.partition.number, NO_OFFSETS)
            stamper = work.outset.stamper(fold.stream, range, decoder, duplicates=here)
            for batch in work.records(fold.stream, range):
                decoded = stamper.accept(batch, decoder.decode(batch["value"]))
                rows = pa.Table.from_batches([stamper.stamp(batch, decoded)])
                outcome.include(fold_rows(fold, session, rows, max_jobs=work.max_jobs))
        return outcome

    def summaries(self) -> list[Summary]:
        """Return what reading found, by range; a stream that no view folded is read for it.

        PositionLost: a split began with another clock than the one before it ended with.
        """
        found: list[Summary] = []
        for name, session in self._sessions.items():
            if name not in self._sides:
                rows = session.sql("SELECT __side FROM __input WHERE __side IS NOT NULL").collect()
                self._sides[name] = [Summary.from_bytes(bytes(row[0])) for row in rows]
            check_joined(self._assignments[name], self._sides[name])
            found += sorted(self._sides[name], key=lambda summary: summary.range)
        return found

    def close(self) -> None:
        """Let go of the shared frames."""
        for frame in self._frames:
            frame.unpersist()
