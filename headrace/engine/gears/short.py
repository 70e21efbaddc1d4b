"""The short gear, for live turns: the driver reads, decodes and stamps the records as Arrow.

It hands them to Spark in a file per stream, which all views read in one job per core, with plans
that are made once (prepared.py). A view whose plan cannot be prepared has a job of its own.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from headrace.engine.gears.folding import (
    Outcome,
    RunFold,
    cut,
    fold_rows,
)
from headrace.engine.gears.gears import Folded, Work
from headrace.engine.gears.offset_sets import NO_OFFSETS
from headrace.engine.gears.prepared import Prepared, can_prepare, collect, prepare_fold
from headrace.engine.gears.rows_file import RowsFile, lend_file
from headrace.engine.gears.stamping import Clocks, Stamper, Summary, input_schema
from headrace.engine.gears.uniqueness import Stepped, step_rows
from headrace.engine.spark.errors import SPARK_ERRORS
from headrace.engine.tables.topic_facts import TopicFacts
from headrace.log.base import RECORDS
from headrace.plan.stages import Fold, Operator, Read, Step
from headrace.schema.codec import Codec, Decoded

__all__ = ["ShortGear"]


class ShortGear:
    """The driver reads."""

    name = "short"

    def __init__(self, work: Work) -> None:
        self.stepped: dict[Operator, Stepped] = {}
        self._work = work
        self._clocks: dict[str, list[Clocks]] = {}
        self._decoders: dict[str, Codec] = {}
        self._decoded: list[tuple[Stamper, list[tuple[pa.Table, Decoded]]]] = []
        self._rows: dict[str, pa.Table] = {}
        self._summaries: list[Summary] = []

    def read(self, reads: Sequence[Read], steps: Sequence[Step]) -> None:
        """Step 2: read and decode, also the columns that steps go by."""
        work = self._work
        together = work.records_together(reads)
        for each in reads:
            name = each.stream.name
            by = {step.by for step in steps if step.operator.name == name}
            decoder = work.unit.streams[name].decoder(each.columns | by, work.spark)
            self._decoders[name] = decoder
            read = together[name]
            batches = [batch for _, found in read for batch in found]
            # One call for all partitions: each costs some milliseconds, whatever its size. There
            # may be none: offsets that a log leaves out are read as well.
            read_of = [batch.select(decoder.reads) for batch in (RECORDS.empty_table(), *batches)]
            decoded = decoder.decode(pa.concat_tables(read_of))
            start, facts = 0, TopicFacts.of(work.log, each.stream)
            for range, found in read:
                stamper = work.outset.stamper(each.stream, range, decoder, facts=facts)
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
        found: dict[Fold, Folded] = {}
        some = {name for name, rows in self._rows.items() if rows.num_rows}
        read = [fold for fold in folds if fold.stream.name in some]
        with ExitStack() as held:
            files: dict[str, RowsFile] = {}
            if can_prepare(self._work.spark):
                files = {name: held.enter_context(lend_file(name)) for name in some}
            plans = {fold: plan for fold in read if (plan := self._prepare(fold, files))}
            found |= self._fold_together(plans, files)
            apart = [fold for fold in plans if fold not in found]
            # One after the other: they read the same files.
            for fold in apart:
                run = partial(_run_over, plans[fold], files[fold.stream.name])
                found[fold] = self._work.attempt(fold, partial(self._fold_apart, run=run))
        rest = [fold for fold in read if fold not in found]
        found |= zip(rest, self._work.each(rest, self._fold_apart), strict=True)
        return [found.get(fold, Outcome()) for fold in folds]

    def _prepare(self, fold: Fold, files: Mapping[str, RowsFile]) -> Prepared | None:
        if fold.stream.name not in files:
            return None
        try:
            prepared = prepare_fold(self._work.spark, fold, files[fold.stream.name])
        except SPARK_ERRORS:
            return None  # made anew for the rows, the plan fails again, and that is the view's end
        return prepared if prepared.repeatable else None

    def _fold_together(
        self, plans: Mapping[Fold, Prepared], files: Mapping[str, RowsFile]
    ) -> dict[Fold, Outcome]:
        """Return the outcomes of folds whose plans run; the others are to be folded apart."""
        unit = self._work.unit
        outcomes = {fold: Outcome() for fold in plans if fold not in unit.apart}
        parts = {name: list(cut(self._rows[name], unit.settings.split_folds)) for name in files}
        for number in range(unit.settings.split_folds):
            for name, file in files.items():
                file.write(parts[name][number])
            folds = list(outcomes)
            results = collect([plans[fold] for fold in folds])
            for fold, result in zip(folds, results, strict=True):
                if isinstance(result, pa.Table):
                    outcomes[fold].add(fold, result)
                else:
                    del outcomes[fold]
        return outcomes

    def _fold_apart(self, fold: Fold, run: RunFold | None = None) -> Outcome:
        """Fold the rows of one view, without those that its expressions fail on."""
        work = self._work
        outcome = fold_rows(
            fold,
            work.session(fold),
            self._rows[fold.stream.name],
            run=run,
            parts=work.unit.settings.split_folds,
            max_jobs=work.max_jobs,
        )
        # A view on which records fail in every turn would fail the job of the others each time.
        (work.unit.apart.add if outcome.dead_count else work.unit.apart.discard)(fold)
        return outcome

    def summaries(self) -> list[Summary]:
        """Return what reading found, by range."""
        return self._summaries

    def close(self) -> None:
        """Nothing is held in Spark."""


def _run_over(plan: Prepared, file: RowsFile, rows: pa.Table) -> pa.Table:
    file.write(rows)
    return plan.run()
