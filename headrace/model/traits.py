"""Traits: what holds for every row of a node, worked out in one pass from the leaves.

What a definition may do follows from traits, not from which nodes it is made of: a window needs an
event time, whether it stands over a stream or over what was selected from one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from headrace.model.definitions import Stream
from headrace.model.nodes import (
    COORDINATES,
    WATERMARK,
    WINDOW_COLUMNS,
    Aggregate,
    AssignWindows,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Node,
    Project,
    Scan,
    Union,
    call_column,
    key_column,
)

__all__ = ["Bound", "Traits", "traits_of"]

#: How much a node has to remember: nothing, what is of some time, or a row for each key.
Bound = Literal["nothing", "time", "keys"]


@dataclass(frozen=True)
class Traits:
    """What holds for the rows of a node.

    `append_only` rows are records: once there, they stay as they are, and their coordinates tell
    them apart. Others are signed: they come and go, and `key` names the columns that tell them
    apart. `bound` is the largest of the node and all below it.
    """

    columns: tuple[str, ...]
    append_only: bool = True
    key: tuple[str, ...] = ()
    event_time: str | None = None  # the column
    in_offset_order: bool = True  # a partition's rows come in the order of its offsets
    bound: Bound = "nothing"


def traits_of(node: Node, streams: Mapping[str, Stream]) -> Traits:
    """Return the traits of a node; `streams` has every stream below it, by name."""
    match node:
        case Scan() | Changelog():
            return _scan(streams[node.stream])
        case Deduplicate():
            return replace(traits_of(node.input, streams), bound="time")
        case Filter():
            return traits_of(node.input, streams)
        case Project():
            return _project(node, traits_of(node.input, streams))
        case Generate():
            below = traits_of(node.input, streams)
            return replace(below, columns=(*below.columns, *node.columns))
        case AssignWindows():
            below = traits_of(node.input, streams)
            return replace(below, columns=(*below.columns, *WINDOW_COLUMNS))
        case Union():
            return _union([traits_of(each, streams) for each in node.inputs])
        case Aggregate():
            return _aggregate(node)


def _scan(stream: Stream) -> Traits:
    columns = tuple(column.name for column in stream.scanned)
    own = () if stream.event_time is None else (WATERMARK,)
    return Traits((*columns, *COORDINATES, *own), event_time=stream.event_time)


def _project(node: Project, below: Traits) -> Traits:
    # A column that is passed on twice is known by the first of its names.
    passed: dict[str, str] = {}
    for column in node.columns:
        if column.scalar.name is not None:
            passed.setdefault(column.scalar.name, column.name)
    keeps_key = all(name in passed for name in below.key)
    return replace(
        below,
        columns=tuple(column.name for column in node.columns),
        key=tuple(passed[name] for name in below.key) if keeps_key else (),
        event_time=passed.get(below.event_time or ""),
    )


def _union(branches: list[Traits]) -> Traits:
    """Return the traits of a union, whose columns go by position.

    It has an event time where one column is that of every branch. Rows of two branches may be of
    one partition, so its order is lost.
    """
    first = branches[0]
    times = {
        each.columns.index(each.event_time) if each.event_time in each.columns else None
        for each in branches
    }
    place = times.pop() if len(times) == 1 else None
    order: tuple[Bound, ...] = ("nothing", "time", "keys")
    return Traits(
        first.columns,
        append_only=all(each.append_only for each in branches),
        event_time=None if place is None else first.columns[place],
        in_offset_order=False,
        bound=max((each.bound for each in branches), key=order.index),
    )


def _aggregate(node: Aggregate) -> Traits:
    keys = tuple(key_column(number) for number in range(len(node.keys)))
    calls = tuple(call_column(number) for number in range(len(node.calls)))
    if node.window is None:
        return Traits((*keys, *calls), False, keys, None, in_offset_order=False, bound="keys")
    start, end, _ = WINDOW_COLUMNS
    # All windows of a cumulative one begin together, up to its size.
    edges = (start, end) if node.window.kind == "cumulative" else (start,)
    columns = (*WINDOW_COLUMNS, *keys, *calls)
    return Traits(columns, False, (*edges, *keys), None, in_offset_order=False, bound="time")
