"""The tree of a query into nodes.

    Project(Filter?(relation))                                              without groups
    Project(Filter?(Aggregate(Filter?(relation))))                          with them

`bind_query` is for any query, wherever it stands: CTEs, derived tables and the branches of a UNION
are further calls of it, with a scope that has this one as its parent.
"""

from sqlglot import exp

from headrace.errors import Problem
from headrace.model.nodes import Node
from headrace.sql.query.clauses import misplaced_clauses, refused_clauses, set_operator
from headrace.sql.query.relations import Streams, bind_from
from headrace.sql.query.select import SelectBinder
from headrace.sql.query.trees import Tree, is_broken

__all__ = ["bind_query"]


def bind_query(
    tree: Tree, query: exp.Expr, streams: Streams, problems: list[Problem]
) -> Node | None:
    """Return the node of a query; None: it reads a stream that was refused, or has problems.

    Those are added. Refused: it is no query over one stream at all.
    """
    before = len(problems)
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
        if len(problems) > before or is_broken(query.expressions):
            return None
        raise tree.refuse(query, "FROM is missing; write SELECT ... FROM <stream>")
    scope = bind_from(tree, query, streams, problems)
    if scope is None:
        return None
    node = SelectBinder(tree, query, scope, problems).bind()
    return node if len(problems) == before else None
