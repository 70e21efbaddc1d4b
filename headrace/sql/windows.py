"""`window(ts, '10 minutes', '1 minute')` and its kin in GROUP BY into a Window."""

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from headrace.model.definitions import Window
from headrace.model.windows import window_faults
from headrace.sql.durations import parse_duration
from headrace.sql.expressions import Scope
from headrace.sql.functions import FunctionCall, find_calls, refused_functions
from headrace.sql.grouping import contains_aggregate
from headrace.sql.statements import split_commas
from headrace.sql.text import Refused, Source, word

__all__ = ["find_window", "misplaced_window", "name_window_time", "read_window"]

#: The functions that cut time, and what their arguments after the time are, in order.
_WINDOWS = {
    "window": ("size", "slide", "offset"),
    "cumulate": ("step", "size"),
    "session_window": ("gap",),
}
#: What has to be there of them.
_LEAST = {
    "window": (2, " and a size"),
    "cumulate": (3, ", a step and a size"),
    "session_window": (2, " and a gap"),
}


def find_window(tokens: Sequence[Token]) -> FunctionCall | None:
    """Return the first call of a window function within the tokens."""
    return next((call for call in find_calls(tokens) if call.name in _WINDOWS), None)


def read_window(scope: Scope, tokens: Sequence[Token], call: FunctionCall) -> Window:
    """Return the window of one part of GROUP BY. Refused: no window over the event time."""
    source, stream = scope.source, scope.stream
    where = tokens[call.at]
    name = call.name
    if call.at != 0 or call.closing != len(tokens) - 1:
        raise source.refuse(
            where, f"{name}() stands alone in GROUP BY; use window.start and window.end elsewhere"
        )
    time = stream.event_time
    if time is None:
        raise source.refuse(
            where,
            f"{name}() needs the event time of {stream.name}, which has none; add to its columns: "
            "WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS",
        )
    if "window" in scope.columns:
        raise source.refuse(
            where, f"{stream.name} has a column named window, which hides window.start; rename it"
        )
    how = f"write {_example(name, time)}"
    arguments = split_commas(tokens[call.opening + 1 : call.closing])
    lengths = _WINDOWS[name]
    if len(arguments) > 1 + len(lengths):
        extra = arguments[1 + len(lengths)]
        raise source.refuse(
            extra[0] if extra else where,
            f"{name}() takes the time, {', '.join(lengths)} and nothing more; {how}",
        )
    least, wanted = _LEAST[name]
    if len(arguments) < least or not all(arguments):
        raise source.refuse(where, f"{name}() takes the event time{wanted}; {how}")
    derived = _read_time(scope, arguments[0], how)
    durations = {
        length: _read_duration(scope, argument, length, how)
        for length, argument in zip(lengths, arguments[1:], strict=False)
    }
    window = _make_window(name, durations, derived)
    faults = [message for _, message in window_faults(window)]
    if faults:
        raise Refused(*(source.problem(where, fault) for fault in faults))
    return window


def _example(name: str, time: str) -> str:
    if name == "cumulate":
        return f"cumulate({time}, '1 hour', '1 day')"
    if name == "session_window":
        return f"session_window({time}, '5 minutes')"
    return f"window({time}, '1 minute')"


def _make_window(name: str, durations: dict[str, int], derived: str | None) -> Window:
    if name == "session_window":
        return Window(durations["gap"], "session", time=derived)
    size_us, offset_us = durations["size"], durations.get("offset", 0)
    if name == "cumulate":
        return Window(size_us, "cumulative", durations["step"], time=derived)
    slide_us = durations.get("slide", size_us)
    if slide_us == size_us:
        return Window(size_us, offset_us=offset_us, time=derived)
    return Window(size_us, "hopping", slide_us, offset_us, derived)


def _read_time(scope: Scope, tokens: Sequence[Token], how: str) -> str | None:
    """Return the expression over the event time that is windowed, None for itself."""
    source, stream = scope.source, scope.stream
    problems = refused_functions(source, tokens, scope.columns)
    if problems:
        raise Refused(*problems)
    if contains_aggregate(tokens):
        raise source.refuse(
            tokens[0], f"windows are over the time of single records, not over an aggregate; {how}"
        )
    expression = scope.read(tokens)
    time = (stream.event_time or "").lower()
    columns = list(expression.tree.find_all(exp.Column))
    for column in columns:
        if column.name != time:
            raise source.refuse(
                column.this.meta.get("start", tokens[0].start),
                f"windows are over the event time of {stream.name}, which is {stream.event_time}; "
                f"{how}",
            )
    if not columns:
        raise source.refuse(
            tokens[0],
            f"windows are over the event time of {stream.name}, and this is the same for every "
            f"record; {how}",
        )
    return None if isinstance(expression.tree, exp.Column) else expression.text


def _read_duration(scope: Scope, tokens: Sequence[Token], length: str, how: str) -> int:
    first = tokens[0]
    if len(tokens) != 1 or first.token_type != TokenType.STRING:
        if length == "gap":
            raise scope.source.refuse(
                first,
                f"a session's gap is one for all of its records, in quotes; {how}. Where gaps "
                "differ, make a view for each, with its records in WHERE",
            )
        raise scope.source.refuse(first, f"the window's {length} is written in quotes; {how}")
    try:
        duration_us = parse_duration(first.text, signed=True)
    except ValueError as error:
        raise scope.source.refuse(first, f"the window's {length}: {error}") from error
    if duration_us <= 0 and length != "offset":
        raise scope.source.refuse(first, f"the window's {length} must be more than nothing; {how}")
    return duration_us


def misplaced_window(scope: Scope, tokens: Sequence[Token]) -> Refused | None:
    """Return the refusal of a window() outside of GROUP BY, if there is one."""
    call = find_window(tokens)
    if call is None:
        return None
    return scope.source.refuse(
        tokens[call.at],
        f"{call.name}() belongs into GROUP BY; here write window.start or window.end",
    )


def name_window_time(source: Source, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return tokens with `window_time(window)` as a third part of the window, `window.time`.

    Refused: it is called with anything else.
    """
    calls = [call for call in find_calls(tokens) if call.name == "window_time"]
    for call in reversed(calls):
        inside = tokens[call.opening + 1 : call.closing]
        if len(inside) != 1 or word(inside[0]) != "WINDOW":
            raise source.refuse(
                tokens[call.at], "window_time() takes the view's window: window_time(window)"
            )
        name, opening, argument = tokens[call.at], tokens[call.opening], inside[0]
        parts = (
            _token(TokenType.VAR, "window", name, name),
            _token(TokenType.DOT, ".", opening, opening),
            _token(TokenType.VAR, "time", argument, tokens[call.closing]),
        )
        tokens = (*tokens[: call.at], *parts, *tokens[call.closing + 1 :])
    return tokens


def _token(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, first.line, first.col, first.start, last.end)
