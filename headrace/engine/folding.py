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

from headrace.engine.probing import failing_rows
from headrace.engine.stamping import Dead, Summary
from headrace.errors import ViewFailed
from headrace.plan.fold import Fold

__all__ = ["Outcome", "TooManyFailures", "fold_frame", "fold_rows"]

# SQLSTATE classes of errors that a value causes: data exceptions, and raise_error().
_RECORD_FAULTS = ("22", "P0001")
_LATE_FIELDS = ("partition", "offset", "watermark")


class TooManyFailures(Exception):
    """So many records fail that finding them would hold up the other views of the turn."""


@dataclass
class Outcome:
    """What one view made of a turn's records; `late` and `dead` by partition.

    `skipped` is counted by Spark in a view with grouping; a view without one returns no row for
    what it skips, so there it is what is left of the records seen.
    """

    deltas: list[pa.Table] = field(default_factory=list)
    late: dict[int, list[Dead]] = field(default_factory=dict)
    dead: dict[int, list[Dead]] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    folded: int = 0
    skipped: int = 0
    late_count: int = 0
    dead_count: int = 0

    def add(self, fold: Fold, result: pa.Table) -> None:
        """Take one result of the fold's query apart: delta, late, side rows."""
        sides = result.filter(pc.is_valid(result["__side"]))
        self.summaries += [Summary.from_bytes(side.as_py()) for side in sides["__side"]]
        if sides.num_rows:
            result = result.filter(pc.is_null(result["__side"]))
        grouped = fold.view.query.grouped
        if grouped:
            skipped = result.filter(result["__skip"])
            self.skipped += pc.sum(skipped["_events"]).as_py() or 0
            result = result.filter(pc.invert(result["__skip"]))
        if fold.view.query.window is not None:
            late = result.filter(pc.is_valid(result["__late_record"]))
            if late.num_rows:
                result = result.filter(pc.is_null(result["__late_record"]))
                self._add_late(fold, late)
        if result.num_rows:
            self.deltas.append(result)
            self.folded += pc.sum(result["_events"]).as_py() if grouped else result.num_rows

    def _add_late(self, fold: Fold, late: pa.Table) -> None:
        window = fold.view.query.window
        assert window is not None
        fields = late["__late_record"].combine_chunks().flatten()
        late = pa.table([*fields, late["window_start"]], [*_LATE_FIELDS, "window_start"])
        late = late.sort_by([("partition", "ascending"), ("offset", "ascending")])
        start = late["window_start"]
        size = pa.scalar(window.size_us, pa.duration("us"))
        reasons = pc.binary_join_element_wise(
            "late: window [",
            _text(start),
            ", ",
            _text(pc.add(start, size)),
            ") was closed; the watermark was ",
            _text(late["watermark"].cast(pa.timestamp("us", "UTC"))),
            "",
        )
        self.late_count += late.num_rows
        for partition in pc.unique(late["partition"]).to_pylist():
            here = pc.equal(late["partition"], partition)
            offsets = late["offset"].filter(here).combine_chunks()
            found = Dead(offsets, reasons.filter(here).combine_chunks())
            self.late.setdefault(partition, []).append(found)

    def include(self, other: "Outcome") -> None:
        """Take in what was folded of a later part of the same ranges."""
        self.deltas += other.deltas
        for mine, theirs in ((self.late, other.late), (self.dead, other.dead)):
            for partition, found in theirs.items():
                mine.setdefault(partition, []).extend(found)
        self.folded += other.folded
        self.skipped += other.skipped
        self.late_count += other.late_count
        self.dead_count += other.dead_count

    def add_dead(self, row: pa.Table, reason: str) -> None:
        """Enter one record that an expression fails on."""
        self.dead_count += 1
        offsets = row["__offset"].combine_chunks()
        found = Dead(offsets, pa.array([reason], pa.string()))
        self.dead.setdefault(row["__partition"][0].as_py(), []).append(found)


def _text(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")


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
    if state is not None and state.startswith(_RECORD_FAULTS):
        return first_line
    raise ViewFailed(
        f"view {fold.name}: its work fails, and not because of one record: {first_line}. The other "
        f"views go on. Mend the cause and run again: it goes on from where it stopped.",
        view=fold.name,
    ) from error
