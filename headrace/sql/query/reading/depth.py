"""How deep a query is nested, counted on its tokens: the answer is the same for every caller."""

from collections.abc import Sequence

from sqlglot import Token, TokenType

from headrace.sql.statements import CLOSING, OPENING, nesting
from headrace.sql.text import Source, word, words

__all__ = [
    "MAX_JOINS",
    "MAX_NESTING",
    "TOO_DEEP",
    "refuse_deep",
    "refuse_open",
    "refuse_unreadable",
]

#: Parentheses, CASE, signs, types and lambdas within each other.
MAX_NESTING = 64
TOO_DEEP = "the query is nested too deeply; write it in simpler steps"

#: Joins without ON take sqlglot twice as long with every further one.
MAX_JOINS = 8

_SIGNS = ("-", "+", "~", "!")
_UNITS = words("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND")
_LITERALS = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)


#: The windows of ksqlDB, as they are written here.
_WINDOWS = {
    "TUMBLING": "window(<event time>, '1 minute')",
    "HOPPING": "window(<event time>, '1 hour', '5 minutes')",
    "SESSION": "session_window(<event time>, '5 minutes')",
}


def refuse_unreadable(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse what sqlglot reads as something else, or only after a very long time."""
    joins = [token for token in tokens if word(token) == "JOIN"]
    if len(joins) > MAX_JOINS:
        raise source.refuse(joins[0], f"a query of {len(joins)} joins is not built yet")
    previous: Token | None = None
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.PIPE_GT:
            raise source.refuse(token, "|> is not supported; write SELECT ... FROM ... WHERE ...")
        if token.token_type == TokenType.L_BRACE:
            raise source.refuse(
                token, "{ has no meaning here; write named_struct('a', x) or map('a', x)"
            )
        if word(previous) == "WINDOW" and word(token) in ("TUMBLING", "HOPPING", "SESSION"):
            raise source.refuse(
                token,
                f"the {word(token)} window is written in GROUP BY: GROUP BY "
                f"{_WINDOWS[word(token)]}",
            )
        if word(token) == "MATCH_RECOGNIZE":
            raise source.refuse(token, "MATCH_RECOGNIZE is not built yet; remove it")
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if word(token) == "ROW" and following is not None and following.text == "<":
            raise source.refuse(token, "ROW<a INT> is written STRUCT<a: INT> here")
        if word(token) in ("FLOOR", "CEIL") and following is not None and following.text == "(":
            unit = _unit_behind_to(tokens, at + 1)
            if unit is not None:
                floor = f"date_trunc('{unit.lower()}', x)"
                how = f"FLOOR(x TO {unit}) is written {floor}"
                if word(token) == "CEIL":
                    how = f"CEIL(x TO {unit}) is not supported; {floor} rounds down"
                raise source.refuse(token, how)
        previous = token


def _unit_behind_to(tokens: Sequence[Token], opening: int) -> str | None:
    """Return the unit of `(x TO unit)`, the parenthesis of which opens at an index."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += nesting(tokens[at])
        if depth == 0:
            is_to = word(tokens[at - 2]) == "TO"
            return word(tokens[at - 1]) if is_to and word(tokens[at - 1]) in _UNITS else None
    return None


#: Words that begin a clause, behind which no bracket of an expression can close.
_CLAUSES = words("FROM WHERE HAVING UNION EXCEPT INTERSECT LIMIT") | {"GROUP BY", "ORDER BY"}
#: Functions whose arguments may have a FROM between them.
_WITH_FROM = words("EXTRACT OVERLAY POSITION SUBSTR SUBSTRING TRIM")
#: And those that may have an AS.
_WITH_AS = words("CAST NAMED_STRUCT STRUCT TRY_CAST")


def refuse_open(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse a bracket that is never closed: what follows it cannot be read for what it is."""
    stack: list[int] = []
    for at, token in enumerate(tokens):
        change = nesting(token)
        if change > 0:
            stack.append(at)
        elif change < 0 and stack:
            if CLOSING[token.text] != tokens[stack[-1]].text:
                break
            stack.pop()
    if stack:
        opening = tokens[stack[-1]]
        closing = OPENING[opening.text]
        before = _clause_within(tokens, stack[-1])
        where = "" if before is None else f" before {word(before)}"
        raise source.refuse(opening, f"{opening.text} is never closed; write {closing}{where}")


def _clause_within(tokens: Sequence[Token], opening: int) -> Token | None:
    """Return the first clause that begins within a bracket that is none of a query."""
    following = word(tokens[opening + 1]) if opening + 1 < len(tokens) else ""
    before = word(tokens[opening - 1]) if opening else ""
    if following in ("SELECT", "WITH") or before in _WITH_FROM:
        return None
    clauses = _CLAUSES if before in _WITH_AS else _CLAUSES | {"AS"}
    depth = 0
    for at in range(opening + 1, len(tokens)):
        depth += nesting(tokens[at])
        is_clause = word(tokens[at]) in clauses and word(tokens[at - 1]) != "DISTINCT"
        if depth <= 0 and is_clause:
            return tokens[at]
    return None


def refuse_deep(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse a query that is nested more than `MAX_NESTING` levels deep."""
    depth = types = 0
    signs = 0  # one after the other
    arrows = [0]  # of the lambdas in each parenthesis that is open
    previous: Token | None = None
    for token in tokens:
        text = word(token)
        change = nesting(token) + (text == "CASE") - (text == "END")
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
        signs = signs + 1 if is_sign or text == "NOT" else 0
        if depth + types + signs + arrows[-1] > MAX_NESTING:
            raise source.refuse(token, TOO_DEEP)
        previous = token


def _is_operand(token: Token | None) -> bool:
    if token is None or word(token) == "NOT":
        return False
    return token.token_type in _LITERALS or bool(word(token)) or token.text in (")", "]")
