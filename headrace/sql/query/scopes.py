"""Scopes: the names that the expressions of one SELECT may use, and what they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.model.definitions import Stream
from headrace.model.graph import relation_of
from headrace.model.names import closest
from headrace.model.nodes import WINDOW_COLUMNS, Node
from headrace.schema.types import DataType

__all__ = ["Relation", "RelationColumn", "Scope", "Target", "Unknown"]


@dataclass(frozen=True)
class RelationColumn:
    """A column that FROM gives."""

    name: str
    type: DataType | None = None  # None: only Spark knows it


@dataclass(frozen=True)
class Relation:
    """What FROM gives: its node, and the columns that can be named."""

    name: str  # for messages: that of the stream
    qualifier: str  # its alias, else its name
    node: Node
    columns: tuple[RelationColumn, ...]
    event_time: str | None

    @staticmethod
    def of_stream(stream: Stream, alias: str | None) -> "Relation":
        """Return a stream as FROM gives it."""
        columns = tuple(RelationColumn(name, type) for name, type in stream.outline)
        node = relation_of(stream)
        return Relation(stream.name, alias or stream.name, node, columns, stream.event_time)

    @property
    def spelling(self) -> dict[str, str]:
        """The columns, from lower case to their own spelling."""
        return {column.name.lower(): column.name for column in self.columns}


@dataclass(frozen=True)
class Target:
    """What a path stands for: the column, how many of its names are that, and the fields behind."""

    column: str
    names: int
    fields: tuple[str, ...] = ()


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
    outputs: frozenset[str] = field(default_factory=frozenset)  # in lower case, to explain mistakes

    @property
    def columns(self) -> dict[str, str]:
        """The columns, from lower case to their own spelling."""
        return self.relation.spelling

    def find(self, written: Sequence[str]) -> Target | Unknown | None:
        """Return what a path stands for, or what is wrong with it; None: it is not judged."""
        names = [name.lower() for name in written]
        relation = self.relation
        if names[0] == relation.qualifier.lower() and len(names) > 1 and names[1] in self.columns:
            return self._target(written, 1)
        if self.has_window and names[0] == "window":
            if names[1:] not in (["start"], ["end"]):
                return Unknown("a view's window has a start and an end: window.start, window.end")
            start, end, _ = WINDOW_COLUMNS
            return Target(start if names[1] == "start" else end, 2)
        if names[0] in self.columns:
            return self._target(written, 0)
        if self._is_beside(names):
            return None
        return self._unknown(names, written)

    def _target(self, written: Sequence[str], at: int) -> Target:
        column = next(
            each for each in self.relation.columns if each.name.lower() == written[at].lower()
        )
        return Target(column.name, at + 1, tuple(_fields(column.type, written[at + 1 :])))

    def _is_beside(self, names: Sequence[str]) -> bool:
        if names[0] == self.relation.qualifier.lower() and len(names) > 1:
            return False
        return self.beside_unknown or any(
            names[0] == other.qualifier.lower() or names[0] in other.spelling
            for other in self.beside
        )

    def _unknown(self, names: Sequence[str], written: Sequence[str]) -> Unknown:
        relation = self.relation
        skip = int(names[0] == relation.qualifier.lower() and len(names) > 1)
        first, shown = names[skip], ".".join(written[skip:])
        if first == "session_window" and self.has_window:
            return Unknown(
                "a session's start and end are window.start and window.end here, too", skip
            )
        if first == "window":
            how = "add GROUP BY window(<event time>, '1 minute')"
            return Unknown(f"window stands for nothing here; {how}", skip)
        if first in self.outputs:
            return Unknown(
                f"{shown} is an output of the view, not a column of {relation.name}; write its "
                "expression instead",
                skip,
            )
        hint = closest(first, self.columns.values())
        if not hint and len(names) > 1 + skip and first == relation.name.lower():
            hint = f" (the stream is called {relation.qualifier} here)"
        return Unknown(
            f"{relation.name} has no column {shown}{hint}; its columns are "
            f"{', '.join(self.columns.values())}",
            skip,
        )


def _fields(type: DataType | None, written: Sequence[str]) -> list[str]:
    """Return a path into a column as it is compared.

    It is in lower case, but for the keys of a MAP and where the type is not known.
    """
    if type is None:
        return list(written)
    path: list[str] = []
    for name in written:
        while type.kind == "ARRAY":  # a field of an array is that of its elements
            type = type.parts[0]
        if type.kind == "MAP":
            path.append(name)
            type = type.parts[1]
        else:
            path.append(name.lower())
            fields = dict(zip(map(str.lower, type.names), type.parts, strict=False))
            type = fields.get(name.lower(), type)  # Spark refuses what is not there
    return path
