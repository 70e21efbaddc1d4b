"""SELECT DISTINCT: groups by all that is selected, without calls."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.model.nodes import WINDOW_COLUMNS, Aggregate, Named, Node, Project, key_column
from headrace.model.scalars import Scalar

__all__ = ["distinct", "is_distinct"]


def distinct(node: Node, columns: Sequence[Named]) -> Node:
    """Return the different rows among those that a SELECT gives; what no column makes is no key."""
    keys = [*dict.fromkeys(each.scalar for each in columns if each.scalar.refs)]
    shown = [
        replace(each, scalar=Scalar.column(key_column(keys.index(each.scalar))))
        if each.scalar.refs
        else each
        for each in columns
    ]
    return Project(Aggregate(node, None, tuple(keys), ()), tuple(shown))


def is_distinct(aggregate: Aggregate, columns: Sequence[Named]) -> bool:
    """Whether no two groups give the same row: all that tells them apart is selected as it is."""
    shown = {each.scalar.name for each in columns}
    if not {key_column(number) for number in range(len(aggregate.keys))} <= shown:
        return False
    if aggregate.window is None:
        return True
    start, end, _ = WINDOW_COLUMNS
    if aggregate.window.kind == "cumulative":
        return end in shown  # its start is shared
    return start in shown or end in shown
