"""One turn of the wheel: plain Spark batch work over an exact range of the log."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession

from headrace import faults
from headrace.engine.beside import Beside
from headrace.engine.gears.evaluating import evaluate_rows
from headrace.engine.gears.folding import Outcome, TooManyFailures
from headrace.engine.gears.gears import Folded, Gear, Work
from headrace.engine.gears.long import LongGear
from headrace.engine.gears.short import ShortGear
from headrace.engine.gears.stamping import Summary
from headrace.engine.turn.accounts import Accounts
from headrace.engine.turn.emitting import Emitting
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import Unit
from headrace.errors import HeadraceError, MergeFailed, ViewFailed
from headrace.ledger.entries import (
    HoldingState,
    PlannedTurn,
    SetAside,
    TurnReport,
)
from headrace.log.base import Log
from headrace.operators.state import StateFolder
from headrace.plan.stages import Fold
from headrace.sinks.publishing import Publisher
from headrace.store.base import Store

__all__ = ["Tools", "take_turn"]

# A unit whose views fail on more records in a turn stays apart: finding them takes a while.
FEW_FAILURES = 5

logger = logging.getLogger("headrace.turn")


@dataclass(frozen=True)
class Tools:
    """What a turn works with. Without a publisher nothing is written to the log."""

    spark: SparkSession
    log: Log
    store: Store
    pool: ThreadPoolExecutor
    emitting: Emitting
    state: StateFolder
    publisher: Publisher | None
    beside: Beside

    def publish(
        self, epoch: int, *, outbox: bool = True, written: bool = True, may_wait: bool = False
    ) -> None:
        """Publish what waits, to sinks where it is time to. Unreachable, ProducerFenced.

        With `may_wait` what sinks have may be noted later.
        """
        due = self.emitting.due()
        if self.publisher is None or not (outbox or written or due):
            return
        with self.emitting.telling(due):
            self.publisher.publish(
                epoch, outbox=outbox, sinks=due, written=written, may_wait=may_wait
            )

    def tidy(self, files: Collection[str]) -> None:
        """Remove those files of state that no manifest names any more."""
        with self.store.open() as snapshot:
            named = {run.file for runs in snapshot.manifests().values() for run in runs}
        self.state.remove(set(files) - named)

    @contextmanager
    def removing_unnamed(self, files: Collection[str]) -> Iterator[None]:
        """Remove files of state if the block fails; the next try writes others.

        The ledger is asked: a commit that failed may have been made all the same.
        """
        try:
            yield
        except Exception as error:
            try:
                self.tidy(files)
            except HeadraceError as another:
                error.add_note(f"and its files of state are left for the next start: {another}")
            raise


@dataclass
class Stopwatch:
    """Milliseconds per step."""

    milliseconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, step: str) -> None:
        """Note the time since the last lap."""
        now = time.perf_counter()
        self.milliseconds[step] = round((now - self._since) * 1000, 1)
        self._since = now


def take_turn(
    unit: Unit,
    tools: Tools,
    planned: PlannedTurn,
    outset: Outset,
    *,
    gear_name: str,
    note: Callable[[Unit, Sequence[Summary]], None],
) -> TurnReport:
    """Carry out one planned turn of a unit; return what it did.

    `note` is told what was read, once that is committed, be it published or not.

    1. **Plan**: the range of every partition is journalled; after a crash it runs again.
    2. **Read** and decode values to typed columns; what fails is dead, with the reason.
    3. **Stamp** each record with its watermark, in offset order within its partition.
    4. **Step** the keyed operators: duplicates are found, and new files of state written.
    5. **Fold**: each view splits off late records; Spark aggregates the rest into a small delta.
    6. **Stage** the deltas; nobody can see them yet.
    7. **Commit** deltas, changes of views that are followed, positions, clocks, state, counters,
       outbox and the rows of written streams in one transaction. Spark evaluates, of the merged
       rows that the turn touched, what the store cannot, and the values are part of it.
    8. **Publish** the outbox, changes to sinks that are due and the written rows to their topics,
       once whatever crashes: in a running engine beside the next turn (`engine/beside.py`), and
       the turn waits only if publishing is two turns behind.

    A view whose work fails is set aside at the position where the turn began, and the turn is
    committed without it. In a long turn tasks do steps 2 and 3 while Spark runs step 5.
    TurnTooLarge, from step 5: views make too much of the records; plan a smaller turn.
    """
    watch = Stopwatch()
    # 1. Plan
    tools.store.journal(planned)
    faults.reach("after_plan")
    watch.lap("plan")
    known = {run.file for runs in unit.manifests.values() for run in runs}
    pipeline = unit.pipeline
    work = Work(unit, tools.spark, tools.log, tools.store, planned, outset, tools.state, tools.pool)
    gear: Gear = LongGear(work) if gear_name == "long" else ShortGear(work)
    try:
        # 2. Read
        gear.read(pipeline.reads, pipeline.steps)
        faults.reach("after_read")
        watch.lap("read")
        # 3. Stamp
        gear.stamp()
        faults.reach("after_stamp")
        watch.lap("stamp")
        # 4. Step
        gear.step(pipeline.steps)
        faults.reach("after_step")
        watch.lap("step")
        # 5. Fold
        with tools.beside.lull.waiting():
            folded = gear.fold(pipeline.folds)
        folded = [
            ViewFailed(unit.unfit[fold.stream.name], view=fold.name)
            if fold.stream.name in unit.unfit
            else found
            for fold, found in zip(pipeline.folds, folded, strict=True)
        ]
        outcomes, asides = _sort_out(pipeline.folds, folded)
        summaries = gear.summaries()
        accounts = Accounts(
            unit,
            pipeline,
            planned,
            outset,
            gear.stepped,
            summaries,
            outcomes,
            asides,
        )
        unit.pace.note_deltas(
            planned.records,
            sum(map(held_bytes, outcomes.values())),
            smallest=work.is_smallest,
        )
        faults.reach("after_fold")
        watch.lap("fold")
    except Exception:
        tools.state.remove(_files(gear) - known)  # the turn may be tried again, with files anew
        raise
    finally:
        gear.close()
    with tools.removing_unnamed(known | _files(gear)):
        # 6. Stage
        for fold, outcome in list(outcomes.items()):
            try:
                outcome.deltas = [tools.store.stage(fold.table, delta) for delta in outcome.deltas]
                for table, rows in outcome.items.items():
                    outcome.items[table] = [tools.store.stage(table, delta) for delta in rows]
            except MergeFailed as error:
                accounts.set_aside(error.view, str(error))
        faults.reach("after_stage")
        watch.lap("stage")
        # 7. Commit
        while True:
            commit = accounts.commit(gear.name, watch.milliseconds)
            try:
                changed = tools.store.commit(commit, partial(evaluate_rows, tools.spark))
                break
            except MergeFailed as error:
                # The delta passed Spark and does not fit its table: that view alone is set aside.
                accounts.set_aside(error.view, str(error))
    unit.failing = sum(outcome.dead_count for outcome in outcomes.values()) > FEW_FAILURES
    # The markers first: a unit that follows this one must know those that act on what it reads.
    unit.time_offset = commit.time_offset
    unit.progress.update(commit.progress)
    unit.added.difference_update(commit.progress)
    unit.manifests.update(commit.manifests)
    if gear.stepped:
        tools.tidy(known | _files(gear))
    unit.turn = planned.turn
    tools.emitting.note_changed(changed)
    for aside in commit.set_aside:
        logger.warning("view %s is set aside: %s", aside.view, aside.reason)
        unit.leave(aside)
    note(unit, summaries)
    watch.lap("commit")
    # 8. Publish
    tools.beside.after_turn(
        outbox=bool(commit.outbox), written=any(each.rows for each in commit.written)
    )
    watch.lap("publish")
    return replace(commit.report, milliseconds=watch.milliseconds)


def held_bytes(outcome: Outcome) -> int:
    """Return how many bytes the driver holds of what a view made of a turn."""
    tables = [*outcome.deltas, *(rows for items in outcome.items.values() for rows in items)]
    sides = [found for each in (outcome.late, outcome.dead) for found in each.values()]
    sizes = [side.offsets.nbytes + side.reasons.nbytes for found in sides for side in found]
    return sum(int(size) for size in (*sizes, *(table.nbytes for table in tables)))


def _files(gear: Gear) -> set[str]:
    return {run.file for found in gear.stepped.values() for run in found.runs}


def _sort_out(
    folds: Sequence[Fold], folded: Sequence[Folded]
) -> tuple[dict[Fold, Outcome], list[SetAside]]:
    """Return the outcomes of folds, and the views that are set aside because theirs failed."""
    failed = {
        fold.name: (fold, found)
        for fold, found in zip(folds, folded, strict=True)
        if not isinstance(found, Outcome)
    }
    # A view goes with all of its branches.
    outcomes = {
        fold: found
        for fold, found in zip(folds, folded, strict=True)
        if isinstance(found, Outcome) and fold.name not in failed
    }
    asides: list[SetAside] = []
    for fold, found in failed.values():
        reason, state = str(found), HoldingState.FAILED
        if isinstance(found, TooManyFailures):
            state = HoldingState.BUILDING
            reason = (
                f"its expressions fail on so many records that finding them would hold up the "
                f"others, so it goes on by itself; {fold.name}.dead has the reasons. Guard the "
                f"expressions, for example with try_divide or try_cast."
            )
        asides.append(SetAside(fold.name, fold.version, reason, state))
    return outcomes, asides
