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
    from headrace.model.definitions import NamedQuery, Sink, Stream, View
    from headrace.model.definitions import Project as Definitions

__all__ = [
    "aggregate_of",
    "named_readers_of",
    "outputs_of",
    "passed_on",
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


def passed_on(node: Node) -> dict[str, str]:
    """Return the outputs of a query that are columns of its aggregate as they are, and which.

    Queries within the query may have renamed them. Without an aggregate there are none.
    """
    projects: list[Project] = []
    while not isinstance(node, Aggregate):
        if isinstance(node, Project):
            projects.append(node)
        inputs = inputs_of(node)
        if len(inputs) != 1:
            return {}
        [node] = inputs
    below: dict[str, str] | None = None  # of the aggregate itself: each by its own name
    for project in reversed(projects):
        named = {each.name: each.scalar.name for each in project.columns if each.scalar.name}
        if below is not None:
            named = {name: below[column] for name, column in named.items() if column in below}
        below = named
    return below or {}


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
    """Return the views that read a definition, by its name or through named queries."""
    names = {name}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        found = [query.name for query in project.queries if here in query.reads]
        waiting += [each for each in found if each not in names]
        names.update(found)
    return tuple(
        view
        for view in project.views
        if name in streams_of(view.query) or not names.isdisjoint(view.reads)
    )


def named_readers_of(project: "Definitions", name: str) -> tuple["NamedQuery | View | Sink", ...]:
    """Return the definitions whose own text names a definition."""
    return (
        *(query for query in project.queries if name in query.reads),
        *(view for view in project.views if name in view.reads and view.topic is None),
        *(sink for sink in project.sinks if sink.view == name),
    )
