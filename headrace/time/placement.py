"""Where the state of a record stands: one value for each kind of window.

A record's state is in one window's row, in a pane that several windows share, in a piece of a
session, in one row for ever, or, where nothing is grouped, in a row of its own. What follows from
that (the columns of the row, how many windows a delta speaks of) is said here in plain numbers.
Spark's text for it is in plan/spark/placing.py and DuckDB's in store/duckdb/tables/placing.py, a
class each: no other file asks which kind of window a view has.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.nodes import Window
from headrace.schema.types import DataType, parse_type
from headrace.time.windows import Cut

__all__ = [
    "Forever",
    "InPanes",
    "InSession",
    "InWindow",
    "OfRecord",
    "PlaceColumn",
    "Placement",
    "placement_of",
]

_TIMESTAMP = parse_type("TIMESTAMP")
_BIGINT = parse_type("BIGINT")
_INT = parse_type("INT")


@dataclass(frozen=True)
class PlaceColumn:
    """A column that says where a row stands; part of the row's key unless it is the `latest`."""

    name: str
    type: DataType
    latest: bool = False  # of two rows that become one, the later time stays


@dataclass(frozen=True)
class Placement:
    """Where states stand; see the module's docstring."""

    @property
    def columns(self) -> tuple[PlaceColumn, ...]:
        """The columns of the view's own rows."""
        return ()

    @property
    def item_columns(self) -> tuple[PlaceColumn, ...]:
        """The columns of the rows of items."""
        return self.columns

    @property
    def appends(self) -> bool:
        """Whether every row is a record, and none is ever changed."""
        return False

    @property
    def cut(self) -> Cut | None:
        """How time is cut; None: it is not, and no record is late."""
        return None

    @property
    def overlaps(self) -> bool:
        """Whether a record can be in several windows."""
        return False

    @property
    def gap_us(self) -> int:
        """How long after its last record a row may still be extended by another one."""
        return 0

    @property
    def window_word(self) -> str:
        """What the only window of a record is called."""
        return "window"

    @property
    def days_of(self) -> str | None:
        """The time zone whose days a store works out by itself; None: it need not know any."""
        return None

    @property
    def note(self) -> tuple[str, str] | None:
        """What EXPLAIN says of it: a word, and a sentence; None: nothing."""
        return None

    def count_pairs(self, delta: pa.Table) -> int:
        """Return how many pairs of record and window the rows of a delta stand for."""
        return _sum(delta["_events"])

    def late_pairs(
        self, late: pa.Table, events: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return which late records have no window open to them, and the pairs that are late.

        `late` has what the fold says of each, `events` how many records a row stands for.
        """
        everywhere = pa.chunked_array([pa.repeat(pa.scalar(True), late.num_rows)])
        return everywhere, events


@dataclass(frozen=True)
class OfRecord(Placement):
    """A row for each record, by its coordinates.

    With `branches` the branch of the union that it came through is among them, and the numbers of
    the elements that it was made of: as many as `ordinals`.
    """

    branches: bool = False
    ordinals: int = 0

    @property
    def columns(self) -> tuple[PlaceColumn, ...]:
        """Partition and offset, and what else tells rows apart."""
        place = (PlaceColumn("__partition", _INT), PlaceColumn("__offset", _BIGINT))
        if not self.branches:
            return place
        rows = (PlaceColumn(f"__row{number}", _INT) for number in range(self.ordinals))
        return (PlaceColumn("__branch", _INT), *place, *rows)

    @property
    def appends(self) -> bool:
        """Whether every row is a record."""
        return True

    def count_pairs(self, delta: pa.Table) -> int:
        """Return how many records there are."""
        return int(delta.num_rows)


@dataclass(frozen=True)
class Forever(Placement):
    """One row for each group, for ever."""


@dataclass(frozen=True)
class _Timed(Placement):
    """A placement by time."""

    window: Cut

    @property
    def cut(self) -> Cut:
        """How time is cut."""
        return self.window


@dataclass(frozen=True)
class InWindow(_Timed):
    """One row for each group and window; windows do not overlap."""

    @property
    def columns(self) -> tuple[PlaceColumn, ...]:
        """The window's start; of a time zone's days the end too, which is no arithmetic."""
        start = PlaceColumn("window_start", _TIMESTAMP)
        if self.window.zone is None:
            return (start,)
        return (start, PlaceColumn("window_end", _TIMESTAMP))


@dataclass(frozen=True)
class InPanes(_Timed):
    """One row for each group, pane and first open window; windows are put together when read."""

    @property
    def columns(self) -> tuple[PlaceColumn, ...]:
        """The pane, and the first window that was open to its records."""
        return (PlaceColumn("pane", _BIGINT), PlaceColumn("first_window", _BIGINT))

    @property
    def overlaps(self) -> bool:
        """Whether a record can be in several windows."""
        return True

    @property
    def days_of(self) -> str | None:
        """The time zone: windows are put together from panes when read, edges and all."""
        return self.window.zone

    @property
    def note(self) -> tuple[str, str]:
        """How long a pane is, and how many windows it serves."""
        cut = self.window
        length = f"{cut.pane} d" if cut.zone is not None else _seconds(cut.pane)
        most = -(-cut.size // cut.hop)
        return "panes", f"{length}; a record is folded into one and read in up to {most:,} windows"

    def count_pairs(self, delta: pa.Table) -> int:
        """Return how many pairs of record and window the rows of panes stand for."""
        names = ("pane", "first_window", "_events")
        panes, firsts, events = (delta[name].to_numpy() for name in names)
        windows = self.window.last_windows(panes) - firsts + 1
        return int((events * windows).sum())

    def late_pairs(
        self, late: pa.Table, events: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return which records are late for all of their windows, and the pairs that are late."""
        everywhere = pc.equal(late["late_windows"], late["windows"])
        return everywhere, pc.multiply(events, late["late_windows"])


@dataclass(frozen=True)
class InSession(_Timed):
    """One row for each group and session, put together from pieces as long as the gap."""

    @property
    def columns(self) -> tuple[PlaceColumn, ...]:
        """The times of the first record, which is the key, and of the last one."""
        return (
            PlaceColumn("first_time", _TIMESTAMP),
            PlaceColumn("last_time", _TIMESTAMP, latest=True),
        )

    @property
    def item_columns(self) -> tuple[PlaceColumn, ...]:
        """The piece: it belongs to one session as a whole, whatever becomes one with what."""
        return (PlaceColumn("piece", _BIGINT),)

    @property
    def gap_us(self) -> int:
        """How far apart the records of a session may be."""
        return self.window.size

    @property
    def window_word(self) -> str:
        """What the only window of a record is called."""
        return "session"

    @property
    def note(self) -> tuple[str, str]:
        """How long a piece is."""
        return (
            "pieces",
            f"{_seconds(self.gap_us)}; Spark folds a record into one, and the store puts those of "
            "a session together",
        )


def placement_of(window: Window | None) -> Placement:
    """Return where the states of a grouped view stand."""
    if window is None:
        return Forever()
    cut = Cut.of(window)
    if cut.session:
        return InSession(cut)
    return InPanes(cut) if cut.overlaps else InWindow(cut)


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
