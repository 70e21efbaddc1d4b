"""Queries as relations: what a query gives to the one that reads it.

Nothing is worked out here: the planner writes a column out where it is read. So a column that uses
another twice, which uses another twice, grows without end; here it is measured, and refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.errors import Location
from headrace.model.definitions import Stream
from headrace.model.graph import outputs_of, streams_of
from headrace.model.nodes import (
    WATERMARK,
    WINDOW_COLUMNS,
    Aggregate,
    AssignWindows,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Leaf,
    Named,
    Node,
    Project,
    Scan,
    Union,
    call_column,
    key_column,
)
from headrace.model.references import scalars_of
from headrace.model.scalars import Scalar
from headrace.model.traits import traits_of
from headrace.schema.types import parse_type
from headrace.sql.query.expressions.scopes import Relation, RelationColumn, no_watermark

__all__ = [
    "MAX_EXPRESSION",
    "MAX_LEAVES",
    "MAX_LEVELS",
    "TooLong",
    "pass_watermark",
    "relation_of_select",
    "relation_of_union",
    "renamed",
]

#: Characters of one expression, with all that it uses written out, unless it is written so long.
MAX_EXPRESSION = 100_000
#: Queries over queries.
MAX_LEVELS = 64
#: Reads of streams by one query, with all that it reads written out.
MAX_LEAVES = 1_000

_HOLE = re.compile(r"\{\{|\}\}|\{(\d+)\}")
_TIMESTAMP = parse_type("TIMESTAMP")

_Columns = Mapping[str, RelationColumn]


class TooLong(Exception):
    """An expression would be longer than `MAX_EXPRESSION`; `place` is None where it has no name."""

    def __init__(self, size: int, place: Location | None) -> None:
        super().__init__(size)
        self.size = size
        self.place = place


def relation_of_select(node: Node, below: Relation, streams: Mapping[str, Stream]) -> Relation:
    """Return what a SELECT over a relation gives. TooLong.

    `node` is made of the relation's own and of what the SELECT puts over it.
    """
    if isinstance(node, Project):  # by position: a later query of UNION ALL may repeat a name
        found = _describe(node.input, below)
        columns = [_column(each.name, each.scalar, found, each.location) for each in node.columns]
    else:
        columns = list(_describe(node, below).values())
    traits = traits_of(node, streams)
    time = below.event_time or next(iter(_times(node, streams)), None)
    advice = f"select {time} in it as it is"
    if time is None:
        advice = no_watermark(f"the columns of {streams_of(node)[0]}")
    return Relation(
        "the subquery",
        "",
        node,
        tuple(columns),
        traits.event_time,
        timeless=advice if traits.append_only else "its rows are groups, not records",
        is_grouped=not traits.append_only,
        levels=below.levels + 1,
        leaves=below.leaves,
    )


def relation_of_union(branches: Sequence[Relation], streams: Mapping[str, Stream]) -> Relation:
    """Return what UNION ALL gives: the first query's names, and what all of them agree on.

    The others get its names too, so that which they had is no part of what the query is.
    """
    names = [column.name for column in branches[0].columns]
    inputs = [branches[0].node]
    for branch in branches[1:]:
        places = [each.location for each in outputs_of(branch.node)]
        inputs.append(_renamed(branch.node, names, places))
    node = Union(tuple(inputs))
    columns = []
    for alike in zip(*(branch.columns for branch in branches), strict=True):
        types = {column.type for column in alike}
        columns.append(
            replace(
                alike[0],
                type=types.pop() if len(types) == 1 else None,
                size=max(column.size for column in alike),
            )
        )
    return Relation(
        "the subquery",
        "",
        node,
        tuple(columns),
        traits_of(node, streams).event_time,
        timeless="select the event time of every query of UNION ALL, as it is, in the same place",
        levels=max(branch.levels for branch in branches),
        leaves=sum(branch.leaves for branch in branches),
    )


def renamed(relation: Relation, names: Sequence[str], places: Sequence[Location]) -> Relation:
    """Return a query with other names for its columns."""
    columns = tuple(
        replace(column, name=name) for column, name in zip(relation.columns, names, strict=True)
    )
    time = relation.event_time
    if time is not None:
        time = names[[column.name for column in relation.columns].index(time)]
    node = _renamed(relation.node, names, places)
    return replace(relation, node=node, columns=columns, event_time=time)


def _renamed(node: Node, names: Sequence[str], places: Sequence[Location]) -> Node:
    match node:
        case Project():
            given = zip(node.columns, names, places, strict=True)
            return replace(
                node,
                columns=tuple(replace(each, name=name, location=at) for each, name, at in given),
            )
        case Union():
            return Union(tuple(_renamed(each, names, places) for each in node.inputs))
        case Filter():
            # A condition is over its input's names, so they are given above it.
            own = [each.name for each in outputs_of(node)]
            return Project(
                node,
                tuple(
                    Named(name, Scalar.column(each), at)
                    for each, name, at in zip(own, names, places, strict=True)
                ),
            )
        case _:
            raise AssertionError(f"{type(node).__name__} is no query")


def _times(node: Node, streams: Mapping[str, Stream]) -> list[str]:
    """Return the event times of the streams below a node."""
    match node:
        case Scan() | Changelog():
            return [time for time in [streams[node.stream].event_time] if time is not None]
        case Union():
            return [time for each in node.inputs for time in _times(each, streams)]
        case _:
            return _times(node.input, streams)


def _describe(node: Node, below: Relation) -> _Columns:
    """Return the columns of a node, by name, from those of the relation that it stands over."""
    if node is below.node:
        return {column.name: column for column in below.columns}
    assert not isinstance(node, Leaf | Union)
    found = _describe(node.input, below)
    if not isinstance(node, Project):
        for scalar in scalars_of(node):
            _measure(scalar, found, None)
    match node:
        case Project():
            return {each.name: _column(each.name, each.scalar, found, each.location)
                    for each in node.columns}  # fmt: skip
        case Generate():
            return {**found, **{name: RelationColumn(name) for name in node.columns}}
        case AssignWindows():
            return {**found, **{name: RelationColumn(name, _TIMESTAMP) for name in WINDOW_COLUMNS}}
        case Aggregate():
            keys = (
                replace(
                    _column(key_column(at), key, found, None), origins=frozenset({key_column(at)})
                )
                for at, key in enumerate(node.keys)
            )
            calls = (call_column(at) for at in range(len(node.calls)))
            own = [RelationColumn(name, _TIMESTAMP, origins=frozenset({name}))
                   for name in (WINDOW_COLUMNS if node.window else ())]  # fmt: skip
            own += [RelationColumn(name, origins=frozenset({name})) for name in calls]
            return {column.name: column for column in (*own, *keys)}
        case _:
            return found


def _column(name: str, scalar: Scalar, below: _Columns, place: Location | None) -> RelationColumn:
    passed = below.get(scalar.name or "")
    origins = [below[ref].origins for ref in scalar.refs if ref in below]
    return RelationColumn(
        name,
        None if passed is None else passed.type,
        _measure(scalar, below, place),
        frozenset().union(*origins),
    )


def _measure(scalar: Scalar, below: _Columns, place: Location | None) -> int:
    """Return how long an expression is with its columns written out. TooLong."""
    if not scalar.refs:
        return len(scalar.text)
    size = largest = len(scalar.text)
    for hole in _HOLE.finditer(scalar.text):
        if hole[1]:
            column = below.get(scalar.refs[int(hole[1])])
            size += 0 if column is None else column.size
            largest = max(largest, 0 if column is None else column.size)
    # What was written so long by its author is no blow-up.
    if size > max(MAX_EXPRESSION, 2 * largest):
        raise TooLong(size, place)
    return size


def pass_watermark(node: Node, *, asked: bool = False) -> Node:
    """Return a query whose parts pass a record's watermark on to where watermark() is above them.

    They do so there alone: what a query is does not change with what it could be asked.
    """
    reads = asked or any(WATERMARK in scalar.refs for scalar in scalars_of(node))
    match node:
        case Scan() | Changelog() | Deduplicate():
            return node
        case Union():
            return _with_inputs(node, [pass_watermark(each, asked=asked) for each in node.inputs])
        case Aggregate():
            own = any(WATERMARK in scalar.refs for scalar in scalars_of(node))
            return _with_inputs(node, [pass_watermark(node.input, asked=own)])
        case Project():
            passed = _with_inputs(node, [pass_watermark(node.input, asked=reads)])
            assert isinstance(passed, Project)
            if not asked or any(each.name == WATERMARK for each in passed.columns):
                return passed
            watermark = Named(WATERMARK, Scalar.column(WATERMARK))
            return replace(passed, columns=(*passed.columns, watermark))
        case _:
            return _with_inputs(node, [pass_watermark(node.input, asked=reads)])


def _with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    if isinstance(node, Union):
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        return node if same else Union(tuple(inputs))
    assert not isinstance(node, Leaf | Deduplicate)
    return node if inputs[0] is node.input else replace(node, input=inputs[0])
