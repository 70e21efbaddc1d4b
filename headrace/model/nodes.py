"""Nodes: the algebra that definitions are made of. One node is one operation, as a frozen value.

Every front door builds these, and everything behind it (planner, EXPLAIN, audit, reference) reads
these: nobody parses a query again. A further operation is one dataclass more, in its kind:

- leaves: `Scan`, and `Changelog`, the changes of a table. Later: `Rows` of a view.
- linear, a row at a time: `Project`, `Filter`, `Union`, `Generate`, `AssignWindows`, and
  `Deduplicate` of a `Scan`.
- keyed steps over streams, later: interval and temporal joins, OVER, patterns, the user's own.
- fold: `Aggregate`.
- over tables and views, later: joins, DISTINCT, top-K, set operations, scalar subqueries.

Columns are known by name, and a scalar names columns of its node's input:
- of a `Scan`: the columns of the stream, and the record's own, which begin with an underscore:
  `COORDINATES` and, in a stream with an event time, `WATERMARK`. Of a `Changelog`: the same, and
  the `CHANGE_COLUMNS` of the schema's codecs.
- of a `Project`: the names that it gives, and no others. Its expressions are evaluated where a node
  above asks for them: one that no node asks for never fails.
- of a `Filter` or `Deduplicate`: those of its input. Of a `Union`: those of its first input, by
  position. Of a `Generate`: those of its input, and its own. Of an `AssignWindows`: those of its
  input, and `WINDOW_COLUMNS`.
- of an `Aggregate`: `WINDOW_COLUMNS` where it has a window, then `key_column(0)`, ..., then
  `call_column(0)`, ...: what stands over keys and aggregates is a `Project` or `Filter` above it.
"""

from dataclasses import dataclass, field

from headrace.errors import Location
from headrace.model.scalars import Scalar
from headrace.schema.types import parse_type

__all__ = [
    "ARRIVAL",
    "COORDINATES",
    "GENERATORS",
    "WATERMARK",
    "WINDOW_COLUMNS",
    "Aggregate",
    "AssignWindows",
    "Call",
    "Changelog",
    "Deduplicate",
    "Filter",
    "Generate",
    "Leaf",
    "Named",
    "Node",
    "Project",
    "Scan",
    "Union",
    "Window",
    "call_column",
    "inputs_of",
    "key_column",
]

#: The column of a `Scan` that watermark() reads: the record's own, a TIMESTAMP.
WATERMARK = "_watermark"
#: The coordinate that may be a stream's event time: when the log took the record.
ARRIVAL = "_arrival"
#: The columns of a `Scan` that say where its record stands in the log, and what came with it.
COORDINATES = {
    "_topic": parse_type("STRING"),
    "_partition": parse_type("INT"),
    "_offset": parse_type("BIGINT"),
    ARRIVAL: parse_type("TIMESTAMP"),
    "_key": parse_type("BINARY"),
    "_headers": parse_type("ARRAY<STRUCT<name: STRING, value: BINARY>>"),
}
#: What a `Generate` can do with its argument: one row per element of an array or entry of a map;
#: the same with its number before it; one row per struct of an array, a column per field.
GENERATORS = ("explode", "posexplode", "inline")
#: The columns of an `Aggregate` that say which window a row is of; the last is the window's last
#: instant. No column of a stream can have such a name, so keys may read both.
WINDOW_COLUMNS = ("_window_start", "_window_end", "_window_time")


def key_column(number: int) -> str:
    """Return the name of the column that an Aggregate gives for a key."""
    return f"key_{number}"


def call_column(number: int) -> str:
    """Return the name of the column that an Aggregate gives for a call."""
    return f"call_{number}"


@dataclass(frozen=True)
class Named:
    """An expression and the name of the column that it makes.

    `location` is where the name stands, `place` where the expression begins.
    """

    name: str
    scalar: Scalar
    location: Location = field(default=Location("", 1, 1), compare=False)
    place: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Scan:
    """The records of a stream, in no order but that of each partition."""

    stream: str


@dataclass(frozen=True)
class Changelog:
    """The changes of a table, one row each: those of a key by their offsets, newest last.

    `stream` is what reads them; it has the table's name. Their event time is no part of the order.
    """

    stream: str


@dataclass(frozen=True)
class Deduplicate:
    """The records of a stream without duplicates.

    A record is one when an earlier record of its partition that is none has the same value in the
    column `by`, and the clock has moved on by at most `within_us` since (docs/time.md).
    """

    input: Scan
    by: str
    within_us: int


@dataclass(frozen=True)
class Project:
    """Columns computed from those of each row."""

    input: "Node"
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Filter:
    """The rows for which the condition is true."""

    input: "Node"
    condition: Scalar
    location: Location = field(default=Location("", 1, 1), compare=False)


@dataclass(frozen=True)
class Union:
    """The rows of all inputs; equal rows stay apart."""

    inputs: tuple["Node", ...]


@dataclass(frozen=True)
class Generate:
    """Each row once for every element of an array or map, by one of the `GENERATORS`.

    With `outer` a row for which there is none is kept, with nulls. A record is one whole: if an
    expression fails on one of the rows that came of it, the record is dead, and none is kept.
    """

    input: "Node"
    function: str
    argument: Scalar
    columns: tuple[str, ...]
    outer: bool = False


@dataclass(frozen=True)
class Window:
    """How time is cut; intervals are `[start, end)`, counted from 1970 plus `offset_us`.

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
    time: Scalar | None = None  # over the event time; None: the event time itself
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
class AssignWindows:
    """Each row once for every window around its event time; no row is late for one.

    It is what a window function in FROM means where no `Aggregate` above it groups by the window.
    """

    input: "Node"
    window: Window


@dataclass(frozen=True)
class Call:
    """One aggregate call, by the name in `aggregates.AGGREGATES`; count(*) has no arguments.

    Arguments are evaluated for the records that the condition is true for, and for no others.
    """

    function: str
    arguments: tuple[Scalar, ...] = ()  # the second is what min_by and max_by order by
    parameters: tuple[str, ...] = ()  # literals: how many values to keep, which percentile
    ignores_nulls: bool = False  # of first and last
    condition: Scalar | None = None  # FILTER (WHERE ...)


@dataclass(frozen=True)
class Aggregate:
    """One row for each group of rows with equal keys, and for each window.

    No key is an edge of the window: a row has those anyway. Where windows do not overlap, and are
    no sessions, a record knows its own: there keys may also read `WINDOW_COLUMNS`. Keys and calls
    each stand once.
    """

    input: "Node"
    window: Window | None
    keys: tuple[Scalar, ...]
    calls: tuple[Call, ...]
    places: tuple[Location, ...] = field(default=(), compare=False)  # of the keys, where known


Leaf = Scan | Changelog
Node = Leaf | Deduplicate | Project | Filter | Union | Generate | AssignWindows | Aggregate


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node reads."""
    match node:
        case Scan() | Changelog():
            return ()
        case Union(inputs=inputs):
            return inputs
        case _:
            return (node.input,)
