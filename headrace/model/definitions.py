"""Definitions as frozen values: what a project says, decided once, before anything acts on it.

Expressions are kept as Spark SQL text. Which names they may use:
- `View.query.where`, `Key.expression`, what a `Call` is over, and the outputs of a view without
  grouping: columns of the stream; keys may also use `window.start` and `window.end`.
- outputs and `having` of a grouped view: the names of its keys (`k0`, ...) and calls (`a0`, ...),
  `window_start` and `window_end`.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.schema.types import Column

__all__ = [
    "DEFAULT_IDLE_TIMEOUT_US",
    "Adaptive",
    "Call",
    "Key",
    "Output",
    "Project",
    "Query",
    "Sink",
    "Stream",
    "View",
    "Window",
]

DEFAULT_IDLE_TIMEOUT_US = 60_000_000


@dataclass(frozen=True)
class Adaptive:
    """A delay that is learnt: `share` of the records come in time; at most `max_us`."""

    share: str  # a decimal between 0 and 1, as written
    max_us: int


@dataclass(frozen=True)
class Stream:
    """A topic read through a schema."""

    name: str
    columns: tuple[Column, ...]
    topic: str
    format: str = "json"
    event_time: str | None = None  # the column named by WATERMARK FOR
    delay_us: int = 0  # of an adaptive watermark: the one it begins with, its largest
    adaptive: Adaptive | None = None
    idle_timeout_us: int = DEFAULT_IDLE_TIMEOUT_US
    unique: str | None = None  # the column whose equal values make duplicates
    unique_within_us: int = 0
    duplicates: str = "drop"  # or "topic": kept in <stream>.duplicate
    key: str | None = None  # the column that producers use as the record's key
    timestamp_format: str | None = None  # None: ISO 8601; else seconds, millis or micros since 1970
    sql: str = ""  # the statement as written, to parse it again
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Window:
    """How a view cuts time; intervals are `[start, end)`, counted from 1970 plus `offset_us`.

    - tumbling: one after the other, each `size_us` long.
    - hopping: one begins every `slide_us`, each `size_us` long.
    - cumulative: all begin where a tumbling one of `size_us` does, and end `slide_us`, two, three
      ... of them later.
    - session: chains of records at most `size_us`, the gap, apart.
    """

    size_us: int
    kind: str = "tumbling"
    slide_us: int = 0  # of a hopping or cumulative window
    offset_us: int = 0
    time: str | None = None  # Spark SQL over the event time; None: the event time itself
    zone: str | None = None  # whole days are those of this time zone; None: UTC

    @property
    def overlaps(self) -> bool:
        """Whether a record can be in several windows at once."""
        return self.kind in ("hopping", "cumulative")

    @property
    def gap_us(self) -> int | None:
        """How far apart the records of a session may be; None: it is no session."""
        return self.size_us if self.kind == "session" else None


@dataclass(frozen=True)
class Key:
    """One grouping expression; `over` names the keys it follows from, if GROUP BY lacks it."""

    name: str
    expression: str
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """One aggregate call; `argument` is None for count(*).

    An argument is evaluated for the records that the condition is true for, and for no others.
    """

    name: str
    function: str
    argument: str | None
    by: str | None = None  # what min_by and max_by order by
    parameters: tuple[str, ...] = ()  # literals: how many values to keep, which percentile
    ignores_nulls: bool = False  # of first and last
    condition: str | None = None  # FILTER (WHERE ...)


@dataclass(frozen=True)
class Output:
    """One column of the view."""

    name: str
    expression: str
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Query:
    """SELECT over one stream."""

    stream: str
    where: str | None
    grouped: bool
    window: Window | None
    keys: tuple[Key, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    having: str | None = None


@dataclass(frozen=True)
class View:
    """A query over a stream, maintained continuously."""

    name: str
    query: Query
    allowed_lateness_us: int = 0
    late: str = "topic"  # what becomes of late records: topic, drop (counted) or fold
    retention_us: int | None = None  # how long after its end a row is kept; None: for good
    emit: str = "changes"  # when sinks are told: changes, every or final
    emit_every_us: int = 0
    sql: str = ""  # the statement as written, to parse it again
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def lateness_us(self) -> int | None:
        """How long after its end a window is open to records; None: for good."""
        if self.late != "fold":
            return self.allowed_lateness_us
        if self.retention_us is None:
            return None
        # A record reaches sessions that ended up to a gap before it, and they must still be there.
        gap_us = self.query.window.gap_us if self.query.window is not None else None
        return self.retention_us - (gap_us or 0)


@dataclass(frozen=True)
class Sink:
    """A topic that the changes of a view go to."""

    name: str
    view: str
    topic: str
    mode: str = "upsert"  # or "retract": what no longer holds is told too
    sql: str = ""
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Project:
    """All definitions of a project, validated."""

    streams: tuple[Stream, ...]
    views: tuple[View, ...]
    sinks: tuple[Sink, ...] = ()

    def stream(self, name: str) -> Stream:
        """Return the stream of that name; it must exist."""
        return next(stream for stream in self.streams if stream.name == name)

    def view(self, name: str) -> View:
        """Return the view of that name; it must exist."""
        return next(view for view in self.views if view.name == name)

    def views_over(self, stream: str) -> tuple[View, ...]:
        """Return the views that read a stream."""
        return tuple(view for view in self.views if view.query.stream == stream)
