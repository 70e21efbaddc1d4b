"""The select list: names of the outputs, and `*` written out."""

from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from headrace.errors import Location, Problem
from headrace.model.names import name_fault
from headrace.sql.query.expressions import check_functions
from headrace.sql.query.scopes import Scope
from headrace.sql.query.syntax import Broken
from headrace.sql.query.trees import Tree, is_path
from headrace.sql.text import Refused, identifier

__all__ = ["Output", "read_outputs"]


@dataclass(frozen=True)
class Output:
    """One output: its name, where that or the expression stands, and the expression.

    `node` is None for a column that a star stands for.
    """

    name: str
    place: Location
    node: exp.Expr | None
    has_alias: bool = False


def read_outputs(
    tree: Tree, scope: Scope, select: exp.Select, *, grouped: bool, problems: list[Problem]
) -> list[Output | None]:
    """Return the outputs, stars written out; None for those with problems, which are added."""
    outputs: list[Output | None] = []
    for node in select.expressions:
        try:
            if _is_star(node.this if isinstance(node, exp.Alias) else node):
                outputs += _expand(tree, scope, node, grouped=grouped)
            else:
                outputs.append(
                    None if isinstance(node, Broken) else _read_output(tree, scope, node)
                )
        except Refused as refused:
            problems += refused.problems
            outputs.append(None)
    return outputs


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and bool(node.is_star))


def _expand(tree: Tree, scope: Scope, node: exp.Expr, *, grouped: bool) -> list[Output]:
    tokens = tree.tokens_of(node)
    has_alias = tokens[0].token_type != TokenType.STAR
    if grouped:
        raise tree.refuse(node, "* cannot stand in a grouped view; name the columns")
    qualifier = scope.relation.qualifier
    if has_alias and str(tokens[0].text).lower() != qualifier.lower():
        raise tree.refuse(
            node, f"{tokens[0].text}.* names no stream of this view; write {qualifier}.*"
        )
    if len(tokens) != (3 if has_alias else 1):
        raise tree.refuse(
            tokens[3 if has_alias else 1], "after * nothing may stand; name the columns instead"
        )
    return [Output(name, tree.location(node), None) for name in scope.columns.values()]


def _read_output(tree: Tree, scope: Scope, node: exp.Expr) -> Output:
    check_functions(tree, scope, node)
    if isinstance(node, exp.Alias):
        place, expression = tree.last(node), node.this
        if place.token_type == TokenType.STRING:
            raise tree.refuse(place, "an output's name is written without quotes: AS name")
        return Output(_checked(tree, place, str(place.text)), tree.source.location(place.start),
                      expression, has_alias=True)  # fmt: skip
    place = tree.first(node)
    if not is_path(node):
        raise tree.refuse(
            place, f"this output has no name; add AS name after {tree.text(node)[:40]}"
        )
    written = str(tree.last(node).text)
    name = scope.columns.get(written.lower(), written)
    return Output(_checked(tree, place, name), tree.location(node), node)


def _checked(tree: Tree, place: Token, name: str) -> str:
    fault = name_fault("output", name)
    if fault is not None:
        raise tree.refuse(place, f"{fault}; write AS {_proposal(name)}")
    return name


def _proposal(name: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "_" for each in name).strip("_")
    return identifier(kept[:40]) if kept and not kept[0].isdigit() else "name"
