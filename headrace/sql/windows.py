"""`window(ts, '1 minute')` in GROUP BY into a Window."""

from collections.abc import Sequence

from sqlglot import Token, TokenType

from headrace.model.definitions import Stream, Window
from headrace.sql.durations import parse_duration
from headrace.sql.expressions import Scope
from headrace.sql.functions import FunctionCall, find_calls
from headrace.sql.statements import split_commas
from headrace.sql.text import Refused

__all__ = ["find_window", "read_window"]


def find_window(tokens: Sequence[Token]) -> FunctionCall | None:
    """Return the first call of window() within the tokens."""
    return next((call for call in find_calls(tokens) if call.name == "window"), None)


def read_window(scope: Scope, tokens: Sequence[Token], call: FunctionCall) -> Window:
    """Return the window of one part of GROUP BY. Refused: not a tumbling window over event time."""
    source, stream = scope.source, scope.stream
    where = tokens[call.at]
    if call.at != 0 or call.closing != len(tokens) - 1:
        raise source.refuse(
            where, "window() stands alone in GROUP BY; use window.start and window.end elsewhere"
        )
    time = stream.event_time
    how = f"write window({time or '<event time>'}, '1 minute')"
    if time is None:
        raise source.refuse(
            where,
            f"window() needs the event time of {stream.name}, which has none; add to its columns: "
            "WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS",
        )
    if "window" in scope.columns:
        raise source.refuse(
            where, f"{stream.name} has a column named window, which hides window.start; rename it"
        )
    arguments = split_commas(tokens[call.opening + 1 : call.closing])
    if len(arguments) > 2:
        raise source.refuse(
            arguments[2][0] if arguments[2] else where,
            f"hopping windows (with a slide) and offsets are not built yet; {how}",
        )
    if len(arguments) < 2 or not all(arguments):
        raise source.refuse(where, f"window() takes the event time and a size; {how}")
    if not _is_event_time(scope, stream, arguments[0]):
        raise source.refuse(
            arguments[0][0],
            f"windows are over the event time of {stream.name}, which is {time}; {how}",
        )
    return Window(_read_size(scope, arguments[1], how))


def _is_event_time(scope: Scope, stream: Stream, tokens: Sequence[Token]) -> bool:
    expression = scope.read(tokens)
    is_column = expression.tree.key == "column"
    return is_column and expression.tree.name == (stream.event_time or "").lower()


def _read_size(scope: Scope, tokens: Sequence[Token], how: str) -> int:
    size = tokens[0]
    if len(tokens) != 1 or size.token_type != TokenType.STRING:
        raise scope.source.refuse(size, f"the window's size is written in quotes; {how}")
    try:
        size_us = parse_duration(size.text)
    except ValueError as error:
        raise scope.source.refuse(size, f"the window's size: {error}") from error
    if size_us == 0:
        raise scope.source.refuse(size, f"the window's size must be more than nothing; {how}")
    return size_us


def misplaced_window(scope: Scope, tokens: Sequence[Token]) -> Refused | None:
    """Return the refusal of a window() outside of GROUP BY, if there is one."""
    call = find_window(tokens)
    if call is None:
        return None
    return scope.source.refuse(
        tokens[call.at],
        "window() belongs into GROUP BY; here write window.start or window.end",
    )
