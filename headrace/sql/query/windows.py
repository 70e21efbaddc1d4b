"""`window(ts, '10 minutes', '1 minute')` and its kin in GROUP BY into a Window."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from headrace.model.nodes import Window
from headrace.model.scalars import Scalar
from headrace.model.windows import window_faults
from headrace.sql.durations import parse_duration
from headrace.sql.query.functions import refused_functions
from headrace.sql.query.syntax import span_of
from headrace.sql.query.trees import Tree, aggregates_of
from headrace.sql.statements import split_commas
from headrace.sql.text import Refused

if TYPE_CHECKING:  # which itself asks this module where windows may stand
    from headrace.sql.query.expressions import Expressions

__all__ = ["find_window", "misplaced_window", "read_window"]

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


def find_window(tree: Tree, node: exp.Expr) -> exp.Expr | None:
    """Return the first call of a window function within a node."""
    calls = [each for each in node.find_all(exp.Anonymous) if tree.call_name(each) in _WINDOWS]
    return min(calls, key=span_of, default=None)


def read_window(expressions: "Expressions", node: exp.Expr) -> Window:
    """Return the window of one part of GROUP BY. Refused: no window over the event time."""
    tree, relation = expressions.tree, expressions.scope.relation
    call = find_window(tree, node)
    assert call is not None
    name = tree.call_name(call) or ""
    if call is not node:
        raise tree.refuse(
            call, f"{name}() stands alone in GROUP BY; use window.start and window.end elsewhere"
        )
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
    if len(arguments) > 1 + len(lengths):
        extra = arguments[1 + len(lengths)]
        raise tree.refuse(
            extra[0] if extra else call,
            f"{name}() takes the time, {', '.join(lengths)} and nothing more; {how}",
        )
    least, wanted = _LEAST[name]
    if len(arguments) < least or not all(arguments):
        raise tree.refuse(call, f"{name}() takes the event time{wanted}; {how}")
    derived = _read_time(expressions, call.expressions[0], how)
    durations = {
        length: _read_duration(tree, argument, length, how)
        for length, argument in zip(lengths, arguments[1:], strict=False)
    }
    window = _make_window(name, durations, derived)
    faults = [message for _, message in window_faults(window)]
    if faults:
        raise Refused(*(tree.problem(call, fault) for fault in faults))
    return window


def _example(name: str, time: str) -> str:
    if name == "cumulate":
        return f"cumulate({time}, '1 hour', '1 day')"
    if name == "session_window":
        return f"session_window({time}, '5 minutes')"
    return f"window({time}, '1 minute')"


def _make_window(name: str, durations: dict[str, int], derived: Scalar | None) -> Window:
    if name == "session_window":
        return Window(durations["gap"], "session", time=derived)
    size_us, offset_us = durations["size"], durations.get("offset", 0)
    if name == "cumulate":
        return Window(size_us, "cumulative", durations["step"], time=derived)
    slide_us = durations.get("slide", size_us)
    if slide_us == size_us:
        return Window(size_us, offset_us=offset_us, time=derived)
    return Window(size_us, "hopping", slide_us, offset_us, derived)


def _read_time(expressions: "Expressions", node: exp.Expr, how: str) -> Scalar | None:
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


def _read_duration(tree: Tree, tokens: Sequence[Token], length: str, how: str) -> int:
    first = tokens[0]
    if len(tokens) != 1 or first.token_type != TokenType.STRING:
        if length == "gap":
            raise tree.refuse(
                first,
                f"a session's gap is one for all of its records, in quotes; {how}. Where gaps "
                "differ, make a view for each, with its records in WHERE",
            )
        raise tree.refuse(first, f"the window's {length} is written in quotes; {how}")
    try:
        duration_us = parse_duration(first.text, signed=True)
    except ValueError as error:
        raise tree.refuse(first, f"the window's {length}: {error}") from error
    if duration_us <= 0 and length != "offset":
        raise tree.refuse(first, f"the window {length} must be positive; {how}")
    return duration_us


def misplaced_window(tree: Tree, node: exp.Expr) -> Refused | None:
    """Return the refusal of a window() outside of GROUP BY, if there is one."""
    call = find_window(tree, node)
    if call is None:
        return None
    return tree.refuse(
        call,
        f"{tree.call_name(call)}() belongs into GROUP BY; here write window.start or window.end",
    )
