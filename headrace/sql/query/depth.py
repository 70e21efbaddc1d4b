"""How deep a query is nested, counted on its tokens: the answer is the same for every caller."""

from collections.abc import Sequence

from sqlglot import Token, TokenType

from headrace.sql.statements import nesting
from headrace.sql.text import Source, word

__all__ = ["MAX_JOINS", "MAX_NESTING", "TOO_DEEP", "refuse_deep", "refuse_unreadable"]

#: Parentheses, CASE, signs, types and lambdas within each other.
MAX_NESTING = 64
TOO_DEEP = "the query is nested too deeply; write it in simpler steps"

#: Joins without ON take sqlglot twice as long with every further one.
MAX_JOINS = 8

_SIGNS = ("-", "+", "~", "!")
_LITERALS = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)


def refuse_unreadable(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse what sqlglot reads as something else, or only after a very long time."""
    joins = [token for token in tokens if word(token) == "JOIN"]
    if len(joins) > MAX_JOINS:
        raise source.refuse(joins[0], f"a query of {len(joins)} joins is not built yet")
    previous: Token | None = None
    for token in tokens:
        if token.token_type == TokenType.PIPE_GT:
            raise source.refuse(token, "|> is not supported; write SELECT ... FROM ... WHERE ...")
        if word(previous) == "WINDOW" and word(token) in ("TUMBLING", "HOPPING", "SESSION"):
            raise source.refuse(
                token,
                "windows stand in GROUP BY: window(<event time>, '1 minute'), window(<event time>, "
                "'1 hour', '5 minutes') or session_window(<event time>, '5 minutes')",
            )
        previous = token


def refuse_deep(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse a query that is nested more than `MAX_NESTING` levels deep."""
    depth = types = 0
    signs = 0  # one after the other
    arrows = [0]  # of the lambdas in each parenthesis that is open
    previous: Token | None = None
    for token in tokens:
        change = nesting(token) + (word(token) == "CASE") - (word(token) == "END")
        depth += change
        if change > 0:
            arrows.append(0)
        elif change < 0 and len(arrows) > 1:
            arrows.pop()
        elif token.text == "->":
            arrows[-1] += 1
        elif token.text == "<" and word(previous) in ("ARRAY", "MAP", "STRUCT"):
            types += 1
        elif set(token.text) == {">"}:
            types = max(0, types - len(token.text))
        is_sign = token.text in _SIGNS and not _is_operand(previous)
        signs = signs + 1 if is_sign or word(token) == "NOT" else 0
        if depth + types + signs + arrows[-1] > MAX_NESTING:
            raise source.refuse(token, TOO_DEEP)
        previous = token


def _is_operand(token: Token | None) -> bool:
    if token is None or word(token) == "NOT":
        return False
    return token.token_type in _LITERALS or bool(word(token)) or token.text in (")", "]")
