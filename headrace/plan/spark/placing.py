"""Where records go in Spark: the text of every `Placement` in a fold's query.

One class for each placement; no other file of this room asks which kind of window a view has. The
names of columns that stamping and windowing.py add begin with two underscores.
"""

from functools import singledispatch
from typing import NamedTuple, Protocol

from headrace.plan.spark.cutting import (
    edge_time,
    first_window,
    floor,
    last_window,
    pane_of,
    tumbling_start,
    window_end,
    window_start,
)
from headrace.time.placement import InPanes, InSession, InWindow, Placement
from headrace.time.windows import Cut

__all__ = ["Judged", "LateRecord", "Placing", "placing_of"]


class Judged(NamedTuple):
    """The columns that say which windows a record is in, and tests over the same units.

    `late`: it is late for all of them; `corrected`: for how many of those that it is folded into
    its watermark had passed the end.
    """

    columns: dict[str, str]
    late: str
    corrected: str


class LateRecord(NamedTuple):
    """What is told of a record that is late for a window at least: what counts, and what shows."""

    test: str
    counted: dict[str, str]
    edges: dict[str, str]


class Placing(Protocol):
    """What a placement in time means to Spark."""

    def judge(self, unit: str, closed: str, now: str) -> Judged:
        """Put a record at `unit` into its windows.

        `closed` is the unit up to which windows are closed to it, `now` the one of its watermark.
        """
        ...

    def late_record(self) -> LateRecord:
        """Say what is told of late records."""
        ...

    def placed(self) -> dict[str, str]:
        """Return the columns that the rows of a delta are grouped by."""
        ...

    def spans(self) -> dict[str, str]:
        """Return further columns of a delta, as aggregates over the window of each record."""
        ...


class _Windows:
    def __init__(self, placement: InWindow | InSession) -> None:
        self._cut: Cut = placement.window

    def judge(self, unit: str, closed: str, now: str) -> Judged:
        cut, start = self._cut, self._start(unit)
        end = f"({start} + {cut.size}L)"
        last_instant = f"timestamp_micros(unix_micros({edge_time(cut, end)}) - 1)"
        if cut.zone is None:
            last_instant = edge_time(cut, f"({end} - 1)")
        window = (
            f"named_struct('start', {edge_time(cut, start)}, 'end', {edge_time(cut, end)}, "
            f"'time', {last_instant})"
        )
        late = f"coalesce({end} <= {closed}, false)"
        corrected = f"CAST(coalesce({end} <= {now}, false) AS BIGINT)"
        return Judged({"window": window}, late, corrected)

    def late_record(self) -> LateRecord:
        edges = {"first_start": "window.start", "first_end": "window.end"}
        return LateRecord("__late AND NOT __skip", {"partition": "__partition"}, edges)

    def placed(self) -> dict[str, str]:
        if self._cut.zone is None:
            return {"window_start": "window.start"}
        return {"window_start": "window.start", "window_end": "window.end"}

    def spans(self) -> dict[str, str]:
        return {}

    def _start(self, unit: str) -> str:
        return tumbling_start(self._cut, unit)


class _Sessions(_Windows):
    """The window of a record is the session that it would be alone; it is folded by pieces."""

    def placed(self) -> dict[str, str]:
        return {"piece": floor("unix_micros(window.start)", self._cut.size)}

    def spans(self) -> dict[str, str]:
        return {"first_time": "min(__time)", "last_time": "max(__time)"}

    def _start(self, unit: str) -> str:
        return unit


class _Panes:
    def __init__(self, placement: InPanes) -> None:
        self._cut = placement.window

    def judge(self, unit: str, closed: str, now: str) -> Judged:
        cut = self._cut
        last = last_window(cut, unit)
        opened = first_window(cut, f"greatest({unit}, {closed})")
        columns = {
            "__pane": pane_of(cut, unit),
            "__first": first_window(cut, unit),
            "__open": opened,
            "__last": last,
        }
        corrected = first_window(cut, f"greatest({unit}, {now})")
        corrected = f"(least({corrected}, {last} + 1) - {opened})"
        return Judged(columns, f"{opened} > {last}", corrected)

    def late_record(self) -> LateRecord:
        counted = {
            "late_windows": "(least(__open, __last + 1) - __first)",
            "windows": "(__last + 1 - __first)",
        }
        cut, first, last = self._cut, "__first", "(least(__open, __last + 1) - 1)"
        edges = {
            "first_start": edge_time(cut, window_start(cut, first)),
            "first_end": edge_time(cut, window_end(cut, first)),
            "last_start": edge_time(cut, window_start(cut, last)),
            "last_end": edge_time(cut, window_end(cut, last)),
        }
        return LateRecord("__open > __first AND NOT __skip", counted, edges)

    def placed(self) -> dict[str, str]:
        return {"pane": "__pane", "first_window": "__open"}

    def spans(self) -> dict[str, str]:
        return {}


@singledispatch
def placing_of(placement: Placement) -> Placing | None:  # noqa: ARG001 (the kinds register below)
    """Return what a placement means here; None: it is not one in time."""
    return None


placing_of.register(InWindow, _Windows)
placing_of.register(InSession, _Sessions)
placing_of.register(InPanes, _Panes)
