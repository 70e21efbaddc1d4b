"""`SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ...` into its clauses.

The clauses are cut on tokens, so that each part keeps its place in the file; what a view cannot
have (joins, ORDER BY, ...) is refused by name, and reading goes on behind it.
"""

from dataclasses import dataclass, field

from sqlglot import Token, TokenType

from headrace.errors import Problem
from headrace.sql.statements import Cursor, nesting, split_commas
from headrace.sql.text import Refused, word, words

__all__ = ["Clauses", "read_clauses"]

Tokens = tuple[Token, ...]

_WHEN_READING = "write it when you read the view"
_ONE_STREAM = "a view reads one stream"
_REFUSED = {
    "ORDER BY": f"ORDER BY is not part of a view, whose rows have no order; {_WHEN_READING}",
    "SORT BY": f"SORT BY is not part of a view, whose rows have no order; {_WHEN_READING}",
    "CLUSTER BY": "CLUSTER BY is not part of a view; remove it",
    "DISTRIBUTE BY": "DISTRIBUTE BY is not part of a view; remove it",
    "LIMIT": f"LIMIT is not part of a view, whose rows have no order; {_WHEN_READING}",
    "OFFSET": f"OFFSET is not part of a view, whose rows have no order; {_WHEN_READING}",
    "UNION": f"UNION is not built yet: {_ONE_STREAM}; make one view per stream",
    "EXCEPT": f"EXCEPT is not built yet: {_ONE_STREAM}; make one view per stream",
    "MINUS": f"MINUS is not built yet: {_ONE_STREAM}; make one view per stream",
    "INTERSECT": f"INTERSECT is not built yet: {_ONE_STREAM}; make one view per stream",
    "LATERAL": "LATERAL VIEW makes several rows of one record, which is not built yet; append one "
    "record per row",
    "QUALIFY": f"QUALIFY is not built yet; {_WHEN_READING}",
    "WINDOW": "the WINDOW clause is not built yet; write GROUP BY window(<event time>, '1 minute')",
    "PIVOT": f"PIVOT is not built yet; {_WHEN_READING}",
    "UNPIVOT": f"UNPIVOT is not built yet; {_WHEN_READING}",
    "TABLESAMPLE": "TABLESAMPLE gives another answer every time; use WHERE",
    "EMIT": "EMIT is not built yet; tables hold every row; remove it",
} | dict.fromkeys(
    words("JOIN INNER CROSS LEFT RIGHT FULL NATURAL SEMI ANTI"),
    f"joins are not built yet: {_ONE_STREAM}; join when you read the view",
)
_SET_OPERATORS = words("UNION EXCEPT MINUS INTERSECT")
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "HAVING")
#: What may stand before an operand: a clause's word after these is a column of that name.
_EXPECTS_OPERAND = words("AND OR NOT IS IN LIKE RLIKE ILIKE BETWEEN WHEN THEN ELSE CASE")


@dataclass
class Clauses:
    """The parts of one SELECT, each as its tokens; no part is empty."""

    projections: list[Tokens] = field(default_factory=list)
    stream: Token | None = None
    alias: Token | None = None
    where: Tokens | None = None
    group_by: list[Tokens] = field(default_factory=list)
    having: Tokens | None = None


