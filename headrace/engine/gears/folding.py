"""Run the fold of one view in Spark, without the records that its expressions fail on.

Spark runs with ANSI on, so one record can fail a job. Then one job marks all that do (probing.py).
Each is folded by itself, which gives Spark's error as the reason why it is dead for the view, and
the rest is folded together. Should the probe mark none, the rows are halved until one stands alone.

Promises:
- A record is dead when its fold fails by itself and one of the view's expressions fails on it,
  whatever Spark calls the error. What fails for another reason fails the view: no record is dead
  because memory, disk, network or a worker failed.
- A mark is a hint: a record that folds by itself is folded. (Spark's functions that build a map
  keep the keys of one that they failed on, and then find the same keys twice in the next ones.) So
  after a mark that does not hold, the others marked are folded together first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headrace.engine.gears.frames import make_frame
from headrace.engine.gears.late_records import late_reasons
from headrace.engine.gears.probing import failing_rows, fails_alone
from headrace.engine.gears.stamping import SideRecords, Summary
from headrace.engine.spark.errors import SPARK_ERRORS, SparkError, explain
from headrace.errors import ProbeMissing, ViewFailed
from headrace.plan.spark.expanding import EMPTY, ENDED, LEFT_OUT, SKIPPED
from headrace.plan.stages import Fold
from headrace.plan.tables import Table

__all__ = ["Outcome", "RunFold", "TooManyFailures", "cut", "fold_frame", "fold_rows", "view_failed"]

_COUNTS = (
    "records", "folded", "corrected", "skipped", "late_records", "late_throughout", "late_pairs",
    "dead_count", "left_out", "empty", "expanded", "ended",
)  # fmt: skip
_LEFT_OUT = {LEFT_OUT: "left_out", EMPTY: "empty", ENDED: "ended", SKIPPED: "skipped"}

#: Folds rows, and returns the result of the fold's query.
RunFold = Callable[[pa.Table], pa.Table]


class TooManyFailures(Exception):
    """So many records fail that finding them would hold up the other views of the turn."""


@dataclass
class Outcome:
    """What one view made of a turn's records; `late` and `dead` by partition.

    `records` counts those that were folded into a window at least; `folded`, `corrected` and
    `late_pairs` count pairs of record and window. `skipped` is counted by Spark in a view with
    grouping; a view without one returns no row for what it skips, so there it is what is left of
    the records seen.
    """

    deltas: list[pa.Table] = field(default_factory=list)
    items: dict[Table, list[pa.Table]] = field(default_factory=dict)
    late: dict[int, list[SideRecords]] = field(default_factory=dict)
    dead: dict[int, list[SideRecords]] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    records: int = 0
    folded: int = 0
    corrected: int = 0
    skipped: int = 0
    left_out: int = 0  # records, before their first expansion
    empty: int = 0  # records that it made no row of
    expanded: int = 0  # records that it made rows of
    ended: int = 0  # rows of an expansion that the next one made none of
    late_records: int = 0  # late for a window at least
    late_throughout: int = 0  # late for all of their windows
    late_pairs: int = 0
    dead_count: int = 0

    def add(self, fold: Fold, result: pa.Table) -> None:
        """Take one result of the fold's query apart: items, delta, late, side rows."""
        if fold.table.children:
            result = self._without_items(fold, result)
        sides = result.filter(pc.is_valid(result["__side"]))
        self.summaries += [Summary.from_bytes(side.as_py()) for side in sides["__side"]]
        if sides.num_rows:
            result = result.filter(pc.is_null(result["__side"]))
        if fold.shape.expansions:
            result = self._without_left_out(fold, result)
        if not fold.shape.grouped:
            self._add_delta(result, result.num_rows, result.num_rows)
            return
        if not fold.shape.expansions:
            skipped = result.filter(result["__skip"])
            self.skipped += _sum(skipped["_events"])
            result = result.filter(pc.invert(result["__skip"]))
        if fold.placement.cut is not None:
            result = self._without_late(fold, result)
            if "__corrected" in result.column_names:
                self.corrected += _sum(result["__corrected"])
        self._add_delta(result, _sum(result["_events"]), fold.placement.count_pairs(result))

    def _without_left_out(self, fold: Fold, result: pa.Table) -> pa.Table:
        """Count the rows that are left out, and records without rows; return the others."""
        for code, counter in _LEFT_OUT.items():
            rows = result.filter(pc.equal(result["__out"], code))
            count = _sum(rows["_events"]) if fold.shape.grouped else rows.num_rows
            setattr(self, counter, getattr(self, counter) + count)
        made = result.filter(pc.invert(pc.is_in(result["__out"], pa.array([LEFT_OUT, EMPTY]))))
        self.expanded += _sum(made["__firsts"])
        return result.filter(pc.equal(result["__out"], 0))

    def _without_items(self, fold: Fold, result: pa.Table) -> pa.Table:
        """Enter the rows of items; return the view's own."""
        for number, table in enumerate(fold.table.children, start=1):
            rows = result.filter(pc.equal(result["__set"], number))
            # A record that is not folded, and one that has no item, are in a row without one.
            rows = rows.filter(pc.is_valid(rows[table.keys[-1].name]))
            if rows.num_rows:
                self.items.setdefault(table, []).append(rows)
        return result.filter(pc.equal(result["__set"], 0))

    def _add_delta(self, delta: pa.Table, records: int, pairs: int) -> None:
        if delta.num_rows:
            self.deltas.append(delta)
            self.records += records
            self.folded += pairs

    def _without_late(self, fold: Fold, result: pa.Table) -> pa.Table:
        """Enter the late records; return the rows of the delta, also those late for a part."""
        late = result.filter(pc.is_valid(result["__late_record"]))
        if not late.num_rows:
            return result
        record = late["__late_record"].combine_chunks()
        found = pa.table(record.flatten(), [each.name for each in record.type])
        if fold.view.late != "drop":
            self._keep_late(fold, found)
        in_time = result.filter(pc.is_null(result["__late_record"]))
        events = late["_events"]
        self.late_records += _sum(events)
        everywhere, pairs = fold.placement.late_pairs(found, events)
        self.late_throughout += _sum(events.filter(everywhere))
        self.late_pairs += _sum(pairs)
        return pa.concat_tables([in_time, late.filter(pc.invert(everywhere))])

    def _keep_late(self, fold: Fold, late: pa.Table) -> None:
        late = late.sort_by([("partition", "ascending"), ("offset", "ascending")])
        placement = fold.placement
        reasons = late_reasons(late, overlap=placement.overlaps, word=placement.window_word)
        for partition in pc.unique(late["partition"]).to_pylist():
            here = pc.equal(late["partition"], partition)
            offsets = late["offset"].filter(here).combine_chunks()
            found = SideRecords(offsets, reasons.filter(here).combine_chunks())
            self.late.setdefault(partition, []).append(found)

    def include(self, other: "Outcome") -> None:
        """Take in what was folded of a later part of the same ranges."""
        self.deltas += other.deltas
        for table, rows in other.items.items():
            self.items.setdefault(table, []).extend(rows)
        for mine, theirs in ((self.late, other.late), (self.dead, other.dead)):
            for partition, found in theirs.items():
                mine.setdefault(partition, []).extend(found)
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_dead(self, row: pa.Table, reason: str) -> None:
        """Enter one record that an expression fails on."""
        self.dead_count += 1
        offsets = row["__offset"].combine_chunks()
        found = SideRecords(offsets, pa.array([reason], pa.string()))
        self.dead.setdefault(row["__partition"][0].as_py(), []).append(found)


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0


