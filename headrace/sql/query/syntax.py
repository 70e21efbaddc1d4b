"""Nodes that sqlglot's tree has none for, and the span that every node of a query has."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlglot import exp

__all__ = [
    "WINDOW_TABLES",
    "AggregateCall",
    "Broken",
    "Missing",
    "WindowTable",
    "complete_spans",
    "has_span",
    "set_span",
    "span_of",
    "stamping",
]

_SPAN = "span"

#: The window functions of FROM, and what their arguments after relation and time are, in order.
WINDOW_TABLES = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "cumulate": ("step", "size", "offset"),
    "session": ("gap",),
}


class AggregateCall(exp.Expression):
    """`name([DISTINCT] arguments [IGNORE NULLS]) [FILTER (WHERE condition)] [IGNORE NULLS]`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,  # the name, in lower case
        "expressions": False,
        "quantifier": False,  # DISTINCT or ALL
        "nulls": False,  # IGNORE or RESPECT
        "filter": False,
    }


class Missing(exp.Expression):
    """An argument that is not there, beside a comma that is."""

    arg_types: ClassVar[dict[str, bool]] = {}


class WindowTable(exp.Expression):
    """`name(TABLE source [PARTITION BY ...], DESCRIPTOR(time), lengths)` in FROM.

    `expressions` are what follows the source; the `meta` of each says by which keyword it was
    given, and whether it is a descriptor.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,  # the name, in lower case
        "source": True,
        "partition": False,
        "expressions": False,
    }


class Broken(exp.Expression):
    """What could not be read; that is said already."""

    arg_types: ClassVar[dict[str, bool]] = {}


def span_of(node: exp.Expr) -> tuple[int, int]:
    """Return the indexes of the first and last token of a node that came from the text."""
    span: tuple[int, int] = node.meta[_SPAN]
    return span


def has_span(node: object) -> bool:
    """Whether this is a node that came from the text; sqlglot makes some up."""
    return isinstance(node, exp.Expr) and _SPAN in node.meta


def set_span(node: exp.Expr, first: int, last: int) -> None:
    """Note the indexes of a node's first and last token."""
    node.meta[_SPAN] = (first, last)


def stamping(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a parser that notes which tokens the node that it returns came from."""

    def parse(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Hot: every operand passes through some twenty of these methods.
        begin = self._index
        node = method(self, *args, **kwargs)
        end = self._index - 1
        if node is None or end < begin or not isinstance(node, exp.Expr):
            return node
        found = node.meta.get(_SPAN)
        if found is not None and found[1] == end and found[0] <= begin:
            return node
        first = begin if found is None else min(begin, found[0])
        for arg in args:
            if arg is node:
                return node
            # What was read before this method was called may be a part of its node.
            if has_span(arg):
                first = min(first, span_of(arg)[0])
        node.meta[_SPAN] = (first, end)
        return node

    return parse


def complete_spans(tree: exp.Expr, index: Mapping[int, int]) -> None:
    """Give each node the span of its parts, too: of `a + b + c` the parser returns one node.

    `index` maps where tokens start to their indexes.
    """
    for node in reversed(list(tree.walk())):
        span = node.meta.get(_SPAN)
        if span is None and node.meta.get("start") in index:
            at = index[node.meta["start"]]
            span = (at, at)
        for part in node.iter_expressions():
            other = part.meta.get(_SPAN)
            if span is None:
                span = other
            elif other is not None and (other[0] < span[0] or other[1] > span[1]):
                span = (min(span[0], other[0]), max(span[1], other[1]))
        if span is not None:
            node.meta[_SPAN] = span
