"""Definitions as frozen values: what a project says, decided once, before anything acts on it.

What a view asks is a node (`model/nodes.py`); `Project` here is a folder of definitions, and
`nodes.Project` the node.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.model.graph import readers_of, window_of
from headrace.model.nodes import ARRIVAL, Node
from headrace.schema.json_places import show_place
from headrace.schema.json_values import unit_of
from headrace.schema.types import Column

__all__ = [
    "DEFAULT_IDLE_TIMEOUT_US",
    "Adaptive",
    "Project",
    "Sink",
    "Stream",
    "View",
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
    event_time: str | None = None  # the column named by WATERMARK FOR, or ARRIVAL
    delay_us: int = 0  # of an adaptive watermark: the one it begins with, its largest
    adaptive: Adaptive | None = None
    idle_timeout_us: int = DEFAULT_IDLE_TIMEOUT_US
    unique: str | None = None  # the column whose equal values make duplicates
    unique_within_us: int = 0
    duplicates: str = "drop"  # or "topic": kept in <stream>.duplicate
    key: str | None = None  # the column that producers use as the record's key
    timestamp_format: str | None = None  # None: ISO 8601; else seconds, millis or micros since 1970
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def time_read(self) -> tuple[str, str | None] | None:
        """The event time: its column, and how it is read, if not as ISO 8601 under its name.

        None: there is none. What was learnt of one time, markers say, is nothing to another.
        """
        if self.event_time is None:
            return None
        if self.event_time == ARRIVAL:
            return ARRIVAL, None
        column = next((each for each in self.columns if each.name == self.event_time), None)
        written = unit_of(column, self.timestamp_format) if column else self.timestamp_format
        if column is None or not column.path:
            return self.event_time, written
        return self.event_time, f"{written or 'iso8601'} from {show_place(column.path)}"


@dataclass(frozen=True)
class View:
    """A query, maintained continuously."""

    name: str
    query: Node
    allowed_lateness_us: int = 0
    late: str = "topic"  # what becomes of late records: topic, drop (counted) or fold
    retention_us: int | None = None  # how long after its end a row is kept; None: for good
    emit: str = "changes"  # when sinks are told: changes, every or final
    emit_every_us: int = 0
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def lateness_us(self) -> int | None:
        """How long after its end a window is open to records; None: for good."""
        if self.late != "fold":
            return self.allowed_lateness_us
        if self.retention_us is None:
            return None
        # A record reaches sessions that ended up to a gap before it, and they must still be there.
        window = window_of(self.query)
        gap_us = None if window is None else window.gap_us
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
        return readers_of(self, stream)
