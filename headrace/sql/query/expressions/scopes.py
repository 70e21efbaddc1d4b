"""Scopes: the names that the expressions of one SELECT may use, and what they stand for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from headrace.model.definitions import Stream
from headrace.model.graph import relation_of
from headrace.model.names import closest
from headrace.model.nodes import COORDINATES, WINDOW_COLUMNS, Node, Window
from headrace.model.scalars import Scalar
from headrace.schema.types import DataType

__all__ = [
    "Beside",
    "Naming",
    "Relation",
    "RelationColumn",
    "Scope",
    "Target",
    "Unknown",
    "field_of",
    "is_unnamed",
    "no_watermark",
    "unnamed",
]


def no_watermark(columns: str) -> str:
    """Return what to do where a stream has no event time."""
    return f"add to {columns}: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS"


class Naming(Enum):
    """Who gives the outputs of a query their names."""

    OWN = "own"  # each has one, or is refused
    IF_READ = "if read"  # those that the query around it reads have one
    GIVEN = "given"  # a column list, or the first query of UNION ALL


#: Names that start with an underscore are reserved, so no output can have this one.
_UNNAMED = "_column "


def unnamed(number: int) -> str:
    """Return what nodes call an output without a name; no query can name it."""
    return f"{_UNNAMED}{number}"


def is_unnamed(name: str) -> bool:
    """Whether a column was given no name."""
    return name.startswith(_UNNAMED)


@dataclass(frozen=True)
class RelationColumn:
    """A column that FROM gives."""

    name: str
    type: DataType | None = None  # None: only Spark knows it
    size: int = 1  # characters of its expression, with all that it uses written out
    # Over groups: the columns of the aggregate that it follows from.
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Relation:
    """What FROM gives: its node, and the columns that can be named."""

    name: str  # for messages
    qualifier: str  # its alias, else its name; empty: it has neither
    node: Node
    columns: tuple[RelationColumn, ...]
    event_time: str | None
    timeless: str = no_watermark("its columns")  # what to do where the event time is missing
    is_grouped: bool = False  # its rows are groups, not records
    levels: int = 0  # queries over each other
    leaves: int = 1  # streams that it reads, each as often as it does
    # A record's own, which have to be named: no star stands for them.
    own: tuple[RelationColumn, ...] = ()
    windowed: Window | None = None  # by a window function around it
    partition: tuple[Scalar, ...] = ()  # whose sessions those are

    @staticmethod
    def of_stream(stream: Stream, alias: str | None) -> "Relation":
        """Return a stream as FROM gives it."""
        columns = tuple(RelationColumn(name, type) for name, type in stream.outline)
        own = tuple(RelationColumn(name, type) for name, type in COORDINATES.items())
        name, node = alias or stream.name, relation_of(stream)
        return Relation(stream.name, name, node, columns, stream.event_time, own=own)

    @cached_property
    def spelling(self) -> dict[str, str]:
        """The columns, from lower case to their own spelling."""
        return {column.name.lower(): column.name for column in self.columns}


@dataclass(frozen=True)
class Beside:
    """A column that a generator or a window puts beside those of the relation."""

    name: str  # as it is written
    column: str  # as its node calls it
    qualifier: str
    type: DataType | None = None  # None: it is not known

    @property
    def written(self) -> str:
        """Its name, behind that of the relation if that has one."""
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True)
class Target:
    """What a path stands for: the column, how many of its names are that, and the fields behind."""

    column: str
    names: int
    fields: tuple[str, ...] = ()
    type: DataType | None = None  # of the whole path; None: it is not known


@dataclass(frozen=True)
class Unknown:
    """What is wrong with a path, and with which of its names."""

    message: str
    name: int = 0


@dataclass
class Scope:
    """The names of one SELECT.

    `beside` are relations of joins that were refused: their columns are no further problem. A
    query within another will have its scope as `parent`, where names are looked up that it has
    not got.
    """

    relation: Relation
    parent: "Scope | None" = None
    beside: tuple[Relation, ...] = ()
    beside_unknown: bool = False  # one of those is not known, so that any name may be its own
    has_window: bool = False
    has_session: bool = False  # it is that of session_window(), which names it, too
    outputs: frozenset[str] = field(default_factory=frozenset)  # in lower case, to explain mistakes
    made: list[Beside] = field(default_factory=list)  # by LATERAL VIEW and its kin
    naming: Naming = Naming.OWN
    is_read: bool = False  # by another query
    _index: "_Index | None" = None

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that a star stands for, from lower case to their own spelling."""
        return self._names().spelling

    @property
    def visible(self) -> Iterator[Beside]:
        """The columns that a star stands for, in their order."""
        for column in self.relation.columns:
            yield Beside(column.name, column.name, self.relation.qualifier, column.type)
        yield from self.made

    @property
    def qualifiers(self) -> Mapping[str, str]:
        """The names of all that FROM gives, from lower case to their own spelling."""
        return self._names().qualifiers

    def make(self, name: str, qualifier: str, type: DataType | None) -> Beside:
        """Return a column that a node makes, under a name that its input has not."""
        taken = {each.column.lower() for each in (*self.visible, *self._own())}
        column, number = name, 0
        while column.lower() in taken:
            number += 1
            column = f"_{name}_{number}"
        return Beside(name, column, qualifier, type)

    def find(self, written: Sequence[str]) -> Target | Unknown | None:
        """Return what a path stands for, or what is wrong with it; None: it is not judged."""
        names = [name.lower() for name in written]
        if len(names) > 1 and names[0] in self._names().qualifiers:
            found = self._named(names[1], names[0])
            if found:
                return _target(found[0], written, 1)
        if self.has_window and names[0] in ("window", *(["session_window"] * self.has_session)):
            if names[1:] not in (["start"], ["end"]):
                return Unknown("a view's window has a start and an end: window.start, window.end")
            start, end, _ = WINDOW_COLUMNS
            return Target(start if names[1] == "start" else end, 2)
        found = self._named(names[0])
        if len(found) > 1:
            known = [each.written for each in found if each.qualifier]
            how = f"write {' or '.join(known)}" if known else "rename one with AS"
            how += ", or rename the other with AS" if len(known) == 1 else ""
            return Unknown(f"{written[0]} is the name of {len(found)} columns; {how}")
        if found:
            return _target(found[0], written, 0)
        if self._is_beside(names):
            return None
        return self._unknown(names, written)

    def _own(self) -> Iterator[Beside]:
        for column in self.relation.own:
            yield Beside(column.name, column.name, self.relation.qualifier, column.type)

    def _named(self, name: str, qualifier: str | None = None) -> list[Beside]:
        names = self._names()
        found = [*names.columns.get(name, ()), *names.own.get(name, ())]
        return [each for each in found if qualifier in (None, each.qualifier.lower())]

    def _names(self) -> "_Index":
        """Return what every name stands for; what a SELECT adds on the way is added here, too."""
        if self._index is None or self._index.relation is not self.relation:
            self._index = _Index(self.relation)
            for each in self._own():
                self._index.own.setdefault(each.name.lower(), []).append(each)
            for column in self.relation.columns:
                if column.name.lower() not in self._index.columns:  # else that is refused already
                    self._index.add(
                        Beside(column.name, column.name, self.relation.qualifier, column.type)
                    )
            self._index.qualifiers[self.relation.qualifier.lower()] = self.relation.qualifier
        for each in self.made[self._index.made :]:
            self._index.add(each)
            if each.qualifier:
                self._index.qualifiers.setdefault(each.qualifier.lower(), each.qualifier)
        self._index.made = len(self.made)
        return self._index

    def _is_beside(self, names: Sequence[str]) -> bool:
        if names[0] in self.qualifiers and len(names) > 1:
            return False
        return self.beside_unknown or any(
            names[0] == other.qualifier.lower() or names[0] in other.spelling
            for other in self.beside
        )

    def _unknown(self, names: Sequence[str], written: Sequence[str]) -> Unknown:
        relation = self.relation
        skip = int(names[0] in self.qualifiers and len(names) > 1)
        first, shown = names[skip], ".".join(written[skip:])
        if first == "session_window" and self.has_window:
            return Unknown(
                "a session's start and end are window.start and window.end here, too", skip
            )
        if first == "window":
            how = "add GROUP BY window(<event time>, '1 minute')"
            return Unknown(f"there is no window here; {how}", skip)
        known_as = {"windowstart": "window.start", "windowend": "window.end"}
        known_as |= {"window_start": "window.start", "window_end": "window.end"}
        known_as |= {"rowtime": relation.event_time} if relation.event_time else {}
        if first in known_as:
            return Unknown(f"{shown} is written {known_as[first]} here", skip)
        if first in self.outputs:
            return Unknown(
                f"{shown} is an output of the view, not a column of {relation.name}; write its "
                "expression instead",
                skip,
            )
        columns = self.columns
        if skip:
            columns = {
                each.name.lower(): each.name
                for each in self.visible
                if each.qualifier.lower() == names[0]
            }
        own = [column.name for column in relation.own] if first.startswith("_") else []
        hint = closest(first, [*columns.values(), *own])
        if not hint and len(names) > 1 + skip and first == relation.name.lower():
            hint = f" (the stream is called {relation.qualifier} here)"
        is_other = skip and names[0] != relation.qualifier.lower()
        owner = self.qualifiers[names[0]] if is_other else relation.name
        return Unknown(
            f"{owner} has no column {shown}{hint}; its columns are {', '.join(columns.values())}",
            skip,
        )


