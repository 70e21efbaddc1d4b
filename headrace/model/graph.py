"""Walking nodes, and which definitions read which."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.errors import Location
from headrace.model.nodes import (
    COORDINATES,
    WATERMARK,
    Aggregate,
    Changelog,
    Deduplicate,
    Filter,
    Named,
    Node,
    Project,
    Scan,
    Union,
    Window,
    inputs_of,
    key_column,
)
from headrace.model.scalars import Scalar

if TYPE_CHECKING:  # which itself asks this module what its views read
    from headrace.model.definitions import NamedQuery, Sink, Stream, View
    from headrace.model.definitions import Project as Definitions

__all__ = [
    "aggregate_of",
    "condition_place",
    "group_place",
    "named_readers_of",
    "outputs_of",
    "passed_on",
    "readers_of",
    "relation_of",
    "streams_of",
    "walk",
    "window_of",
    "writers_of",
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
    leaves = (each.stream for each in walk(node) if isinstance(each, Scan | Changelog))
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


def condition_place(node: Node, *, over_groups: bool) -> Location | None:
    """Return the place of the only WHERE of a query, or of its HAVING; None: there are several."""
    groups = aggregate_of(node)
    below = [] if groups is None else list(walk(groups))
    found = [
        each.location
        for each in walk(node)
        if isinstance(each, Filter) and over_groups == (groups is not None and each not in below)
    ]
    return found[0] if len(found) == 1 else None


def group_place(node: Node, column: str) -> Location | None:
    """Return the place of the first expression that reads a column of the query's aggregate."""
    for each in walk(node):
        if isinstance(each, Project) and aggregate_of(each) is not None:
            for named in each.columns:
                if column in named.scalar.refs:
                    return named.place
    aggregate = aggregate_of(node)
    if aggregate is None:
        return None
    numbered = {key_column(number): place for number, place in enumerate(aggregate.places)}
    return numbered.get(column)


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


def writers_of(project: "Definitions", topic: str) -> tuple["Sink", ...]:
    """Return the sinks that write to a topic."""
    return tuple(sink for sink in project.sinks if sink.topic == topic)
