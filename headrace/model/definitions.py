"""Definitions as frozen values: what a project says, decided once, before anything acts on it.

Expressions are kept as Spark SQL text. Which names they may use:
- `View.query.where`, `Key.expression`, `Call.argument` and the outputs of a view without grouping:
  columns of the stream; keys may also use `window.start` and `window.end`.
- outputs and `having` of a grouped view: the names of its keys (`k0`, ...) and calls (`a0`, ...),
  `window_start` and `window_end`.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.schema.types import Column

__all__ = ["Call", "Key", "Output", "Project", "Query", "Stream", "View", "Window"]


@dataclass(frozen=True)
class Stream:
    """A topic read through a schema."""

    name: str
    columns: tuple[Column, ...]
    topic: str
    format: str = "json"
    event_time: str | None = None  # the column named by WATERMARK FOR
    delay_us: int = 0
    key: str | None = None  # the column that producers use as the record's key
    timestamp_format: str | None = None  # None: ISO 8601; else seconds, millis or micros since 1970
    sql: str = ""  # the statement as written, to parse it again
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Window:
    """Tumbling windows `[n * size, (n + 1) * size)` since 1970 over the stream's event time."""

    size_us: int


@dataclass(frozen=True)
class Key:
    """One grouping expression."""

    name: str
    expression: str


@dataclass(frozen=True)
class Call:
    """One aggregate call; `argument` is None for count(*)."""

    name: str
    function: str
    argument: str | None


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
    sql: str = ""  # the statement as written, to parse it again
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Project:
    """All definitions of a project, validated."""

    streams: tuple[Stream, ...]
    views: tuple[View, ...]

    def stream(self, name: str) -> Stream:
        """Return the stream of that name; it must exist."""
        return next(stream for stream in self.streams if stream.name == name)

    def view(self, name: str) -> View:
        """Return the view of that name; it must exist."""
        return next(view for view in self.views if view.name == name)

    def views_over(self, stream: str) -> tuple[View, ...]:
        """Return the views that read a stream."""
        return tuple(view for view in self.views if view.query.stream == stream)
