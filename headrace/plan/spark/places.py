"""Every expression of a view by itself, with its place in the text.

Spark checks a view as one query, and says what is wrong in terms of that. If it refuses the query,
it is asked for each expression alone, what is read before what reads it: the first that it refuses
is the cause, and its place is told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.errors import Location
from headrace.model import nodes
from headrace.model.graph import group_place, outputs_of
from headrace.model.nodes import call_column, key_column
from headrace.model.scalars import Scalar
from headrace.plan.spark.names import quoted
from headrace.plan.spark.relations import relation_query, scalar_text

__all__ = ["Expression", "expressions_of"]


@dataclass(frozen=True)
class Expression:
    """An expression; `query` asks Spark for it alone. `location` is None if no place is known."""

    text: str  # over the names that the user knows
    query: str
    location: Location | None


def expressions_of(node: nodes.Node, leaves: Mapping[str, str]) -> Iterator[Expression]:
    """Yield the expressions of a tree, from its leaves up; `leaves` as in `relation_query`.

    Those over an aggregate are left out: without its types they cannot be asked for.
    """
    yield from _below(node, node, leaves)


def _below(node: nodes.Node, top: nodes.Node, leaves: Mapping[str, str]) -> Iterator[Expression]:
    """Yield those of a node below `top`, and of what it reads."""
    for each in nodes.inputs_of(node):
        yield from _below(each, top, leaves)
    if isinstance(node, nodes.Union):
        yield from _united(node, leaves)
    if isinstance(node, nodes.Leaf | nodes.Deduplicate | nodes.Union) or _is_over_groups(node):
        return
    relation = relation_query(node.input, leaves)
    for scalar, location in _scalars(node, top):
        if scalar.name is None:
            query = f"SELECT {scalar_text(scalar)} AS x FROM ({relation})"
            known = location if location is not None and location.file else None
            yield Expression(scalar.render(str), query, known)


def _united(node: nodes.Union, leaves: Mapping[str, str]) -> Iterator[Expression]:
    """Yield each column of a later query, asked for in one union with that of the first."""
    first, *others = node.inputs
    names = [each.name for each in outputs_of(first)]
    above = relation_query(first, leaves)
    for other in others:
        below = relation_query(other, leaves)
        for name, named in zip(names, outputs_of(other), strict=False):
            column = f"SELECT {quoted(name)} AS x FROM"
            query = f"{column} ({above}) UNION ALL {column} ({below})"
            text = f"{named.scalar.render(str)} as {name}, a column of UNION ALL"
            yield Expression(text, query, named.place if named.place.file else None)


def _is_over_groups(node: nodes.Node) -> bool:
    below = nodes.inputs_of(node)
    while below:
        if isinstance(below[0], nodes.Aggregate):
            return True
        below = nodes.inputs_of(below[0])
    return False


def _scalars(node: nodes.Node, top: nodes.Node) -> Iterator[tuple[Scalar, Location | None]]:
    match node:
        case nodes.Project():
            yield from ((each.scalar, each.place) for each in node.columns)
        case nodes.Filter():
            yield node.condition, node.location
        case nodes.Generate():
            yield node.argument, None
        case nodes.Aggregate():
            for at, key in enumerate(node.keys):
                # What reads the window has no relation to be asked of.
                if not set(key.refs) & set(nodes.WINDOW_COLUMNS):
                    yield key, group_place(top, key_column(at))
            for at, call in enumerate(node.calls):
                conditions = () if call.condition is None else (call.condition,)
                for scalar in (*call.arguments, *conditions):
                    yield scalar, group_place(top, call_column(at))
