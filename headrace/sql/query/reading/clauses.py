"""What a query cannot have yet, by the word that it begins with: rules, and where they apply.

To open a clause, take its word from here and bind its node in `binder.py`.
"""

from collections.abc import Iterator

from sqlglot import Token, exp

from headrace.errors import Problem
from headrace.model.names import closest
from headrace.sql.query.reading.syntax import has_span, span_of
from headrace.sql.query.reading.trees import Tree, is_lateral
from headrace.sql.text import word, words

__all__ = [
    "foreign_clause",
    "misplaced_clauses",
    "refused_clauses",
    "set_operator",
    "unread",
]

_WHEN_READING = "write it when you read the view"
_JOINS = "joins are not built yet; join when you read the views"
_SETS = "{} is not built yet; make a view of each query, and compare them when you read"
_REFUSED = {
    "ORDER BY": f"ORDER BY is not part of a view, whose rows have no order; {_WHEN_READING}",
    "SORT BY": f"SORT BY is not part of a view, whose rows have no order; {_WHEN_READING}",
    "CLUSTER BY": "CLUSTER BY is not part of a view; remove it",
    "DISTRIBUTE BY": "DISTRIBUTE BY is not part of a view; remove it",
    "LIMIT": f"LIMIT is not part of a view, whose rows have no order; {_WHEN_READING}",
    "OFFSET": f"OFFSET is not part of a view, whose rows have no order; {_WHEN_READING}",
    "UNION": "UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY "
    "over it",
    "EXCEPT": _SETS.format("EXCEPT"),
    "MINUS": _SETS.format("MINUS"),
    "INTERSECT": _SETS.format("INTERSECT"),
    "QUALIFY": f"QUALIFY is not built yet; {_WHEN_READING}",
    "WINDOW": "the WINDOW clause is not built yet; write GROUP BY window(<event time>, '1 minute')",
    "PIVOT": f"PIVOT is not built yet; {_WHEN_READING}",
    "UNPIVOT": f"UNPIVOT is not built yet; {_WHEN_READING}",
    "TABLESAMPLE": "TABLESAMPLE gives another answer every time; use WHERE",
    "EMIT": "EMIT is no clause here; write it as an option: CREATE MATERIALIZED VIEW name WITH "
    "(emit = 'final') AS ...",
    "EMIT CHANGES": "EMIT CHANGES is what a view does anyway; remove it",
    "PARTITION BY": "PARTITION BY is not needed: GROUP BY brings equal values together from all "
    "partitions; remove it. What a stream writes to a topic gets another key by WITH (topic = "
    "'...', key = '<column>')",
    "PARTITION": "PARTITION is not needed: a stream is read whole; remove it, or write WHERE",
    "FOR": "FOR SYSTEM_TIME AS OF (temporal joins) is not built yet; remove it",
    "WITHIN": _JOINS,
    ",": _JOINS,
} | dict.fromkeys(words("JOIN INNER CROSS LEFT RIGHT FULL NATURAL SEMI ANTI"), _JOINS)
#: Clauses whose nodes do not tell where they stand.
_UNSPANNED = {
    "locks": "FOR UPDATE locks rows of a table, and a view has none to lock; remove it",
    "kind": "SELECT AS STRUCT is not supported; write SELECT named_struct('a', a, 'b', b) AS name",
}
#: The arguments of a SELECT and of what it reads FROM that the binder knows.
_BOUND = words(
    "expression expressions from_ laterals where group having with_ this alias db catalog distinct"
)
#: What a word may be meant for that is none.
_CLAUSES = ("WHERE", "GROUP BY", "HAVING", "LATERAL VIEW", "UNION ALL")
_ORDER = (("from_", "FROM"), ("where", "WHERE"), ("group", "GROUP BY"), ("having", "HAVING"))


def refused_clauses(tree: Tree, node: exp.Expr) -> Iterator[Problem]:
    """Yield a problem for every clause of a SELECT, or of what stands in FROM, not built yet."""
    for name, value in node.args.items():
        is_operator = isinstance(node, exp.SetOperation) and name in ("distinct", "by_name")
        if name in _BOUND or not value or is_operator:
            continue
        parts = value if isinstance(value, list) else [value]
        for part in parts[:1] if name == "windows" else parts:
            if is_lateral(part):
                continue
            token = tree.first(part) if has_span(part) else _first_word(tree, node, name)
            if name == "windows":
                token = tree.tokens[span_of(part)[0] - 1]
            yield tree.problem(token, _UNSPANNED.get(name) or _message(token))


def _first_word(tree: Tree, node: exp.Expr, name: str) -> Token:
    """Return the word that a clause begins with whose node does not tell where it stands."""
    tokens = tree.tokens_of(node)
    if name == "locks":  # at the end; a function may have a FOR before
        tokens = tokens[::-1]
    wanted = {"locks": "FOR", "kind": "AS"}.get(name)
    return next((token for token in tokens if word(token) == wanted), tree.first(node))


def _message(token: Token) -> str:
    return _REFUSED.get(word(token) or token.text) or (
        f"{word(token) or token.text} is not supported here; remove it"
    )


def foreign_clause(token: Token, following: Token | None) -> str | None:
    """Return the answer to a clause that other engines have, None for any other word."""
    if word(token) not in ("EMIT", "PARTITION BY"):
        return None
    return _REFUSED.get(f"{word(token)} {word(following)}") or _REFUSED[word(token)]


def misplaced_clauses(tree: Tree, select: exp.Select) -> Iterator[Problem]:
    """Yield a problem for every clause that stands behind one that it should stand before."""
    found = [(name, select.args[key]) for key, name in _ORDER if select.args.get(key)]
    for at, (name, clause) in enumerate(found):
        before = [other for other, node in found[at + 1 :] if span_of(node) < span_of(clause)]
        if before:
            yield tree.problem(clause, f"{name} must stand before {before[-1]}")


def set_operator(tree: Tree, node: exp.SetOperation) -> Problem | None:
    """Return the problem of UNION and its kin; None: it is UNION ALL."""
    # Behind the first query stand the parentheses around it, which are no part of it.
    at = span_of(node.this)[1] + 1
    while tree.tokens[at].text == ")":
        at += 1
    token = tree.tokens[at]
    if isinstance(node, exp.Union) and node.args.get("by_name"):
        return tree.problem(
            token, "UNION BY NAME is not supported; select the columns in the same order"
        )
    if isinstance(node, exp.Union) and not node.args.get("distinct"):
        return None
    return tree.problem(token, _message(token))


def unread(tree: Tree) -> Problem | None:
    """Return the problem of what stands behind a query that could be read, if there is any."""
    if tree.end == len(tree.tokens):
        return None
    token = tree.tokens[tree.end]
    if token.text in (")", "]", "}"):
        return tree.problem(token, f"this {token.text} closes no bracket; remove it")
    if word(token) == "FROM":
        return tree.problem(token, "FROM must follow the columns of SELECT")
    # Behind a name in FROM a word is an alias, and one that is misspelled may be, too.
    for each in (token, tree.tokens[tree.end - 1]):
        meant = closest(word(each), _CLAUSES)
        if meant and word(each) not in (*_CLAUSES, *_REFUSED):
            return tree.problem(each, f"{each.text} begins no clause{meant}")
    following = tree.tokens[tree.end + 1] if tree.end + 1 < len(tree.tokens) else None
    known = foreign_clause(token, following) or _REFUSED.get(word(token) or token.text)
    shown = tree.source.text[token.start : token.end + 1]
    return tree.problem(token, known or f"this query cannot be read near {shown}; check its syntax")
