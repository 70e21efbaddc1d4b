"""Run the fold of one view in Spark, without the records that its expressions fail on.

Spark runs with ANSI on, so one record can fail a job. Then one job finds all that do (probing.py).
Each is folded by itself, which gives Spark's error as the reason why it is dead for the view, and
the rest is folded together. Should the probe find none, the rows are halved until one stands alone.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.engine.late_records import late_reasons
from headrace.engine.probing import failing_rows
from headrace.engine.stamping import Dead, Summary
from headrace.errors import ViewFailed
from headrace.plan.fold import Fold
from headrace.plan.tables import Table

__all__ = ["Outcome", "TooManyFailures", "fold_frame", "fold_rows"]

# SQLSTATE classes of errors that a value causes: data exceptions, and raise_error().
_RECORD_FAULTS = ("22", "P0001")
_COUNTS = (
    "records", "folded", "corrected", "skipped", "late_records", "late_throughout", "late_pairs",
    "dead_count",
)  # fmt: skip


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
    late: dict[int, list[Dead]] = field(default_factory=dict)
    dead: dict[int, list[Dead]] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    records: int = 0
    folded: int = 0
    corrected: int = 0
    skipped: int = 0
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
        if not fold.view.query.grouped:
            self._add_delta(result, result.num_rows, result.num_rows)
            return
        skipped = result.filter(result["__skip"])
        self.skipped += _sum(skipped["_events"])
        result = result.filter(pc.invert(result["__skip"]))
        if fold.cut is not None:
            result = self._without_late(fold, result)
            if "__corrected" in result.column_names:
                self.corrected += _sum(result["__corrected"])
        events = _sum(result["_events"])
        self._add_delta(result, events, _pairs(fold, result) or events)

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
        if fold.cut is None or not fold.cut.overlaps:
            self.late_throughout += _sum(events)
            self.late_pairs += _sum(events)
            return in_time
        everywhere = pc.equal(found["late_windows"], found["windows"])
        self.late_throughout += _sum(events.filter(everywhere))
        self.late_pairs += _sum(pc.multiply(events, found["late_windows"]))
        return pa.concat_tables([in_time, late.filter(pc.invert(everywhere))])

    def _keep_late(self, fold: Fold, late: pa.Table) -> None:
        assert fold.cut is not None
        late = late.sort_by([("partition", "ascending"), ("offset", "ascending")])
        word = "session" if fold.cut.session else "window"
        reasons = late_reasons(late, overlap=fold.cut.overlaps, word=word)
        for partition in pc.unique(late["partition"]).to_pylist():
            here = pc.equal(late["partition"], partition)
            offsets = late["offset"].filter(here).combine_chunks()
            found = Dead(offsets, reasons.filter(here).combine_chunks())
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
        found = Dead(offsets, pa.array([reason], pa.string()))
        self.dead.setdefault(row["__partition"][0].as_py(), []).append(found)


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0


def _pairs(fold: Fold, delta: pa.Table) -> int:
    """Return how many pairs of record and window the rows of panes stand for."""
    if fold.cut is None or not fold.cut.overlaps:
        return 0
    panes, firsts, events = (delta[name].to_numpy() for name in ("pane", "first_window", "_events"))
    windows = fold.cut.last_windows(panes) - firsts + 1
    return int((events * windows).sum())


def fold_frame(fold: Fold, session: SparkSession) -> pa.Table:
    """Run a fold over the relation `__input` of a session and return its result.

    What Spark raises passes through: `record_fault` tells whose fault it is.
    """
    return session.sql(fold.query).toArrow()


def fold_rows(
    fold: Fold,
    session: SparkSession,
    rows: pa.Table,
    *,
    parts: int = 1,
    max_jobs: int | None = None,
) -> Outcome:
    """Fold rows that are in memory, as one task. ViewFailed, TooManyFailures."""
    outcome = Outcome()
    jobs = 0
    size = max(1, -(-rows.num_rows // parts))
    left = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
    while left:
        part = left.pop()
        jobs += 1
        if max_jobs is not None and jobs > max_jobs + parts:
            raise TooManyFailures
        try:
            session.createDataFrame(part).coalesce(1).createOrReplaceTempView("__input")
            outcome.add(fold, fold_frame(fold, session))
        except (PySparkException, Py4JJavaError) as error:
            reason = record_fault(fold, error)
            if part.num_rows == 1:
                outcome.add_dead(part, reason)
            else:
                failing = _probed(fold, session, part)
                jobs += 1
                if max_jobs is not None and jobs + failing.sum() > max_jobs + parts:
                    raise TooManyFailures from error
                left += _apart(part, failing)
    return outcome


def _probed(fold: Fold, session: SparkSession, rows: pa.Table) -> np.ndarray:
    try:
        return failing_rows(fold, session, rows)
    except (PySparkException, Py4JJavaError) as error:
        record_fault(fold, error)
        return np.zeros(rows.num_rows, dtype=bool)


def _apart(rows: pa.Table, failing: np.ndarray) -> list[pa.Table]:
    """Return the failing rows one by one, and the others, together if some were found."""
    if failing.any():
        alone = [rows.slice(int(number), 1) for number in np.flatnonzero(failing)]
        sound = rows.filter(pa.array(~failing))
        return [sound, *reversed(alone)] if sound.num_rows else alone[::-1]
    half = rows.num_rows // 2
    return [rows.slice(half), rows.slice(0, half)]


def record_fault(fold: Fold, error: Exception) -> str:
    """Return the reason when a record's value caused an error. ViewFailed: it is the view's."""
    state, message = None, str(error)
    if isinstance(error, PySparkException):
        state, message = error.getSqlState(), error.getMessage() or message
    first_line = message.strip().splitlines()[0] if message.strip() else type(error).__name__
    # Spark's advice to turn its checks off would break promise 2.
    first_line = re.sub(r" If necessary set \S+ to \S+ to bypass this error\.", "", first_line)
    first_line = first_line.removeprefix("[USER_RAISED_EXCEPTION] ")
    if state is not None and state.startswith(_RECORD_FAULTS):
        return first_line
    raise ViewFailed(
        f"view {fold.name}: its work fails, and not because of one record: {first_line}. The other "
        f"views go on. Mend the cause and run again: it goes on from where it stopped.",
        view=fold.name,
    ) from error
