"""Two gears, one meaning: how a turn brings its records to the folds.

- short (live, below some 50,000 records): the driver reads, decodes and stamps the slice as Arrow
  and hands it to Spark as one task per view, with a plan that is made once where it can be
  (prepared.py).
- long (catch-up, replay): Spark tasks read, decode and stamp their splits of the log, and Spark
  aggregates on all cores.
"""

import logging
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.folding import Outcome, Run, fold_frame, fold_rows
from headrace.engine.gears.offset_sets import NO_OFFSETS
from headrace.engine.gears.prepared import can_prepare, prepare
from headrace.engine.gears.splits import Assignment, assign, check_joined, split_frame
from headrace.engine.gears.stamping import Clocks, Stamper, Summary, gather, input_schema
from headrace.engine.gears.unique_tasks import find_duplicates
from headrace.engine.gears.uniqueness import Stepped, remembered, step_rows
from headrace.engine.spark.errors import SPARK_ERRORS, explain
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import Unit, make_decoder
from headrace.ledger.entries import PlannedTurn
from headrace.log.base import RECORDS, Log
from headrace.operators.state import StateFolder
from headrace.plan.fold import Fold
from headrace.schema.json import Decoded
from headrace.store.base import Store

__all__ = ["Gear", "LongGear", "ShortGear"]

logger = logging.getLogger("headrace.turn")


