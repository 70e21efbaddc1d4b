"""Walking nodes, and which definitions read which."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.nodes import (
    Aggregate,
    Deduplicate,
    Filter,
    Named,
    Node,
    Project,
    Scan,
    Union,
    Window,
    inputs_of,
)

if TYPE_CHECKING:  # which itself asks this module what its views read
    from headrace.model.definitions import Project as Definitions
    from headrace.model.definitions import Stream, View

__all__ = [
    "aggregate_of",
    "outputs_of",
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
    """Return what FROM a stream means: its records, without duplicates if it has a unique id."""
    scan = Scan(stream.name)
    if stream.unique is None:
        return scan
    return Deduplicate(scan, stream.unique, stream.unique_within_us)


def streams_of(node: Node) -> tuple[str, ...]:
    """Return the names of the streams below a node, each once, in the order of the leaves."""
    leaves = (each.stream for each in walk(node) if isinstance(each, Scan))
    return tuple(dict.fromkeys(leaves))


def outputs_of(node: Node) -> tuple[Named, ...]:
    """Return the expressions that name the columns of a query; of a union, those of its first."""
    match node:
        case Project():
            return node.columns
        case Filter():
            return outputs_of(node.input)
        case Union():
            return outputs_of(node.inputs[0])
        case _:
            return ()


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