def read_clauses(cursor: Cursor, problems: list[Problem]) -> Clauses:
    """Read a SELECT to its end; refused clauses are added to the problems and passed over.

    Refused: it is no SELECT over one stream at all.
    """
    select = cursor.peek()
    if cursor.next_is("WITH"):
        raise cursor.refuse(
            "WITH (common table expressions) is not built yet; write one SELECT over one stream"
        )
    if select is None or not cursor.accept("SELECT"):
        raise cursor.refuse(f"SELECT is expected here{cursor.found()}")
    if cursor.next_is("DISTINCT"):
        problems += cursor.refuse(
            "SELECT DISTINCT is not built yet; write GROUP BY and the columns"
        ).problems
    if cursor.next_is("DISTINCT") or cursor.next_is("ALL"):
        cursor.take("DISTINCT")
    clauses = Clauses()
    seen: dict[str, Token] = {}
    name, token = "SELECT", select
    while True:
        body = _take_until_clause(cursor, before_from=name == "SELECT")
        try:
            _keep(clauses, cursor, name, token, body, problems)
        except Refused as refused:
            problems += refused.problems
        if cursor.done:
            break
        token = cursor.take("a clause")
        name = word(token)
        if name in _REFUSED:
            problems.append(cursor.source.problem(token, _REFUSED[name]))
            if name in _SET_OPERATORS:
                break  # what follows is another query, which has its own FROM
        elif name in seen:
            problems.append(cursor.source.problem(token, f"{name} stands twice; keep one"))
        elif seen and _CLAUSES.index(name) < max(map(_CLAUSES.index, seen)):
            problems.append(
                cursor.source.problem(
                    token, f"{name} must stand before {word([*seen.values()][-1])}"
                )
            )
        if name in _CLAUSES:
            seen.setdefault(name, token)
    if "FROM" not in seen:
        raise cursor.source.refuse(select, "FROM is missing; write SELECT ... FROM <stream>")
    return clauses


def _take_until_clause(cursor: Cursor, *, before_from: bool) -> Tokens:
    begin, depth = cursor.at, 0
    while (token := cursor.peek()) is not None:
        depth += nesting(token)
        if depth < 0:
            raise cursor.source.refuse(token, f"{token.text} closes nothing; remove it")
        if depth == 0 and _starts_clause(cursor, begin, before_from=before_from):
            break
        cursor.at += 1
    return tuple(cursor.tokens[begin : cursor.at])


def _starts_clause(cursor: Cursor, begin: int, *, before_from: bool) -> bool:
    token = cursor.peek()
    name = word(token)
    previous = cursor.tokens[cursor.at - 1] if cursor.at > begin else None
    if name == "FROM":
        before = cursor.tokens[cursor.at - 2] if cursor.at - 1 > begin else None
        is_operator = word(previous) == "DISTINCT" and word(before) in ("IS", "NOT")
        return not is_operator and (previous is None or previous.text != ".")
    if name in ("WHERE", "GROUP BY", "HAVING"):
        return True
    # Before FROM these can only be names of columns, and so can they where an operand must stand.
    return not before_from and name in _REFUSED and previous is not None and _is_operand(previous)


def _is_operand(token: Token) -> bool:
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER):
        return True
    return (bool(word(token)) and word(token) not in _EXPECTS_OPERAND) or token.text in (")", "]")


def _keep(
    clauses: Clauses, cursor: Cursor, name: str, at: Token, body: Tokens, problems: list[Problem]
) -> None:
    source = cursor.source
    if name in _REFUSED:
        return
    if not body:
        raise source.refuse(at, f"nothing stands after {name}; write what it is about")
    if name == "FROM":
        _read_from(Cursor(source, body), clauses)
    elif name == "WHERE":
        clauses.where = body
    elif name == "HAVING":
        clauses.having = body
    else:
        parts = split_commas(body)
        if not all(parts):
            problems.append(source.problem(at, f"two commas of {name} have nothing between them"))
        kept = [part for part in parts if part]
        if name == "SELECT":
            clauses.projections = kept
        else:
            clauses.group_by = kept


def _read_from(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.next_is("("):
        raise cursor.refuse(f"subqueries are not supported: {_ONE_STREAM}; write its name")
    stream = cursor.take_name("name of a stream")
    if cursor.next_is("."):
        raise cursor.refuse("streams have no catalog or schema; write the stream's name alone")
    if cursor.next_is("("):
        raise cursor.refuse(f"functions in FROM are not supported: {_ONE_STREAM}; write its name")
    if cursor.next_is("FOR"):
        raise cursor.refuse("FOR SYSTEM_TIME AS OF (temporal joins) is not built yet; remove it")
    clauses.stream = stream
    has_as = cursor.accept("AS")
    if has_as or not (cursor.done or cursor.next_is(",")):
        clauses.alias = cursor.take_name("alias of the stream")
    if cursor.next_is(","):
        raise cursor.refuse(f"joins are not built yet: {_ONE_STREAM}; join when you read the view")
    if not cursor.done:
        raise cursor.refuse(f"FROM takes one stream and an alias{cursor.found()}")