class Gear(Protocol):
    """How the steps 2 to 5 of a turn are carried out; `fold` is called from several threads.

    `stepped` says what step 4 found, by stream.
    """

    name: str
    stepped: dict[str, Stepped]

    def read(self) -> None:
        """Step 2: read and decode."""
        ...

    def stamp(self) -> None:
        """Step 3: stamp."""
        ...

    def step(self) -> None:
        """Step 4: find duplicates. StoreError, DiskFull."""
        ...

    def fold(self, fold: Fold) -> Outcome:
        """Step 5, for one view. ViewFailed, TooManyFailures."""
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

    def __init__(
        self,
        unit: Unit,
        spark: SparkSession,
        log: Log,
        planned: PlannedTurn,
        outset: Outset,
        state: StateFolder,
    ) -> None:
        self.stepped: dict[str, Stepped] = {}
        self._unit = unit
        self._spark = spark
        self._log = log
        self._planned = planned
        self._outset = outset
        self._state = state
        self._clocks: dict[str, list[Clocks]] = {}
        self._decoded: list[tuple[Stamper, list[tuple[pa.Table, Decoded]]]] = []
        self._rows: dict[str, pa.Table] = {}
        self._summaries: list[Summary] = []

    def read(self) -> None:
        """Step 2: read and decode."""
        for name, source in self._unit.sources.items():
            ranges = [entry.range for entry in self._planned.ranges if entry.stream == name]
            decoder = source.decoder(self._unit.wanted_first(name))
            read = [(range, list(gather(self._log.read(range)))) for range in ranges]
            batches = [batch for _, found in read for batch in found]
            # One call for all partitions: each costs some milliseconds, whatever its size. There
            # may be none: offsets that a log leaves out are read as well.
            decoded = decoder.decode(pa.concat_tables([RECORDS.empty_table(), *batches])["value"])
            start = 0
            for range, found in read:
                stamper = self._outset.stamper(source.stream, range, decoder)
                parts = []
                for batch in found:
                    part = decoded.slice(start, batch.num_rows)
                    parts.append((batch, stamper.accept(batch, part)))
                    start += batch.num_rows
                self._decoded.append((stamper, parts))

    def stamp(self) -> None:
        """Step 3: stamp."""
        stamped: dict[str, list[pa.RecordBatch]] = {name: [] for name in self._unit.sources}
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
            decoder = self._unit.sources[name].decoder(self._unit.wanted_first(name))
            schema = input_schema(decoder)
            self._rows[name] = pa.Table.from_batches(parts, schema).combine_chunks()

    def step(self) -> None:
        """Step 4: find duplicates. StoreError, DiskFull."""
        for name, source in self._unit.sources.items():
            rows = self._rows[name]
            if source.stream.unique is None or not rows.num_rows:
                continue
            memory = remembered(self._unit, source.stream, self._state, self._outset.progress)
            columns = zip(*self._clocks[name], strict=True)
            clocks = Clocks(*(np.concatenate(column) for column in columns))
            duplicate, found = step_rows(source.stream, memory, source.hasher, rows, clocks)
            self.stepped[name] = found
            self._rows[name] = rows.filter(pa.array(~duplicate))
            for at, summary in enumerate(self._summaries):
                if summary.stream == name:
                    here = found.duplicates.get(summary.range.partition.number, NO_OFFSETS)
                    count = len(here.offsets())
                    accepted = summary.accepted - count
                    self._summaries[at] = replace(summary, accepted=accepted, duplicate=count)

    def fold(self, fold: Fold) -> Outcome:
        """Step 5, for one view. ViewFailed, TooManyFailures."""
        settings = self._unit.settings
        rows = self._rows[fold.stream.name]
        return fold_rows(
            fold,
            self._unit.session(self._spark, fold.name),
            rows,
            run=self._prepared(fold) if rows.num_rows else None,
            parts=settings.split_folds,
            max_jobs=settings.probe_jobs if self._unit.shared else None,
        )

    def _prepared(self, fold: Fold) -> Run | None:
        if not can_prepare(self._spark):
            return None
        try:
            prepared = prepare(self._spark, fold)
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

    def __init__(
        self,
        unit: Unit,
        spark: SparkSession,
        log: Log,
        store: Store,
        planned: PlannedTurn,
        outset: Outset,
        state: StateFolder,
    ) -> None:
        self.stepped: dict[str, Stepped] = {}
        self._unit = unit
        self._spark = spark
        self._log = log
        self._store = store
        self._state = state
        self._assignments: dict[str, list[Assignment]] = {}
        self._planned = planned
        self._outset = outset
        self._sessions: dict[str, SparkSession] = {}
        self._frames: list[DataFrame] = []
        self._sides: dict[str, list[Summary]] = {}

    def read(self) -> None:
        """Step 2: give every task its splits; reading itself happens when Spark runs step 5."""
        for name, source in self._unit.sources.items():
            ranges = [entry.range for entry in self._planned.ranges if entry.stream == name]
            if not ranges:
                continue
            session = self._sessions[name] = self._unit.session(self._spark, f"stream {name}")
            self._assignments[name] = assign(
                session,
                self._log,
                source.stream,
                ranges,
                self._outset,
                self._store.seeds(name, source.version),
                split_records=self._unit.settings.split_records,
            )

    def stamp(self) -> None:
        """Step 3: nothing to do here; tasks stamp what they decode."""

    def step(self) -> None:
        """Step 4: find duplicates in a pass of its own, then say what step 5 reads.

        LogError, Unreachable, StoreError, DiskFull, EngineError.
        """
        for name, session in self._sessions.items():
            stream = self._unit.sources[name].stream
            assignments = self._assignments[name]
            if stream.unique is not None:
                memory = remembered(self._unit, stream, self._state, self._outset.progress)
                apart = self._unit.session(self._spark, f"unique {name}")
                found = find_duplicates(apart, stream, assignments, memory)
                assignments, self.stepped[name] = found
            frame = split_frame(session, stream, assignments, self._unit.wanted(name))
            if len(self._unit.folds_over(name)) > 1:
                # Decoding costs more than keeping: several views share one pass over the log.
                frame = frame.persist()
                self._frames.append(frame)
            frame.createOrReplaceTempView("__input")

    def fold(self, fold: Fold) -> Outcome:
        """Step 5, for one view. ViewFailed, TooManyFailures."""
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
                    fold.name, self._planned.turn, explained.sentence,
                )  # fmt: skip
            return self._fold_in_slices(fold)
        self._sides[fold.stream.name] = outcome.summaries
        return outcome

    def _fold_in_slices(self, fold: Fold) -> Outcome:
        """Find the records that fail, slice by slice, in the driver's bounded memory."""
        settings = self._unit.settings
        outcome = Outcome()
        session = self._unit.session(self._spark, fold.name)
        for stream, range in self._planned.ranges:
            if stream != fold.stream.name:
                continue
            # Other views' threads may do the same, and a decoder serves one thread at a time.
            decoder = make_decoder(fold.stream, self._unit.wanted(stream))
            found = self.stepped.get(stream, Stepped(())).duplicates
            duplicates = found.get(range.partition.number, NO_OFFSETS)
            stamper = self._outset.stamper(fold.stream, range, decoder, duplicates=duplicates)
            for batch in gather(self._log.read(range)):
                rows = pa.Table.from_batches([stamper.stamp(batch, stamper.decode(batch))])
                max_jobs = settings.probe_jobs if self._unit.shared else None
                outcome.include(fold_rows(fold, session, rows, max_jobs=max_jobs))
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
