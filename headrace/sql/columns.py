"""`name TYPE [FROM 'place'] [FORMAT 'format'] [NOT NULL]`: one column of a stream.

Or `name [TYPE] AS expression`, which is taken apart here and read in computed.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from headrace.schema.json_places import parse_place
from headrace.schema.types import TIMESTAMP_FORMATS, Column, Step, parse_type
from headrace.sql.computed import Written
from headrace.sql.statements import Cursor, nesting, split_commas
from headrace.sql.text import Source, word, words

__all__ = ["PrimaryKey", "accept_primary_key", "read_column", "split_columns"]

_NOT_TYPES = words(
    "CHECK COLLATE COMMENT DEFAULT GENERATED HEADER HEADERS KEY METADATA PRIMARY REFERENCES UNIQUE"
)
_KEY = "write key = '{0}' in WITH (...)"
#: What to write for those that mean something here.
_INSTEAD = {
    "COMMENT": "write -- before the comment",
    "HEADER": "views read all headers of a record as _headers",
    "HEADERS": "views read all headers of a record as _headers",
    "KEY": _KEY,
    "METADATA": "views read _arrival, _key, _headers, _topic, _partition and _offset of a record, "
    "and WATERMARK FOR _arrival makes the first of them the event time",
    "PRIMARY": _KEY,
    "UNIQUE": "write unique = '{0}' in WITH (...)",
}
#: What begins a rule about columns, not a column.
_RULES = words("CONSTRAINT FOREIGN PRIMARY UNIQUE")
_BEHIND = "only FROM, FORMAT, NOT NULL and AS may stand"


@dataclass(frozen=True)
class PrimaryKey:
    """A column of a table that is its primary key."""

    column: Column


def split_columns(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Split at commas outside of parentheses and of `<...>` within types."""
    items: list[tuple[Token, ...]] = []
    begin = depth = 0
    is_type = True  # until AS, behind which `<` compares
    for index, token in enumerate(tokens):
        depth += _depth(token) if is_type else nesting(token)
        is_type = is_type and not (depth == 0 and index > begin and word(token) == "AS")
        if depth == 0 and token.token_type == TokenType.COMMA:
            items.append(tuple(tokens[begin:index]))
            begin = index + 1
            is_type = True
    return [*items, tuple(tokens[begin:])]


def _depth(token: Token) -> int:
    """Return by how many parentheses, or `<` within types, a token leads in; out: below 0."""
    if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
        if set(token.text) == {"<"}:
            return len(token.text)
        if set(token.text) == {">"}:
            return -len(token.text)
    return nesting(token)


def accept_primary_key(cursor: Cursor) -> tuple[Token, ...]:
    """Pass over PRIMARY KEY (a, b), if it comes next, and return its columns. Refused."""
    if not _accept_key_words(cursor):
        return ()
    how = "write PRIMARY KEY (column, ...)"
    if not cursor.next_is("("):
        raise cursor.refuse(f"( is expected behind PRIMARY KEY{cursor.found()}; {how}")
    inside = cursor.take_parenthesised("the columns of the primary key")
    parts = split_commas(inside)
    if not all(len(part) == 1 for part in parts):
        raise cursor.source.refuse(inside[0] if inside else cursor.tokens[0], how)
    cursor.accept("NOT", "ENFORCED")  # as Flink's users have to write it
    if not cursor.done:
        raise cursor.refuse(f"the primary key ends with ){cursor.found()}; {how}")
    return tuple(token for [token] in parts)


def _accept_key_words(cursor: Cursor) -> bool:
    return cursor.accept("PRIMARY KEY") or cursor.accept("PRIMARY", "KEY")


