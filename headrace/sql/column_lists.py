"""`(a, b)` behind the name of a view or stream: names for the columns of its query."""

from sqlglot import Token, TokenType

from headrace.sql.statements import Cursor, split_commas

__all__ = ["read_names"]


def read_names(cursor: Cursor, how: str) -> tuple[Token, ...]:
    """Read the list at the cursor; `how` says what to write. Refused: it holds more than names."""
    opening = cursor.peek()
    assert opening is not None
    found: list[Token] = []
    for part in split_commas(cursor.take_parenthesised("the columns")):
        is_name = len(part) == 1 and part[0].token_type != TokenType.STRING
        if not is_name:
            raise cursor.source.refuse(
                part[0] if part else opening,
                f"only names are allowed here, one for each column of the query; {how}",
            )
        found.append(part[0])
    return tuple(found)