def fold_frame(fold: Fold, session: SparkSession) -> pa.Table:
    """Run a fold over the relation `__input` of a session and return its result.

    ViewFailed: Spark does not take the query. What Spark raises as it runs it passes through.
    """
    with _without_records(fold):
        query = session.sql(fold.query)
    return query.toArrow()


def fold_rows(
    fold: Fold,
    session: SparkSession,
    rows: pa.Table,
    *,
    run: RunFold | None = None,
    parts: int = 1,
    max_jobs: int | None = None,
) -> Outcome:
    """Fold rows that are in memory, as one task. ViewFailed, TooManyFailures.

    `run` folds rows with a plan that is there already; without it Spark makes one for them.
    """
    outcome = Outcome()
    run = run or partial(_fold_part, fold, session)
    jobs = 0
    bound = None if max_jobs is None else max_jobs + parts
    left = [_Part(part) for part in cut(rows, parts) if part.num_rows]
    while left:
        part = left.pop()
        tried, later = part.next_to_try()
        jobs += 1
        if bound is not None and jobs > bound:
            raise TooManyFailures
        try:
            outcome.add(fold, run(tried))
            held = None
        except SPARK_ERRORS as error:
            held = 0 if part.held is None else part.held + 1
            explained = explain(error)
            jobs += tried.num_rows > 1 or not explained.of_value  # a probe
            if tried.num_rows > 1:
                left += _apart(fold, session, tried, error)
            elif explained.of_value or _fails(fold, session, tried):
                outcome.add_dead(tried, explained.sentence)
            else:
                raise view_failed(fold, error) from error
        if later.num_rows:
            # The first mark that holds may have made the others; two in a row are believed.
            believed = later.num_rows if held is not None and held > 1 else 0
            if bound is not None and jobs + believed > bound:
                raise TooManyFailures
            left.append(_Part(later, held))
    return outcome