def read_column(
    cursor: Cursor, at: int, *, is_table: bool = False
) -> Column | Written | PrimaryKey:
    """Read one column, before which `at` are declared. Refused."""
    _refuse_rule(cursor)
    name = cursor.take_name("name of a column")
    if cursor.next_is("AS"):
        return Written(name, None, cursor.rest(), at)
    tokens = _take_type(cursor, name, is_table=is_table)
    try:
        type_ = parse_type(_without_comments(cursor.source, tokens))
    except ValueError as error:
        raise cursor.source.refuse(tokens[0], f"column {name.text}: {error}") from error
    nullable: bool | None = None
    path: tuple[Step, ...] | None = None
    format_: str | None = None
    is_key = False
    while not cursor.done:
        first = cursor.peek()
        if cursor.next_is("AS"):
            if nullable is False or path is not None or format_ is not None:
                raise cursor.refuse(_computed_clause(name))
            if type_.ddl != type_.sql:
                raise cursor.source.refuse(tokens[0], _computed_clause(name))
            return Written(name, type_, cursor.rest(), at)
        if is_table and not is_key and _accept_key_words(cursor):
            cursor.accept("NOT", "ENFORCED")
            is_key = True
        elif nullable is None and cursor.accept("NOT", "NULL"):
            nullable = False
        elif nullable is None and cursor.accept("NULL"):
            nullable = True
        elif path is None and cursor.accept("FROM"):
            path = _read_place(cursor, name)
        elif format_ is None and cursor.accept("FORMAT"):
            how = f"write {name.text} {type_} FORMAT 'millis'"
            written = str(_take_text(cursor, name, "FORMAT", how).text)
            format_ = written.lower() if written.lower() in TIMESTAMP_FORMATS else written
        elif word(first) in ("NOT", "NULL", "FROM", "FORMAT"):
            clause = "NOT NULL" if cursor.next_is("NOT") else word(first)
            raise cursor.refuse(f"column {name.text}: {clause} stands twice; keep one")
        else:
            if word(first).partition(" ")[0] in _NOT_TYPES:
                raise cursor.refuse(_unsupported(name, word(first)))
            raise cursor.refuse(f"column {name.text}: after the type {_BEHIND}{cursor.found()}")
    if path == (name.text,):  # as without it
        path = None
    column = Column(name.text, type_, nullable is not False, path or (), format_)
    return PrimaryKey(column) if is_key else column


def _refuse_rule(cursor: Cursor) -> None:
    """Refuse PRIMARY KEY (...) and its kin among the columns."""
    first = word(cursor.peek()).partition(" ")[0]
    second = cursor.peek(1)
    if first in _RULES and second is not None and (second.text == "(" or word(second) == "KEY"):
        raise cursor.refuse(
            f"a stream has no {word(cursor.peek())}: its records are taken as they come; remove "
            "it, and write key = '<column>' or unique = '<column>' in WITH (...)"
        )


def _computed_clause(name: Token) -> str:
    return (
        f"column {name.text}: what is computed has neither FROM, FORMAT nor NOT NULL; write "
        f"{name.text} TYPE AS <expression>. (The event time and the unique id are never null: a "
        f"record without one is dead.)"
    )


def _take_type(cursor: Cursor, name: Token, *, is_table: bool) -> Sequence[Token]:
    begin, depth = cursor.at, 0
    ends = ("NOT", "NULL", "FROM", "FORMAT", "AS", *(["PRIMARY", "PRIMARY KEY"] * is_table))
    while not cursor.done and (depth or not any(map(cursor.next_is, ends))):
        token = cursor.take("the type")
        depth += _depth(token)
        if not depth and cursor.at - begin > 1 and word(token).partition(" ")[0] in _NOT_TYPES:
            raise cursor.source.refuse(token, _unsupported(name, word(token)))
    if cursor.at == begin:
        raise cursor.source.refuse(name, f"column {name.text} has no type; write {name.text} TYPE")
    return cursor.tokens[begin : cursor.at]


def _unsupported(name: Token, found: str) -> str:
    instead = _INSTEAD.get(found.partition(" ")[0], f"after the type {_BEHIND}").format(name.text)
    return f"column {name.text}: {found} is not supported; {instead}"


def _read_place(cursor: Cursor, name: Token) -> tuple[Step, ...]:
    how = f"write {name.text} TYPE FROM 'key', or FROM '$.path.to.it'"
    place = _take_text(cursor, name, "FROM", how)
    try:
        return parse_place(str(place.text))
    except ValueError as error:
        raise cursor.source.refuse(place, f"column {name.text}: {error}") from error


def _take_text(cursor: Cursor, name: Token, clause: str, how: str) -> Token:
    token = cursor.peek()
    if token is None or token.token_type != TokenType.STRING:
        found = cursor.found()
        raise cursor.refuse(f"column {name.text}: a text follows {clause}{found}; {how}")
    return cursor.take("the text")


def _without_comments(source: Source, tokens: Sequence[Token]) -> str:
    return " ".join(source.text[token.start : token.end + 1] for token in tokens)