@dataclass
class _Index:
    """The names of a scope, as long as it reads the same relation."""

    relation: Relation
    made: int = 0  # how many of the columns beside it are in here
    columns: dict[str, list[Beside]] = field(default_factory=dict)
    own: dict[str, list[Beside]] = field(default_factory=dict)
    spelling: dict[str, str] = field(default_factory=dict)
    qualifiers: dict[str, str] = field(default_factory=dict)

    def add(self, column: Beside) -> None:
        """Note a column that can be named."""
        if is_unnamed(column.name):
            return
        self.columns.setdefault(column.name.lower(), []).append(column)
        self.spelling[column.name.lower()] = column.name


def _target(found: Beside, written: Sequence[str], at: int) -> Target | Unknown:
    """Return what a path into a column stands for.

    It is in lower case, but for the keys of a MAP and where the type is not known.
    """
    path: list[str] = []
    type = found.type
    for number, name in enumerate(written[at + 1 :], at + 1):
        before = type
        try:
            type = field_of(before, name, ".".join(written[:number]))
        except ValueError as error:
            return Unknown(str(error), number)
        path.append(name.lower() if _is_of_structs(before) else name)
    return Target(found.column, at + 1, tuple(path), type)


def field_of(type: DataType | None, name: str, whole: str) -> DataType | None:
    """Return the type of a field or key of a value of some type, None where it is not known.

    ValueError: there is no such field; `whole` is what the value is called in the message.
    """
    if type is None:
        return None
    if type.kind == "ARRAY":  # a field of an array: that of each of its elements
        inner = field_of(type.parts[0], name, whole)
        return None if inner is None else DataType("ARRAY", parts=(inner,))
    if type.kind == "MAP":
        return type.parts[1]
    if type.kind != "STRUCT":
        raise ValueError(f"{whole} is {type.sql} and has no fields; remove .{name}")
    fields = dict(zip(map(str.lower, type.names), type.parts, strict=False))
    if name.lower() not in fields:
        raise ValueError(
            f"{whole} has no field {name}{closest(name, type.names)}; its fields are "
            f"{', '.join(type.names)}"
        )
    return fields[name.lower()]


def _is_of_structs(type: DataType | None) -> bool:
    while type is not None and type.kind == "ARRAY":
        type = type.parts[0]
    return type is not None and type.kind == "STRUCT"
