"""Definitions as frozen values: what a project says, decided once, before anything acts on it.

What a view asks is a node (`model/nodes.py`); `Project` here is a folder of definitions, and
`nodes.Project` the node.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.model.graph import readers_of, streams_of, walk, window_of
from headrace.model.nodes import ARRIVAL, Changelog, Node
from headrace.model.scalars import Scalar
from headrace.schema.codec import Encoding
from headrace.schema.formats import change_columns
from headrace.schema.json_places import show_place
from headrace.schema.json_values import unit_of
from headrace.schema.types import Column, DataType

__all__ = [
    "DEFAULT_IDLE_TIMEOUT_US",
    "Adaptive",
    "Computed",
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
class Computed:
    """A column that is a name for an expression over the columns that a stream declares.

    With a `type`, the expression is a cast to it. `at` says how many columns are declared before.
    """

    name: str
    scalar: Scalar
    type: DataType | None = None
    at: int = 0
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Stream:
    """A topic read through a schema. With a primary key it is what a table is made of."""

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
    computed: tuple[Computed, ...] = ()
    #: Of a table: its records are changes, and the newest of a primary key is a row of the table.
    primary_key: tuple[str, ...] = ()
    key_from: str = "key"  # or "value": the part of a record that has the primary key
    decimal_format: str | None = None  # what texts of DECIMAL are, where no schema says it
    source_table: str | None = None  # whose changes count; None: all do
    may_lose_rows: bool = False  # its topic may remove records that nothing replaced
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def encoding(self) -> Encoding:
        """How its records are written."""
        return Encoding(
            self.format,
            self.columns,
            self.timestamp_format,
            self.primary_key,
            self.key_from,
            self.decimal_format,
            self.source_table,
        )

    @property
    def kind(self) -> str:
        """What people call it."""
        return "table" if self.primary_key else "stream"

    @property
    def outline(self) -> tuple[tuple[str, DataType | None], ...]:
        """All columns as they were written, with their types; None: only Spark knows it."""
        found: list[tuple[str, DataType | None]] = []
        waiting = list(self.computed)
        for number, column in enumerate((*self.columns, None)):
            while waiting and waiting[0].at <= number:
                found.append((waiting[0].name, waiting.pop(0).type))
            if column is not None:
                found.append((column.name, column.type))
        return tuple(found)

    @property
    def eager(self) -> tuple[Computed, ...]:
        """The computed columns that are needed to read a record: its event time, its unique id."""
        return tuple(each for each in self.computed if each.name in (self.event_time, self.unique))

    @property
    def scanned(self) -> tuple[Column, ...]:
        """The columns that a record is read with: those declared, and the eager ones.

        Those of a table have what a change says of itself besides.
        """
        computed = (Column(each.name, each.type, False) for each in self.eager if each.type)
        return (*self.columns, *computed, *change_columns(self.encoding))

    @property
    def time_read(self) -> tuple[str, str | None] | None:
        """The event time: its column, and how it is read, if not as ISO 8601 under its name.

        None: there is none. What was learnt of one time, markers say, is nothing to another.
        """
        if self.event_time is None:
            return None
        if self.event_time == ARRIVAL:
            return ARRIVAL, None
        for each in self.eager:
            if each.name == self.event_time:
                return each.name, f"as {each.scalar.render(str)}"
        column = next((each for each in self.columns if each.name == self.event_time), None)
        written = unit_of(column, self.timestamp_format) if column else self.timestamp_format
        if column is None or not column.path:
            return self.event_time, written
        return self.event_time, f"{written or 'iso8601'} from {show_place(column.path)}"


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
    changes: str = "followed"  # when changes are kept: while somebody reads them, or always
    topic: str | None = None  # that its rows are written to; None: they are a table
    key: str | None = None  # the output that is the key of what is written; None: the record's own
    #: The definitions that its text names: streams and named queries, which `query` has inlined.
    reads: tuple[str, ...] = field(default=(), compare=False)
    sql: str = ""  # the statement as written, for people
    location: Location = field(default=Location("", 1, 1), compare=False)

    @property
    def kind(self) -> str:
        """What people call it."""
        if self.topic is not None:
            return "stream"
        return "table" if any(isinstance(each, Changelog) for each in walk(self.query)) else "view"

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
    mode: str = "upsert"  # or retract, or debezium
    key: tuple[str, ...] = ()  # columns of the view; empty: the key of its rows
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
