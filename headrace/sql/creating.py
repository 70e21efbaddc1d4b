"""What a statement creates, told by its first words; what else it may be is answered here."""

from dataclasses import dataclass
from itertools import pairwise

from headrace.sql.statements import Cursor, Statement
from headrace.sql.text import word

__all__ = ["Kind", "accept_create", "created_name", "may_create_stream"]

_KNOWN = (
    "write CREATE STREAM ..., CREATE TABLE ..., CREATE VIEW ... AS SELECT ..., CREATE MATERIALIZED "
    "VIEW ... AS SELECT ... or CREATE SINK ..."
)
_REFUSED = {
    "DROP": "DROP is not a definition; delete the statement that creates it",
    "ALTER": "ALTER is not a definition; edit the statement that creates it",
    "INSERT": "INSERT is not a definition; append records, or rows of a table, with `headrace "
    "append`, and write a query that feeds a stream as CREATE STREAM name AS SELECT ...",
    "UPDATE": "UPDATE is not a definition; append the new row of a table with `headrace append`. "
    "Records of a stream are never changed",
    "DELETE": "DELETE is not a definition; delete a row of a table with `headrace append "
    "--delete`. Records of a stream are never changed",
    "MERGE": "MERGE is not a definition; append rows of a table with `headrace append`, where the "
    "newest of a key counts",
    "SELECT": "a query by itself is not a definition; run it with `headrace sql`, or write CREATE "
    "MATERIALIZED VIEW name AS before it",
    "WITH": "a query by itself is not a definition; run it with `headrace sql`, or write CREATE "
    "MATERIALIZED VIEW name AS before it",
    "SET": "SET is not a definition; write settings in headrace.toml",
    "USE": "USE is not supported: a project has no databases; remove it",
}
_CREATE_REFUSED = {
    "SOURCE": "CREATE SOURCE is written CREATE STREAM name (column TYPE, ...) WITH (topic = '...')",
    "CONNECTION": "CREATE CONNECTION is not needed: headrace.toml says where the log is; remove it",
    "FUNCTION": "functions of your own are not built yet; use Spark's",
    "TEMPORARY": "temporary definitions are not supported; remove TEMPORARY",
    "TEMP": "temporary definitions are not supported; remove TEMP",
}
_FIRST_WORDS = 4  # CREATE OR REPLACE STREAM
_TABLE_AS = (
    "a table that a query keeps up to date is a view; write CREATE MATERIALIZED VIEW {} AS SELECT "
    "..."
)


@dataclass(frozen=True)
class Kind:
    """What a statement creates: its words, and how people call it."""

    words: tuple[str, ...]
    name: str


STREAM = Kind(("STREAM",), "stream")
VIEW = Kind(("VIEW",), "view")
TABLE = Kind(("TABLE",), "table")
MATERIALIZED_VIEW = Kind(("MATERIALIZED", "VIEW"), "view")
SINK = Kind(("SINK",), "sink")


def accept_create(statement: Statement, cursor: Cursor) -> Kind:
    """Pass over CREATE [OR REPLACE] and what is created. Refused: it is another statement."""
    if not cursor.accept("CREATE"):
        advice = _REFUSED.get(word(cursor.peek()), f"this is not a definition; {_KNOWN}")
        raise statement.source.refuse(statement.tokens[0], advice)
    # In a folder of definitions both are the same: the statement says what is.
    cursor.accept("OR", "REPLACE")
    for kind in (STREAM, TABLE, VIEW, MATERIALIZED_VIEW, SINK):
        if cursor.accept(*kind.words):
            break
    else:
        found = word(cursor.peek()) or "alone"
        advice = _CREATE_REFUSED.get(found, f"CREATE {found} is not known; {_KNOWN}")
        raise cursor.refuse(advice)
    if kind is TABLE and _has_query(statement):
        table = statement.tokens[cursor.at - 1]
        raise statement.source.refuse(table, _TABLE_AS.format(created_name(statement)))
    if cursor.next_is("IF"):
        raise cursor.refuse("IF NOT EXISTS is not needed; remove it")
    return kind


def created_name(statement: Statement) -> str | None:
    """Return the name that a statement defines, also where the statement is refused; or None."""
    cursor = Cursor(statement.source, statement.tokens)
    if not cursor.accept("CREATE"):
        return None
    cursor.accept("OR", "REPLACE")
    for modifier in ("TEMPORARY", "TEMP", "EXTERNAL", "MATERIALIZED", "SOURCE"):
        cursor.accept(modifier)
    if not any(cursor.accept(what) for what in ("STREAM", "VIEW", "TABLE", "SINK")):
        return None
    cursor.accept("IF", "NOT", "EXISTS")
    token = cursor.peek()
    return None if token is None else str(token.text)


def may_create_stream(statement: Statement) -> bool:
    """Tell whether a statement that was refused may have been meant to define a stream."""
    first = {word(token) for token in statement.tokens[:_FIRST_WORDS]}
    return not first.isdisjoint(("STREAM", "SOURCE", "TABLE"))


def _has_query(statement: Statement) -> bool:
    words = [word(token) for token in statement.tokens]
    return any(
        first == "AS" and second in ("SELECT", "WITH", "(") for first, second in pairwise(words)
    )
