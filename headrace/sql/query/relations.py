"""FROM: what a query reads, as a relation and the scope that it makes.

CTEs and derived tables are further relations: each is a query, bound by itself.
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from headrace.errors import Problem
from headrace.model.definitions import Stream
from headrace.model.names import closest, name_fault
from headrace.sql.query.clauses import ONE_STREAM, refused_clauses
from headrace.sql.query.scopes import Relation, Scope
from headrace.sql.query.syntax import Broken, WindowTable, span_of
from headrace.sql.query.trees import Tree, is_lateral
from headrace.sql.query.window_tables import bind_window_table
from headrace.sql.text import word

__all__ = ["Streams", "bind_from"]

#: Streams by name in lower case; None for one whose own statement was refused.
Streams = Mapping[str, Stream | None]


def bind_from(
    tree: Tree, select: exp.Select, streams: Streams, problems: list[Problem]
) -> Scope | None:
    """Return the scope that FROM makes; None: it makes none, which is said already."""
    source = select.args["from_"].this
    relation = _bind_relation(tree, source, streams, problems)
    beside: list[Relation] = []
    unknown = False
    for join in select.args.get("joins") or []:
        table = join.this
        if is_lateral(join):
            continue
        stream = streams.get(table.name.lower()) if isinstance(table, exp.Table) else None
        if stream is None:
            unknown = True
        else:
            beside.append(Relation.of_stream(stream, table.alias or None))
    if relation is None:
        return None
    return Scope(relation, beside=tuple(beside), beside_unknown=unknown)


def _bind_relation(
    tree: Tree, source: exp.Expr, streams: Streams, problems: list[Problem]
) -> Relation | None:
    """Return what one name in FROM stands for."""
    if isinstance(source, Broken):
        return None
    if not isinstance(source, exp.Table):
        problems.append(
            tree.problem(source, f"subqueries are not supported: {ONE_STREAM}; write its name")
        )
        return None
    name = tree.first(source)
    behind = tree.tokens[min(span_of(source)[0] + 1, len(tree.tokens) - 1)]
    if source.args.get("db"):
        message = "streams have no catalog or schema; write the stream's name alone"
        problems.append(tree.problem(behind, message))
        return None
    if isinstance(source.this, WindowTable):
        return _bind_windows(tree, source, source.this, streams, problems)
    if not isinstance(source.this, exp.Identifier):
        message = f"functions in FROM are not supported: {ONE_STREAM}; write its name"
        problems.append(tree.problem(behind, message))
        return None
    problems += refused_clauses(tree, source)
    alias = _read_alias(tree, source, problems)
    if str(name.text).lower() not in streams:
        known = [stream.name for stream in streams.values() if stream is not None]
        problems.append(
            tree.problem(
                name,
                f"there is no stream {name.text}{closest(name.text, known)}; a view reads a "
                "stream, so write CREATE STREAM first (views over views are not built yet)",
            )
        )
    stream = streams.get(str(name.text).lower())
    return None if stream is None else Relation.of_stream(stream, alias)


def _bind_windows(
    tree: Tree, source: exp.Table, node: WindowTable, streams: Streams, problems: list[Problem]
) -> Relation | None:
    """Return a relation with a window function around it."""
    problems += refused_clauses(tree, source)
    relation = _bind_relation(tree, node.args["source"], streams, problems)
    if relation is None:
        return None
    alias = _read_alias(tree, source, problems)
    qualified = relation if alias is None else replace(relation, qualifier=alias)
    return bind_window_table(tree, node, qualified, problems)


def _read_alias(tree: Tree, source: exp.Table, problems: list[Problem]) -> str | None:
    alias = source.args.get("alias")
    if alias is None or alias.this is None:
        return None
    if alias.columns:
        place = tree.after(alias.this)
        assert place is not None
        problems.append(tree.problem(place, "FROM takes one stream and an alias, not ("))
    token = tree.first(alias.this)
    if name_fault("alias", str(token.text)) or word(token) == "WINDOW":
        problems.append(tree.problem(token, f"alias {token.text} is reserved; choose another"))
    return str(token.text)
