"""The long gear, for catching up and replays: Spark's tasks read, decode and stamp their splits.

Spark aggregates on all cores. Clocks are known where splits begin (splits.py).
"""

import logging
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.folding import (
    Outcome,
    fold_frame,
    fold_rows,
    view_failed,
)
from headrace.engine.gears.gears import Folded, Work
from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.gears.probing import any_fails
from headrace.engine.gears.reading import Assignment
from headrace.engine.gears.splits import assign, check_joined, split_frame
from headrace.engine.gears.stamping import Summary
from headrace.engine.gears.unique_tasks import find_duplicates
from headrace.engine.gears.uniqueness import Stepped
from headrace.engine.spark.errors import SPARK_ERRORS, SparkError, explain, is_too_large
from headrace.engine.tables.newest_tasks import fold_changes
from headrace.engine.tables.topic_facts import TopicFacts
from headrace.engine.turn.pace import TurnTooLarge
from headrace.engine.unit import make_decoder
from headrace.errors import ProbeMissing
from headrace.plan.stages import Fold, Operator, Read, Step

__all__ = ["LongGear"]

logger = logging.getLogger("headrace.turn")


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
            if read.stream.primary_key:
                continue  # a table's fold reads for itself
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
            result = self._run(fold, session)
        except SPARK_ERRORS as error:
            if explain(error).of_value:
                return self._fold_in_slices(fold)
            if is_too_large(error) and not self._work.is_smallest:
                raise TurnTooLarge from error
            logger.warning(
                "view %s: turn %d fails in Spark's tasks and is tried once more: %s",
                fold.name, self._work.planned.turn, explain(error).sentence,
            )  # fmt: skip
            try:
                result = self._run(fold, session)
            except SPARK_ERRORS as again:
                if fold.stream.primary_key or not _is_of_records(fold, session, again):
                    raise view_failed(fold, again) from again
                return self._fold_in_slices(fold)
        outcome.add(fold, result)
        self._sides[fold.stream.name] = outcome.summaries
        return outcome

    def _run(self, fold: Fold, session: SparkSession) -> pa.Table:
        if fold.stream.primary_key:
            return fold_changes(session, fold, self._assignments[fold.stream.name])
        return fold_frame(fold, session)

    def _fold_in_slices(self, fold: Fold) -> Outcome:
        """Find the records that fail, slice by slice, in the driver's bounded memory."""
        work, name = self._work, fold.stream.name
        outcome = Outcome()
        session = work.session(fold)
        duplicates: dict[int, OffsetSet] = {}
        for operator, stepped in self.stepped.items():
            duplicates |= stepped.duplicates if operator.name == name else {}
        # Other views' threads may do the same, and a decoder serves one thread at a time.
        decoder = make_decoder(fold.stream, self._reads[name].columns, work.spark)
        facts = TopicFacts.of(work.log, fold.stream)
        for range in work.ranges(name):
            here = duplicates.get(range.partition.number, NO_OFFSETS)
            stamper = work.outset.stamper(fold.stream, range, decoder, duplicates=here, facts=facts)
            for batch in work.records(fold.stream, range):
                decoded = stamper.accept(batch, decoder.decode(batch))
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
                if self._reads[name].stream.primary_key:
                    self._read_alone(name)
                rows = session.sql("SELECT __side FROM __input WHERE __side IS NOT NULL").collect()
                self._sides[name] = [Summary.from_bytes(bytes(row[0])) for row in rows]
            check_joined(self._assignments[name], self._sides[name])
            found += sorted(self._sides[name], key=lambda summary: summary.range)
        return found

    def _read_alone(self, name: str) -> None:
        """Let a table's changes be read although its fold is gone."""
        read, session = self._reads[name], self._sessions[name]
        frame = split_frame(session, read.stream, self._assignments[name], read.columns)
        frame.createOrReplaceTempView("__input")

    def close(self) -> None:
        """Let go of the shared frames."""
        for frame in self._frames:
            frame.unpersist()


def _is_of_records(fold: Fold, session: SparkSession, error: SparkError) -> bool:
    """Return whether a fold may fail because of records, which can be set aside one by one.

    Tasks look for them: the driver must not read millions of records because a worker was lost.
    """
    explained = explain(error)
    if explained.state is not None:
        return not explained.of_machine
    try:
        return any_fails(fold, session)
    except (ProbeMissing, *SPARK_ERRORS):
        return False
