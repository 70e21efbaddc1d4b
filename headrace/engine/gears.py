"""Two gears, one meaning: how a turn brings its records to the folds.

- short (live, below some 50,000 records): the driver reads, decodes and stamps the slice as Arrow
  and hands it to Spark as one task per view: no shuffle, no Python worker.
- long (catch-up, replay): Spark tasks read, decode and stamp their splits of the log, and Spark
  aggregates on all cores.
"""

from typing import Protocol

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.folding import Outcome, fold_frame, fold_rows, record_fault
from headrace.engine.outset import Outset
from headrace.engine.splits import assign, split_frame
from headrace.engine.stamping import Stamper, Summary, gather, input_schema
from headrace.engine.unit import Unit, make_decoder
from headrace.ledger.entries import PlannedTurn
from headrace.log.base import RECORDS, Log
from headrace.plan.fold import Fold
from headrace.schema.json import Decoded
from headrace.store.base import Store

__all__ = ["Gear", "LongGear", "ShortGear"]


class Gear(Protocol):
    """How the steps 2, 3 and 5 of a turn are carried out; `fold` is called from several threads."""

    name: str

    def read(self) -> None:
        """Step 2: read and decode."""
        ...

    def stamp(self) -> None:
        """Step 3: stamp."""
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
        self, unit: Unit, spark: SparkSession, log: Log, planned: PlannedTurn, outset: Outset
    ) -> None:
        self._unit = unit
        self._spark = spark
        self._log = log
        self._planned = planned
        self._outset = outset
        self._decoded: list[tuple[Stamper, list[tuple[pa.Table, Decoded]]]] = []
        self._rows: dict[str, pa.Table] = {}
        self._summaries: list[Summary] = []

    def read(self) -> None:
        """Step 2: read and decode."""
        for name, source in self._unit.sources.items():
            ranges = [entry.range for entry in self._planned.ranges if entry.stream == name]
            decoder = source.decoder(self._unit.wanted(name))
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
            parts = [stamper.stamp(*batch) for batch in batches]
            summary = stamper.summary()
            stamped[summary.stream] += parts
            self._summaries.append(summary)
        self._decoded.clear()
        for name, parts in stamped.items():
            decoder = self._unit.sources[name].decoder(self._unit.wanted(name))
            schema = input_schema(decoder)
            self._rows[name] = pa.Table.from_batches(parts, schema).combine_chunks()

    def fold(self, fold: Fold) -> Outcome:
        """Step 5, for one view. ViewFailed, TooManyFailures."""
        settings = self._unit.settings
        return fold_rows(
            fold,
            self._unit.session(self._spark, fold.name),
            self._rows[fold.stream.name],
            parts=settings.split_folds,
            max_jobs=settings.probe_jobs if self._unit.shared else None,
        )

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
    ) -> None:
        self._unit = unit
        self._spark = spark
        self._log = log
        self._store = store
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
            session = self._unit.session(self._spark, f"stream {name}")
            assignments = assign(
                session,
                self._log,
                source.stream,
                ranges,
                self._outset,
                self._store.seeds(name, source.version),
                split_records=self._unit.settings.split_records,
            )
            frame = split_frame(session, source.stream, assignments, self._unit.wanted(name))
            if len(self._unit.folds_over(name)) > 1:
                # Decoding costs more than keeping: several views share one pass over the log.
                frame = frame.persist()
                self._frames.append(frame)
            frame.createOrReplaceTempView("__input")
            self._sessions[name] = session

    def stamp(self) -> None:
        """Step 3: nothing to do here; tasks stamp what they decode."""

    def fold(self, fold: Fold) -> Outcome:
        """Step 5, for one view. ViewFailed, TooManyFailures."""
        outcome = Outcome()
        session = self._sessions.get(fold.stream.name)
        if session is None:
            return outcome
        try:
            outcome.add(fold, fold_frame(fold, session))
        except (PySparkException, Py4JJavaError) as error:
            record_fault(fold, error)
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
            stamper = self._outset.stamper(fold.stream, range, decoder)
            for batch in gather(self._log.read(range)):
                rows = pa.Table.from_batches([stamper.stamp(batch, stamper.decode(batch))])
                max_jobs = settings.probe_jobs if self._unit.shared else None
                outcome.include(fold_rows(fold, session, rows, max_jobs=max_jobs))
        return outcome

    def summaries(self) -> list[Summary]:
        """Return what reading found, by range; a stream that no view folded is read for it."""
        found: list[Summary] = []
        for name, session in self._sessions.items():
            if name not in self._sides:
                rows = session.sql("SELECT __side FROM __input WHERE __side IS NOT NULL").collect()
                self._sides[name] = [Summary.from_bytes(bytes(row[0])) for row in rows]
            found += sorted(self._sides[name], key=lambda summary: summary.range)
        return found

    def close(self) -> None:
        """Let go of the shared frames."""
        for frame in self._frames:
            frame.unpersist()
