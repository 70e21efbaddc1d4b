"""`window(ts, '10 minutes', '1 minute')` and its kin in GROUP BY into a Window."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from headrace.model.nodes import WINDOW_COLUMNS, Window
from headrace.model.scalars import Scalar
from headrace.model.windows import window_faults
from headrace.sql.durations import parse_duration
from headrace.sql.query.expressions.functions import refused_functions
from headrace.sql.query.reading.syntax import Kind, holds, span_of
from headrace.sql.query.reading.trees import Tree, aggregates_of, strip_parentheses
from headrace.sql.statements import split_commas
from headrace.sql.text import Refused, word

if TYPE_CHECKING:  # which itself asks this module where windows may stand
    from headrace.sql.query.expressions.binding import Expressions

__all__ = [
    "find_window",
    "is_window",
    "make_window",
    "misplaced_window",
    "read_duration",
    "read_edge",
    "read_time",
    "read_window",
]

#: The functions that cut time, and what their arguments after the time are, in order.
_WINDOWS = {
    "window": ("size", "slide", "offset"),
    "cumulate": ("step", "size", "offset"),
    "session_window": ("gap",),
    # As Flink's and Arroyo's users write them.
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "session": ("gap",),
}
#: What has to be there of them.
_LEAST = {
    "window": (2, " and a size"),
    "cumulate": (3, ", a step and a size"),
    "session_window": (2, " and a gap"),
    "tumble": (2, " and a size"),
    "hop": (3, ", a slide and a size"),
    "session": (2, " and a gap"),
}
#: Those whose time may be left out: it is the event time.
_TIMELESS = ("tumble", "hop", "session")
#: What tells the edges of a window, by how the window's function is called.
_EDGES = {
    f"{name}_{edge}": (name, WINDOW_COLUMNS[at])
    for name in _TIMELESS
    for at, edge in enumerate(("start", "end", "rowtime"))
}


def find_window(tree: Tree, node: exp.Expr) -> exp.Expr | None:
    """Return the first call of a window function within a node."""
    if not holds(node, Kind.CALL):
        return None
    calls = [each for each in node.find_all(exp.Anonymous) if tree.call_name(each) in _WINDOWS]
    return min(calls, key=span_of, default=None)


def is_window(tree: Tree, node: exp.Expr) -> bool:
    """Whether a node is the call of a window function, and nothing more."""
    return isinstance(node, exp.Anonymous) and tree.call_name(node) in _WINDOWS


def read_edge(expressions: "Expressions", node: exp.Expr) -> tuple[Window, str] | None:
    """Return the window and the column of it that a call such as tumble_start(...) tells."""
    name = expressions.tree.call_name(node) if isinstance(node, exp.Anonymous) else None
    if name not in _EDGES:
        return None
    function, column = _EDGES[name or ""]
    return _read_call(expressions, node, function), column


def read_window(expressions: "Expressions", node: exp.Expr) -> Window:
    """Return the window of one part of GROUP BY. Refused: no window over the event time."""
    tree = expressions.tree
    call = find_window(tree, node)
    assert call is not None
    name = tree.call_name(call) or ""
    if call is not node:
        raise tree.refuse(
            call, f"{name}() stands alone in GROUP BY; use window.start and window.end elsewhere"
        )
    return _read_call(expressions, call, name)


def _read_call(expressions: "Expressions", call: exp.Expr, name: str) -> Window:
    tree, relation = expressions.tree, expressions.scope.relation
    if relation.event_time is None:
        raise tree.refuse(
            call,
            f"{name}() needs the event time of {relation.name}, which has none; "
            f"{relation.timeless}",
        )
    if "window" in expressions.scope.columns:
        raise tree.refuse(
            call, f"{relation.name} has a column named window, which hides window.start; rename it"
        )
    how = f"write {_example(name, relation.event_time)}"
    # By tokens, which also tell of an argument that is missing.
    arguments = split_commas(tree.tokens_of(call)[2:-1])
    lengths = _WINDOWS[name]
    has_time = not (name in _TIMELESS and arguments and _is_duration(arguments[0]))
    if len(arguments) > has_time + len(lengths):
        extra = arguments[has_time + len(lengths)]
        raise tree.refuse(
            extra[0] if extra else call,
            f"{name}() takes the time, {', '.join(lengths)} and no other arguments; {how}",
        )
    least, wanted = _LEAST[name]
    if len(arguments) < least - (not has_time) or not all(arguments):
        raise tree.refuse(call, f"{name}() takes the event time{wanted}; {how}")
    derived = read_time(expressions, call.expressions[0], how) if has_time else None
    durations = {
        length: read_duration(tree, argument, length, how)
        for length, argument in zip(lengths, arguments[has_time:], strict=False)
    }
    return make_window(tree, call, name, durations, derived)


def _is_duration(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and (
        word(tokens[0]) == "INTERVAL" or tokens[0].token_type == TokenType.STRING
    )


def _example(name: str, time: str) -> str:
    lengths = {
        "cumulate": "'1 hour', '1 day'",
        "hop": "'1 minute', '10 minutes'",
        "session": "'5 minutes'",
        "session_window": "'5 minutes'",
    }
    return f"{name}({time}, {lengths.get(name, chr(39) + '1 minute' + chr(39))})"


def make_window(
    tree: Tree,
    call: exp.Expr,
    name: str,
    durations: Mapping[str, int],
    derived: Scalar | None = None,
) -> Window:
    """Return the window that a function makes of its durations. Refused: they make no sense."""
    size_us, offset_us = durations.get("size", 0), durations.get("offset", 0)
    slide_us = durations.get("slide", size_us)
    if name in ("session_window", "session"):
        window = Window(durations["gap"], "session", time=derived)
    elif name == "cumulate":
        window = Window(size_us, "cumulative", durations["step"], offset_us, derived)
    elif slide_us == size_us:
        window = Window(size_us, offset_us=offset_us, time=derived)
    else:
        window = Window(size_us, "hopping", slide_us, offset_us, derived)
    if name == "hop" and slide_us > size_us:
        raise tree.refuse(call, "HOP takes the slide first, then the size; swap them")
    faults = [message for _, message in window_faults(window)]
    if faults:
        raise Refused(*(tree.problem(call, fault) for fault in faults))
    return window


def read_time(expressions: "Expressions", node: exp.Expr, how: str) -> Scalar | None:
    """Return the expression over the event time that is windowed, None for itself."""
    tree, relation = expressions.tree, expressions.scope.relation
    problems = refused_functions(tree.source, tree.tokens_of(node), expressions.scope.columns)
    if problems:
        raise Refused(*problems)
    if any(aggregates_of(node)):
        raise tree.refuse(
            node, f"windows are over the time of single records, not over an aggregate; {how}"
        )
    scalar = expressions.bind(node)
    for column in node.find_all(exp.Column, bfs=False):
        if expressions.bind(column).refs != (relation.event_time,):
            raise tree.refuse(
                column,
                f"windows are over the event time of {relation.name}, which is "
                f"{relation.event_time}; {how}",
            )
    if scalar.refs != (relation.event_time,):
        raise tree.refuse(
            node,
            f"windows are over the event time of {relation.name}, and this is the same for every "
            f"record; {how}",
        )
    return None if scalar.name is not None else scalar


def read_duration(tree: Tree, tokens: Sequence[Token], length: str, how: str) -> int:
    """Return a duration: `'1 minute'`, `INTERVAL '1' MINUTE`, `INTERVAL 1 MINUTE` and their kin."""
    first = tokens[0]
    is_interval = word(first) == "INTERVAL" and len(tokens) > 1
    if not is_interval and (len(tokens) != 1 or first.token_type != TokenType.STRING):
        if length == "gap":
            raise tree.refuse(
                first,
                f"a session's gap is one for all of its records, in quotes; {how}. Where gaps "
                "differ, make a view for each, with its records in WHERE",
            )
        raise tree.refuse(first, f"the window's {length} is written in quotes; {how}")
    text = " ".join(token.text for token in (tokens[1:] if is_interval else tokens))
    try:
        duration_us = parse_duration(text, signed=True)
    except ValueError as error:
        raise tree.refuse(first, f"the window's {length}: {error}") from error
    if duration_us <= 0 and length != "offset":
        raise tree.refuse(first, f"the window {length} must be positive; {how}")
    return duration_us


def misplaced_window(tree: Tree, node: exp.Expr, *, may_be_output: bool = False) -> Refused | None:
    """Return the refusal of a window() outside of GROUP BY, if there is one.

    A whole output may be the window that GROUP BY names.
    """
    call = find_window(tree, node)
    if call is None or (may_be_output and call is strip_parentheses(node)):
        return None
    return tree.refuse(
        call,
        f"{tree.call_name(call)}() belongs in GROUP BY; here write window.start or window.end",
    )
