"""FROM: what a query reads, as a relation and the scope that it makes.

A name is that of a stream, of a named query or of a common table expression. A query in parentheses
is bound by itself, by `bind`, which the caller gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import Token, TokenType, exp

from headrace.errors import Problem
from headrace.model.graph import outputs_of
from headrace.model.names import name_fault
from headrace.sql.query.expressions.scopes import Naming, Relation, Scope
from headrace.sql.query.reading.clauses import refused_clauses
from headrace.sql.query.reading.syntax import Broken, WindowTable, span_of
from headrace.sql.query.reading.trees import Tree, is_lateral
from headrace.sql.query.relations.derived import renamed
from headrace.sql.query.relations.names import Names
from headrace.sql.query.relations.window_tables import bind_window_table
from headrace.sql.text import word

__all__ = ["bind_from", "columns_text", "name_columns", "repeated_columns"]

#: Binds a query that stands within another; None: it has problems, or what it reads has.
Bind = Callable[[exp.Expr, Names, Naming], Relation | None]


def bind_from(
    tree: Tree, select: exp.Select, names: Names, bind: Bind, problems: list[Problem]
) -> Scope | None:
    """Return the scope that FROM makes; None: it makes none, which is said already."""
    source = select.args["from_"].this
    relation = _bind_relation(tree, source, names, bind, problems)
    beside: list[Relation] = []
    unknown = False
    for join in select.args.get("joins") or []:
        table = join.this
        if is_lateral(join):
            continue
        known = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        # What is joined is refused already: that it is not known is no further problem.
        other = names.find(tree, tree.first(table.this), []) if known else None
        if other is None:
            unknown = True
        else:
            beside.append(replace(other, qualifier=table.alias or other.qualifier))
    if relation is None:
        return None
    return Scope(relation, beside=tuple(beside), beside_unknown=unknown)


def _bind_relation(
    tree: Tree, source: exp.Expr, names: Names, bind: Bind, problems: list[Problem]
) -> Relation | None:
    """Return what one part of FROM stands for."""
    if isinstance(source, Broken):
        return None
    if isinstance(source, exp.Subquery):
        relation = _bind_parenthesised(tree, source, names, bind, problems)
    elif isinstance(source, exp.Table) and isinstance(source.this, WindowTable):
        relation = _bind_relation(tree, source.this.args["source"], names, bind, problems)
        if relation is not None:
            relation = bind_window_table(tree, source.this, relation, problems)
    elif isinstance(source, exp.Table):
        relation = _bind_name(tree, source, names, problems)
    else:
        first = tree.first(source)
        what = "VALUES" if isinstance(source, exp.Values) else word(first) or first.text
        message = f"{what} cannot stand in FROM; write a stream or a query in parentheses"
        problems.append(tree.problem(first, message))
        return None
    problems += refused_clauses(tree, source)
    alias = _read_alias(tree, source, problems)
    if relation is None or alias is None or alias.this is None:
        return relation
    name = tree.first(alias.this)
    columns = [tree.first(column) for column in alias.args.get("columns") or []]
    named = name_columns(tree, relation, columns, name, problems)
    if named is None:
        return None
    qualifier = str(name.text)
    # A subquery is known by its alias, a stream by its name.
    known_as = qualifier if isinstance(source, exp.Subquery) else named.name
    return replace(named, name=known_as, qualifier=qualifier)


def _bind_parenthesised(
    tree: Tree, source: exp.Subquery, names: Names, bind: Bind, problems: list[Problem]
) -> Relation | None:
    if isinstance(source.this, exp.Table):  # FROM (stream)
        return _bind_relation(tree, source.this, names, bind, problems)
    alias = source.args.get("alias")
    is_renamed = alias is not None and bool(alias.columns)
    relation = bind(source.this, names, Naming.GIVEN if is_renamed else Naming.IF_READ)
    if relation is not None and not is_renamed:
        problems += repeated_columns(relation)
    return relation


def repeated_columns(relation: Relation) -> list[Problem]:
    """Return a problem for each column of a query that has the name of another."""
    seen: set[str] = set()
    problems: list[Problem] = []
    for named in outputs_of(relation.node):
        if named.name.lower() in seen:
            message = f"output {named.name} occurs twice (names are not case-sensitive); rename one"
            problems.append(Problem(named.location, message))
        seen.add(named.name.lower())
    return problems


def _bind_name(
    tree: Tree, source: exp.Table, names: Names, problems: list[Problem]
) -> Relation | None:
    behind = tree.tokens[min(span_of(source)[0] + 1, len(tree.tokens) - 1)]
    if source.args.get("db"):
        message = "streams have no catalog or schema; write the stream's name alone"
        problems.append(tree.problem(behind, message))
        return None
    if not isinstance(source.this, exp.Identifier):
        message = "functions in FROM are not supported; write a stream or a query in parentheses"
        problems.append(tree.problem(behind, message))
        return None
    return names.find(tree, tree.first(source), problems)


def _read_alias(tree: Tree, source: exp.Expr, problems: list[Problem]) -> exp.Expr | None:
    alias: exp.Expr | None = source.args.get("alias")
    if alias is None or alias.this is None:
        return None
    token = tree.first(alias.this)
    if name_fault("alias", str(token.text)) or word(token) == "WINDOW":
        problems.append(tree.problem(token, f"alias {token.text} is reserved; choose another"))
    return alias


def name_columns(
    tree: Tree,
    relation: Relation,
    tokens: Sequence[Token],
    name: Token,
    problems: list[Problem],
) -> Relation | None:
    """Return a query under the names of a column list, `t (a, b)`; without a list as it is.

    None: the list does not fit, which is added to the problems.
    """
    if not tokens:
        return relation
    if not outputs_of(relation.node):
        problems.append(
            tree.problem(
                tokens[0],
                f"a column list gives names to the columns of a query, and {relation.name} has "
                "its own; write SELECT a AS b",
            )
        )
        return None
    if len(tokens) != len(relation.columns):
        problems.append(
            tree.problem(
                tokens[0],
                f"{name.text} has {columns_text(len(relation.columns))}, and the list names "
                f"{len(tokens)}; write one name for each",
            )
        )
        return None
    before = len(problems)
    problems += _column_list_faults(tree, tokens)
    if len(problems) > before:
        return None
    names = [str(token.text) for token in tokens]
    return renamed(relation, names, [tree.source.location(token.start) for token in tokens])


def columns_text(count: int) -> str:
    """Return `1 column`, `2 columns`, ... for messages."""
    return f"{count} column{'' if count == 1 else 's'}"


def _column_list_faults(tree: Tree, tokens: Sequence[Token]) -> list[Problem]:
    """Return what is wrong with the names in a column list."""
    problems: list[Problem] = []
    seen: set[str] = set()
    for token in tokens:
        name = str(token.text)
        fault = name_fault("column", name)
        if token.token_type == TokenType.STRING:
            fault = "a column's name is written without quotes"
        elif name.lower() in seen:
            fault = f"column {name} occurs twice (names are not case-sensitive); rename one"
        problems += [tree.problem(token, fault)] if fault else []
        seen.add(name.lower())
    return problems