def cut(rows: pa.Table, parts: int) -> Iterator[pa.Table]:
    """Yield rows in so many parts of about the same size, the last ones perhaps without rows."""
    size = max(1, -(-rows.num_rows // parts))
    for number in range(parts):
        yield rows.slice(number * size, size)


class _Part(NamedTuple):
    """Rows to fold together; or, where a probe has marked them, one by one while marks hold."""

    rows: pa.Table
    held: int | None = None  # of marked rows: how many marks before them held, one after the other

    def next_to_try(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows to fold now, and those to fold later."""
        now = self.rows.num_rows if self.held is None else 1
        return self.rows.slice(0, now), self.rows.slice(now)


def _fold_part(fold: Fold, session: SparkSession, rows: pa.Table) -> pa.Table:
    with _without_records(fold):
        make_frame(session, rows).createOrReplaceTempView("__input")
    return fold_frame(fold, session)


def _apart(fold: Fold, session: SparkSession, rows: pa.Table, error: SparkError) -> list[_Part]:
    """Return rows whose fold fails in the parts to try next. ViewFailed: no expression fails."""
    try:
        failing = failing_rows(fold, session, rows)
    except (ProbeMissing, *SPARK_ERRORS):
        # Spark may fail on a record in another way because of one that it failed on before.
        failing = np.zeros(rows.num_rows, dtype=bool)
    else:
        if not failing.any() and not explain(error).of_value:
            raise view_failed(fold, error) from error
    if failing.any():
        sound = rows.filter(pa.array(~failing))
        parts = [_Part(sound), _Part(rows.filter(pa.array(failing)), held=0)]
        return [part for part in parts if part.rows.num_rows]
    half = rows.num_rows // 2
    return [_Part(rows.slice(half)), _Part(rows.slice(0, half))]


def _fails(fold: Fold, session: SparkSession, row: pa.Table) -> bool:
    """Return whether an expression fails on a record, asked of the expressions alone. ViewFailed.

    Memory, disk, network, a lost worker: no record is dead because of them.
    """
    with _without_records(fold):
        return fails_alone(fold, session, row)


@contextmanager
def _without_records(fold: Fold) -> Iterator[None]:
    """Do what fails for no record's sake. ViewFailed."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise view_failed(fold, error) from error


def view_failed(fold: Fold, error: SparkError) -> ViewFailed:
    """Return the end of a view's work for now."""
    return ViewFailed(
        f"view {fold.name}: its work fails, and not because of one record: "
        f"{explain(error).sentence}. The other views go on. Mend the cause and run again: it goes "
        f"on from where it stopped.",
        view=fold.name,
    )
