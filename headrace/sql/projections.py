"""The select list: names of the outputs, and `*` written out."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from headrace.errors import Problem
from headrace.model.names import name_fault
from headrace.sql.expressions import Scope, parse_tree
from headrace.sql.functions import AGGREGATES, find_calls, refused_functions
from headrace.sql.text import Refused, identifier, word
from headrace.sql.windows import misplaced_window

__all__ = ["Projection", "check_functions", "read_projections"]


@dataclass(frozen=True)
class Projection:
    """One output: its name, where the name or expression stands, and the expression's tokens."""

    name: str
    place: Token
    tokens: tuple[Token, ...]

    @property
    def has_alias(self) -> bool:
        """Whether the name was given by AS, and is not the column's own."""
        return self.place.start > self.tokens[-1].start


def read_projections(
    scope: Scope, parts: Sequence[tuple[Token, ...]], *, grouped: bool, problems: list[Problem]
) -> list[Projection]:
    """Return the outputs, stars written out; what is wrong with single ones is added."""
    projections: list[Projection] = []
    for tokens in parts:
        try:
            if any(_is_star(tokens[at : at + 1]) for at in _star_positions(tokens)):
                projections += _expand(scope, tokens, grouped=grouped)
            else:
                projections.append(_read_projection(scope, tokens))
        except Refused as refused:
            problems += refused.problems
    return projections


def check_functions(scope: Scope, tokens: Sequence[Token]) -> None:
    """Refuse what no expression of a view may use."""
    problems = refused_functions(scope.source, tokens, scope.columns)
    misplaced = misplaced_window(scope, tokens)
    if misplaced is not None:
        problems += misplaced.problems
    if problems:
        raise Refused(*problems)


def _star_positions(tokens: Sequence[Token]) -> list[int]:
    """Return where a star stands for columns: first, or after the alias and a dot."""
    return [0, 2] if len(tokens) > 2 and tokens[1].text == "." else [0]


def _is_star(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].token_type == TokenType.STAR


def _expand(scope: Scope, tokens: Sequence[Token], *, grouped: bool) -> list[Projection]:
    source, star = scope.source, tokens[0]
    if grouped:
        raise source.refuse(star, "* cannot stand in a grouped view; name the columns")
    has_alias = star.token_type != TokenType.STAR
    if has_alias and str(star.text).lower() != scope.qualifier.lower():
        raise source.refuse(
            star, f"{star.text}.* names no stream of this view; write {scope.qualifier}.*"
        )
    if len(tokens) != (3 if has_alias else 1):
        raise source.refuse(
            tokens[3 if has_alias else 1], "after * nothing may stand; name the columns instead"
        )
    return [
        Projection(
            name,
            star,
            (Token(TokenType.IDENTIFIER, name, star.line, star.col, star.start, star.end),),
        )
        for name in scope.columns.values()
    ]


def _read_projection(scope: Scope, tokens: tuple[Token, ...]) -> Projection:
    source = scope.source
    tree = parse_tree_checked(scope, tokens)
    if isinstance(tree, exp.Alias):
        place = tokens[-1]
        expression = tokens[:-2] if word(tokens[-2]) == "AS" else tokens[:-1]
        if place.token_type == TokenType.STRING or not expression:
            raise source.refuse(place, "an output's name is written without quotes: AS name")
        name = str(place.text)
    else:
        place, expression, column = tokens[0], tokens, tree
        is_window_time = word(tokens[0]) == "WINDOW" and len(source.slice(tokens[:1])) > 6
        if not isinstance(column, exp.Column) or is_window_time:
            raise source.refuse(
                place, f"this output has no name; add AS name after {source.slice(tokens)[:40]}"
            )
        name = scope.columns.get(column.name.lower(), column.name)
    fault = name_fault("output", name)
    if fault is not None:
        raise source.refuse(place, f"{fault}; write AS {_proposal(name)}")
    return Projection(name, place, expression)


def parse_tree_checked(scope: Scope, tokens: Sequence[Token]) -> exp.Expr:
    """Return the tree of a part of the query, after its functions were found allowed."""
    check_functions(scope, tokens)
    return parse_tree(scope.source, _without_arguments(tokens))


def _without_arguments(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens with nothing between the parentheses of aggregates, and nothing behind them.

    They are read by themselves, and sqlglot does not know all of their forms.
    """
    kept: list[Token] = []
    calls = {call.at: call for call in find_calls(tokens) if call.name in AGGREGATES}
    at = 0
    while at < len(tokens):
        call = calls.get(at)
        if call is None:
            kept.append(tokens[at])
            at += 1
        else:
            first = tokens[at]
            name = Token(TokenType.VAR, "_call", first.line, first.col, first.start, first.end)
            kept += [name, tokens[call.opening], tokens[call.closing]]
            at = call.end + 1
    return kept


def _proposal(name: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "_" for each in name).strip("_")
    return identifier(kept[:40]) if kept and not kept[0].isdigit() else "name"
