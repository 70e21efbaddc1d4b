"""The tree of a query into nodes.

    Project(Filter?(relation))                                              without groups
    Project(Filter?(Aggregate(Filter?(relation))))                          with them

`_bind_query` is for any query, wherever it stands: CTEs, derived tables and the branches of a UNION
are further calls of it, with a scope that has this one as its parent.
"""

from collections.abc import Sequence

from sqlglot import Token, exp

from headrace.errors import Problem
from headrace.model.nodes import Node
from headrace.sql.query.clauses import misplaced_clauses, refused_clauses, set_operator, unread
from headrace.sql.query.parser import parse_query
from headrace.sql.query.relations import Streams, bind_from
from headrace.sql.query.select import SelectBinder
from headrace.sql.query.trees import Tree, is_broken
from headrace.sql.text import Refused, Source

__all__ = ["read_query"]


def read_query(
    source: Source, tokens: Sequence[Token], streams: Streams, problems: list[Problem]
) -> Node | None:
    """Return the node of the query that the tokens are; None: it has problems, or its stream has.

    Its own are added, in the order of the text.
    """
    found: list[Problem] = []
    node: Node | None = None
    try:
        tree = parse_query(source, tokens, found)
        behind = unread(tree)
        found += [] if behind is None else [behind]
        node = _bind_query(tree, tree.root, streams, found)
    except Refused as refused:
        found += refused.problems
    problems += sorted(found, key=lambda problem: problem.location)
    return None if found else node


def _bind_query(
    tree: Tree, query: exp.Expr, streams: Streams, problems: list[Problem]
) -> Node | None:
    """Return the node of a query; None: it reads a stream that was refused.

    Problems are added; after one of them the node is not to be used. Refused: it is no query over
    one stream at all.
    """
    if query.args.get("with_"):
        raise tree.refuse(
            query.args["with_"],
            "WITH (common table expressions) is not built yet; write one SELECT over one stream",
        )
    while isinstance(query, exp.SetOperation):
        problems.append(set_operator(tree, query))
        query = query.this  # the branches behind it are queries of their own
    if not isinstance(query, exp.Select):
        raise tree.refuse(query, f"SELECT is expected here, not {tree.first(query).text}")
    problems += refused_clauses(tree, query)
    problems += misplaced_clauses(tree, query)
    if not query.args.get("from_"):
        if is_broken(query.expressions) or tree.end < len(tree.tokens):
            return None  # that may have hidden it, and is said already
        raise tree.refuse(query, "FROM is missing; write SELECT ... FROM <stream>")
    scope = bind_from(tree, query, streams, problems)
    if scope is None:
        return None
    return SelectBinder(tree, query, scope, problems).bind()
