"""Nodes that sqlglot's tree has none for, and the span that every node of a query has."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, ClassVar

from sqlglot import exp

__all__ = [
    "WINDOW_TABLES",
    "AggregateCall",
    "Broken",
    "Kind",
    "Missing",
    "WindowTable",
    "complete_spans",
    "has_span",
    "holds",
    "nodes_of",
    "set_span",
    "span_of",
    "stamping",
]

_SPAN = "span"
_HOLDS = "holds"

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


class Kind(IntEnum):
    """Kinds of nodes that expressions are searched for, often in vain."""

    AGGREGATE = 1  # a call of an aggregate
    CALL = 2  # of any other function
    LAMBDA = 4
    #: What no expression may be, or only in some places.
    ODD = 8


_ODD = (
    exp.Command, exp.JSONExtract, exp.JSONExtractScalar, exp.Parameter, exp.Placeholder,
    exp.PropertyEQ, exp.Query, exp.QueryTransform, exp.SessionParameter, exp.Star,
)  # fmt: skip
_kinds: dict[type[exp.Expr], int] = {}  # of the classes that were met


def _kind_of(cls: type[exp.Expr]) -> int:
    kind = Kind.AGGREGATE * issubclass(cls, AggregateCall)
    kind += Kind.CALL * issubclass(cls, exp.Anonymous) + Kind.ODD * issubclass(cls, _ODD)
    return kind + (Kind.LAMBDA + Kind.ODD) * issubclass(cls, exp.Lambda)


def holds(node: exp.Expr, kind: Kind) -> bool:
    """Whether a node is of a kind, or has such a one below it."""
    return bool(node.meta.get(_HOLDS, -1) & kind)


def nodes_of(root: exp.Expr) -> list[exp.Expr]:
    """Return a node and all below it, each before its parts. Quicker than sqlglot's own walk."""
    return _nodes_of(root)[0]


def _nodes_of(root: exp.Expr) -> tuple[list[exp.Expr], list[int]]:
    """Return all nodes, and for each the index of the one that it is a part of."""
    found, parents = [root], [-1]
    for at, node in enumerate(found):  # which grows on the way
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
                parents.append(at)
            elif type(value) is list:
                parts = [part for part in value if isinstance(part, exp.Expr)]
                found += parts
                parents += [at] * len(parts)
    return found, parents


def complete_spans(tree: exp.Expr, index: Mapping[int, int]) -> None:
    """Give each node the span of its parts, too, and note which kinds of nodes it holds.

    Of `a + b + c` the parser returns one node. `index` maps where tokens start to their indexes.
    """
    found, parents = _nodes_of(tree)
    spans: list[tuple[int, int] | None] = [None] * len(found)  # of the parts of each
    kinds = [0] * len(found)
    for at in range(len(found) - 1, -1, -1):
        node = found[at]
        meta = node.meta
        kind = _kinds.get(type(node))
        if kind is None:
            kind = _kinds[type(node)] = _kind_of(type(node))
        kind |= kinds[at]
        span, parts = meta.get(_SPAN), spans[at]
        if span is None and meta.get("start") in index:
            token = index[meta["start"]]
            span = (token, token)
        if span is None:
            span = parts
        elif parts is not None and (parts[0] < span[0] or parts[1] > span[1]):
            span = (min(span[0], parts[0]), max(span[1], parts[1]))
        meta[_HOLDS] = kind
        if span is not None:
            meta[_SPAN] = span
        parent = parents[at]
        if parent < 0:
            continue
        kinds[parent] |= kind
        whole = spans[parent]
        if whole is None:
            spans[parent] = span
        elif span is not None:
            spans[parent] = (min(whole[0], span[0]), max(whole[1], span[1]))
