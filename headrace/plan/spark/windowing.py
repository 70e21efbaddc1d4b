"""Put every record of a fold's input into its windows: the columns that Spark adds to it.

They are added level by level, each over the ones before it, after those of expanding.py where a
record is made into several rows:
- `__skip`: WHERE leaves the record out (or it is a side row, which no expression may see);
- `__unit`, `__cut`, `__now`: the units (see time/windows.py) of the record's time, of its watermark
  less the allowed lateness, and of its watermark, where they have to be worked out first;
- `window`, `__late`, `__corrected`: where windows do not overlap, the record's window, whether it
  is late for it, and 1 if it is folded into one that had ended by its watermark (the window of a
  session is `[time, time + gap)`, the one that it would be alone);
- `__pane`, `__first`, `__open`, `__last`: where they do: the record's pane, its first window, the
  first that is open to it, its last one. It is `__late` when none is open.
A record whose windows would reach outside of the years 1 to 9999, or whose derived time is null,
fails here, and is dead for the view.
"""

from headrace.model.definitions import Stream, View
from headrace.plan.shape import Shape
from headrace.plan.spark.cutting import unit_of
from headrace.plan.spark.expanding import Expand, Level, expansion_levels
from headrace.plan.spark.names import event_time_of
from headrace.plan.spark.placing import placing_of
from headrace.time.placement import placement_of
from headrace.time.windows import Cut

__all__ = ["Levels", "judged", "levels_of"]

Levels = tuple[Level, ...]

_NULL_TIME = "the time of its window is null"
_NO_TIME = "its windows would reach outside of the years 1 to 9999"


def judged(levels: Levels) -> str:
    """Return every record of the input with the columns of all levels."""
    # One level of SELECT more or less is some 2 ms of every turn.
    relation = "__input"
    for level in levels:
        added = (
            [level.text] if isinstance(level, Expand) else [f"{t} AS {name}" for name, t in level]
        )
        columns = ", ".join(["*", *added])
        relation = f"(SELECT {columns} FROM {relation})"
    return relation


def levels_of(view: View, shape: Shape, stream: Stream) -> Levels:
    """Return the columns that the fold of a view adds to its input."""
    levels = tuple(tuple(level.items()) for level in _levels(view, shape, stream))
    return (*expansion_levels(shape, stream), *levels)


def _levels(view: View, shape: Shape, stream: Stream) -> tuple[dict[str, str], ...]:
    skip = _skip(shape)
    cut = placement_of(shape.window).cut
    if cut is None:
        return ({"__late": "false", "__skip": skip},)
    derived = shape.time
    time = event_time_of(stream) if derived is None else f"({derived})"
    closed = _closed_time(view)
    if cut.zone is None and derived is None:
        unit = unit_of(cut, time)
        return ({**_windows(view, shape, cut, unit, closed, "__watermark", skip), "__skip": skip},)
    # What a derived time makes of a skipped record is nobody's business.
    time = f"CASE WHEN NOT {skip} THEN {time} END"
    if cut.zone is None:
        first = {"__skip": skip, "__unit": unit_of(cut, time)}
        return (first, _windows(view, shape, cut, "__unit", closed, "__watermark", "__skip"))
    units = {
        "__unit": unit_of(cut, "__time"),
        "__cut": unit_of(cut, "__closed"),
        "__now": unit_of(cut, "__stamp"),
    }
    times = {
        "__skip": skip,
        "__time": time,
        "__closed": f"timestamp_micros({closed})",
        "__stamp": "timestamp_micros(__watermark)",
    }
    return (times, units, _windows(view, shape, cut, "__unit", "__cut", "__now", "__skip"))


def _skip(shape: Shape) -> str:
    # Side rows count as skipped, so that no expression of the user's ever sees one.
    where = shape.where
    if shape.expansions:
        return "(__out <> 0)"
    if where is None:
        return "__side IS NOT NULL"
    return f"(__side IS NOT NULL OR NOT coalesce({where}, false))"


def _closed_time(view: View) -> str:
    """Return the time up to which windows are closed to a record; NULL: none is."""
    if view.lateness_us is None:
        return "CAST(NULL AS BIGINT)"
    return "__watermark" if view.lateness_us == 0 else f"(__watermark - {view.lateness_us})"


def _windows(
    view: View, shape: Shape, cut: Cut, unit: str, closed: str, now: str, skip: str
) -> dict[str, str]:
    """Return the columns of the last level, from the names or texts of the units."""
    placing = placing_of(placement_of(shape.window))
    assert placing is not None
    judged = placing.judge(unit, closed, now)
    lowest, end_unit = cut.times
    reason = f"'{_NO_TIME}'"
    if shape.time is not None:
        reason = f"CASE WHEN {unit} IS NULL THEN '{_NULL_TIME}' ELSE '{_NO_TIME}' END"
    columns = dict(judged.columns)
    columns["__late"] = (
        f"CASE WHEN {unit} BETWEEN {lowest} AND {end_unit - 1} THEN {judged.late} "
        f"WHEN {skip} THEN false ELSE raise_error({reason}) END"
    )
    if view.lateness_us != 0:  # else what is closed is late
        columns["__corrected"] = judged.corrected
    return columns
