"""Walking nodes, and which definitions read which."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.nodes import (
    COORDINATES,
    WATERMARK,
    Aggregate,
    Deduplicate,
    Named,
    Node,
    Project,
    Scan,
    Window,
    inputs_of,
)
from headrace.model.scalars import Scalar

if TYPE_CHECKING:  # which itself asks this module what its views read
    from headrace.model.definitions import Project as Definitions
    from headrace.model.definitions import Stream, View

__all__ = [
    "aggregate_of",
    "readers_of",
    "relation_of",
    "streams_of",
    "walk",
    "window_of",
]


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it: each before what it reads, the first input first."""
    yield node
    for each in inputs_of(node):
        yield from walk(each)


def relation_of(stream: "Stream") -> Node:
    """Return what FROM a stream means: its records, without duplicates if it has a unique id.

    Above them its computed columns are given their names, but for those that it is read with.
    """
    records: Node = Scan(stream.name)
    if stream.unique is not None:
        records = Deduplicate(Scan(stream.name), stream.unique, stream.unique_within_us)
    scanned = {column.name for column in stream.scanned}
    scalars = {each.name: each.scalar for each in stream.computed if each.name not in scanned}
    if not scalars:
        return records
    own = (*COORDINATES, *([] if stream.event_time is None else [WATERMARK]))
    names = (*(name for name, _ in stream.outline), *own)
    columns = (Named(name, scalars.get(name) or Scalar.column(name)) for name in names)
    return Project(records, tuple(columns))


def streams_of(node: Node) -> tuple[str, ...]:
    """Return the names of the streams below a node, each once, in the order of the leaves."""
    leaves = (each.stream for each in walk(node) if isinstance(each, Scan))
    return tuple(dict.fromkeys(leaves))


def aggregate_of(node: Node) -> Aggregate | None:
    """Return the aggregate whose groups a node's rows are; None: its rows are records."""
    while not isinstance(node, Aggregate):
        inputs = inputs_of(node)
        if len(inputs) != 1:
            return None
        [node] = inputs
    return node


def window_of(node: Node) -> Window | None:
    """Return the window that a node's rows are of; None: they are of none."""
    aggregate = aggregate_of(node)
    return None if aggregate is None else aggregate.window


def readers_of(project: "Definitions", name: str) -> tuple["View", ...]:
    """Return the views that read a definition."""
    return tuple(view for view in project.views if name in streams_of(view.query))
