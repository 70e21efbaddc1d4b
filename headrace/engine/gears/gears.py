"""Two gears, one meaning: how a turn brings its records to the folds.

- short (live, below some 50,000 records): the driver reads (short.py);
- long (catch-up, replay): Spark's tasks read (long.py).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.gears.folding import (
    Outcome,
    TooManyFailures,
)
from headrace.engine.gears.stamping import Summary, gather
from headrace.engine.gears.uniqueness import Memory, Stepped, remembered
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import Unit
from headrace.errors import ViewFailed
from headrace.ledger.entries import MAIN, PlannedTurn
from headrace.log.base import Log, Range
from headrace.model.definitions import Stream
from headrace.model.nodes import ARRIVAL
from headrace.operators.state import StateFolder
from headrace.plan.stages import Fold, Operator, Read, Step
from headrace.store.base import Store

__all__ = ["Folded", "Gear", "Work"]

#: What became of a fold: an outcome, or why there is none.
Folded = Outcome | ViewFailed | TooManyFailures


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

    def records_together(
        self, reads: Sequence[Read]
    ) -> dict[str, list[tuple[Range, list[pa.Table]]]]:
        """Return all records of a turn by stream and range, fetched together."""
        by_stream = {each.stream.name: self.ranges(each.stream.name) for each in reads}
        # Streams over one topic mostly read the same of it.
        wanted = list(dict.fromkeys(range for ranges in by_stream.values() for range in ranges))
        produced = any(each.stream.event_time == ARRIVAL for each in reads)
        found = dict(zip(wanted, self.log.read_many(wanted, produced=produced), strict=True))
        return {
            name: [(range, list(gather(found[range]))) for range in ranges]
            for name, ranges in by_stream.items()
        }

    @property
    def is_smallest(self) -> bool:
        """Whether no smaller turn could be taken: it has a record of each partition."""
        return self.planned.records <= len(self.planned.ranges)

    def session(self, fold: Fold) -> SparkSession:
        """Return the session of one fold: those of a view's branches run side by side."""
        return self.unit.session(self.spark, f"fold {fold.shape.branch} of {fold.name}")

    @property
    def max_jobs(self) -> int | None:
        """How many Spark jobs may go into finding a view's failing records; None: any number."""
        return self.unit.settings.probe_jobs if self.unit.shared else None

    def memory(self, step: Step) -> Memory:
        """Return what a step remembers."""
        return remembered(self.unit.manifests, step, self.state, self.outset.progress)

    def each(self, folds: Sequence[Fold], run: Callable[[Fold], Outcome]) -> list[Folded]:
        """Run folds side by side; one that fails takes no other along."""
        # Those of a replay one by one, or they would take every core together.
        run_all = self.pool.map if self.unit.name == MAIN else map
        return list(run_all(lambda fold: self.attempt(fold, run), folds))

    def attempt(self, fold: Fold, run: Callable[[Fold], Outcome]) -> Folded:
        """Run a fold, and return what became of it."""
        try:
            return run(fold)
        except (ViewFailed, TooManyFailures) as error:
            return error


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
