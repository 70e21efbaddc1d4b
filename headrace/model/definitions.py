"""Definitions as frozen values: what a project says, decided once, before anything acts on it.

What a view asks is a node (`model/nodes.py`); `Project` here is a folder of definitions, and
`nodes.Project` the node.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.model.graph import readers_of, streams_of, window_of
from headrace.model.nodes import Node
from headrace.schema.types import Column

__all__ = [
    "DEFAULT_IDLE_TIMEOUT_US",
    "Adaptive",
    "NamedQuery",
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
    event_time: str | None = None  # the column named by WATERMARK FOR
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


@dataclass(frozen=True)
class View:
    """A query, maintained continuously: its rows are a table.

    With a `topic` it is a stream that is written: its rows are records of that topic instead.
    """

    name: str
    query: Node
    allowed_lateness_us: int = 0
    late: str = "topic"  # what becomes of late records: topic, drop (counted) or fold
    retention_us: int | None = None  # how long after its end a row is kept; None: for good
    emit: str = "changes"  # when sinks are told: changes, every or final
    emit_every_us: int = 0
    topic: str | None = None  # that its rows are written to; None: they are a table
    key: str | None = None  # the output that is the key of what is written; None: the record's own
    #: The definitions that its text names: streams and named queries, which `query` has inlined.
    reads: tuple[str, ...] = field(default=(), compare=False)
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def kind(self) -> str:
        """What people call it."""
        return "view" if self.topic is None else "stream"

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
class NamedQuery:
    """A name for a query: nothing is stored, and it is written out where it is read.

    The rows of a `stream` are records; those of a `view` may be groups. Where the records of a
    stream are also written to a `topic`, a `View` of that name does it.
    """

    name: str
    kind: str  # "view" or "stream"
    query: Node
    reads: tuple[str, ...] = ()  # the definitions that its text names
    topic: str | None = None
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)


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
    queries: tuple[NamedQuery, ...] = ()

    def stream(self, name: str) -> Stream:
        """Return the stream of that name; it must exist."""
        return next(stream for stream in self.streams if stream.name == name)

    def view(self, name: str) -> View:
        """Return the view of that name; it must exist."""
        return next(view for view in self.views if view.name == name)

    def streams_of(self, view: View) -> tuple[Stream, ...]:
        """Return the streams that a view reads, each once."""
        return tuple(map(self.stream, streams_of(view.query)))

    def views_over(self, stream: str) -> tuple[View, ...]:
        """Return the views that read a stream."""
        return readers_of(self, stream)
