"""`WATERMARK FOR ts AS ...` in the columns of a stream."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import Token, TokenType

from headrace.model.definitions import Adaptive
from headrace.sql.durations import parse_duration
from headrace.sql.statements import Cursor, split_commas

__all__ = ["Watermark", "read_watermark"]


@dataclass(frozen=True)
class Watermark:
    """The event time and how long to wait for what is out of order."""

    column: Token
    delay_us: int = 0
    adaptive: Adaptive | None = None


def read_watermark(cursor: Cursor) -> Watermark:
    """Read `WATERMARK FOR ts AS ts - INTERVAL ...` or `AS ADAPTIVE (...)`. Refused."""
    source = cursor.source
    cursor.take("WATERMARK")
    cursor.expect("FOR")
    column = cursor.take_name("column of the event time")
    how = f"write WATERMARK FOR {column.text} AS {column.text} - INTERVAL 30 SECONDS"
    if not cursor.accept("AS"):
        raise cursor.refuse(f"AS is expected here{cursor.found()}; {how}")
    if cursor.next_is("ADAPTIVE") and column.text.upper() != "ADAPTIVE":
        return _read_adaptive(cursor, column)
    again = cursor.take_name("column of the event time")
    if again.text.lower() != column.text.lower():
        raise source.refuse(again, f"the watermark is of {column.text}, not {again.text}; {how}")
    delay_us = 0
    if not cursor.done:
        if not cursor.accept("-"):
            raise cursor.refuse(f"only - INTERVAL is allowed here{cursor.found()}; {how}")
        delay_us = _read_interval(cursor, again, how)
    return Watermark(column, delay_us)


def _read_adaptive(cursor: Cursor, column: Token) -> Watermark:
    source = cursor.source
    adaptive = cursor.take("ADAPTIVE")
    how = (
        f"write WATERMARK FOR {column.text} AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share "
        "of the records that shall come in time, and the longest delay"
    )
    if not cursor.next_is("("):
        raise source.refuse(adaptive, f"ADAPTIVE needs a share and a longest delay; {how}")
    parts = split_commas(cursor.take_parenthesised("what ADAPTIVE means"))
    if not cursor.done:
        raise cursor.refuse(f"the clause ends with ADAPTIVE (...){cursor.found()}; {how}")
    if len(parts) != 2 or not all(parts):
        raise source.refuse(adaptive, f"ADAPTIVE takes two values; {how}")
    share, longest = parts
    if any(token.token_type is TokenType.STRING for token in share):
        raise source.refuse(share[0], f"the share is written without quotes; {how}")
    try:
        number = Decimal("".join(str(token.text) for token in share))
        between = 0 < float(number) < 1  # as it is reckoned with
    except (InvalidOperation, ValueError):
        between = False
    if not between:
        what = "the share is a number between 0 and 1, and rounds to neither"
        raise source.refuse(share[0], f"{what}; {how}")
    inner = Cursor(source, longest)
    if not inner.accept("MAX"):
        raise inner.refuse(f"MAX is expected here{inner.found()}; {how}")
    max_us = _read_interval(inner, longest[0], how)
    if max_us == 0:
        raise source.refuse(longest[0], f"the longest delay must be positive; {how}")
    return Watermark(column, max_us, Adaptive(str(number), max_us))


def _read_interval(cursor: Cursor, before: Token, how: str) -> int:
    if not cursor.accept("INTERVAL"):
        raise cursor.refuse(f"INTERVAL is expected here{cursor.found()}; {how}")
    interval = cursor.rest()
    try:
        return parse_duration(" ".join(str(token.text) for token in interval))
    except ValueError as error:
        place = interval[0] if interval else before
        raise cursor.source.refuse(place, f"the watermark's delay: {error}") from error
