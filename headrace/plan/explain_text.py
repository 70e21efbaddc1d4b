"""An explanation as lines for people: a section per stage, SQL broken at its clauses and indented.

Where a view has several branches, the stages of each stand under its own heading, and what they
share, the table and the SELECT over it, comes once, after them.
"""

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.plan.layout import lay_out

__all__ = ["explanation_text"]

Entry = dict[str, Any]

_LABEL = 10  # columns that the word before a line takes
_MIN_WIDTH = 60


class _Line(NamedTuple):
    """What is said about one thing; `how` it is broken where it is too long for a line."""

    word: str
    text: str
    how: str = "words"  # or "spark" or "store": SQL, as each of them reads it
    prefix: str = ""  # stands before the text, on the first line


def explanation_text(plan: Entry, width: int = 100) -> str:
    """Return an explanation, as `Explanation.to_json` gives it, as lines for people."""
    width = max(width, _MIN_WIDTH)
    lines = [f"view {plan['view']} @{plan['version']}"]
    branches = _branches(plan["stages"])
    for number, branch in enumerate(branches, start=1):
        indent = 2
        if len(branches) > 1:
            lines.append(f"  branch {number} of {len(branches)}: stream {branch[0]['stream']}")
            indent = 4
        for stage in branch:
            lines += _section(stage["stage"], _LINES[stage["stage"]](stage), indent, width)
    [*_, fold] = (stage for stage in plan["stages"] if stage["stage"] == "fold")
    lines += _section("table", _table_lines(fold), 2, width)
    for stage in plan["stages"]:
        if stage["stage"] == "publish":
            lines += _section("publish", _publish_lines(stage), 2, width)
    return "\n".join(lines)


def _branches(stages: list[Entry]) -> list[list[Entry]]:
    """Return the stages of each branch, from its read to its fold."""
    branches: list[list[Entry]] = []
    for stage in stages:
        if stage["stage"] == "read":
            branches.append([])
        if stage["stage"] != "publish":
            branches[-1].append(stage)
    return branches


def _section(title: str, told: Iterator[_Line], indent: int, width: int) -> Iterator[str]:
    yield " " * indent + title
    for line in told:
        first = f"{' ' * (indent + 2)}{line.word:<{_LABEL}} {line.prefix}"
        room = width - len(first)
        texts = (
            textwrap.wrap(line.text, room, break_long_words=False, break_on_hyphens=False)
            if line.how == "words"
            else lay_out(line.text, room, backslashes=line.how == "spark")
        )
        for number, text in enumerate(texts or [""]):
            yield f"{' ' * len(first) if number else first}{text}".rstrip()


def _read_lines(stage: Entry) -> Iterator[_Line]:
    yield _Line("stream", f"{stage['stream']}, topic {stage['topic']}, {stage['format']}")
    yield _Line("columns", ", ".join(stage["columns"]) or "none")


def _step_lines(stage: Entry) -> Iterator[_Line]:
    within = _seconds(stage["within_us"])
    yield _Line(
        stage["operator"].partition(":")[0],
        f"by {stage['by']}, remembered for {within} of its partition's clock, as "
        f"{stage['operator']}",
    )


def _narrow_lines(stage: Entry) -> Iterator[_Line]:
    for each in stage["expansions"]:
        if each["where"]:
            yield _Line("where", each["where"], "spark")
        outer = ", or one row with nulls" if each["outer"] else ""
        what = "window around" if each["function"] == "windows" else "element of"
        over = each["argument"] or "the event time"
        yield _Line(each["function"], f"a row for each {what} {over}{outer}")
    if stage["where"]:
        yield _Line("where", stage["where"], "spark")
    else:
        yield _Line("where", "every record")
    window = stage["window"]
    if window is None:
        yield _Line("window", "none: no record is late")
        return
    yield _Line("window", _window_text(window))
    if stage["placement"] is not None:
        yield _Line(stage["placement"]["kind"], stage["placement"]["note"])
    if stage["allowed_lateness_us"] is None:
        yield _Line("lateness", "none: every record is folded, however late")
    else:
        yield _Line("lateness", _lateness_text(stage, window))
        if stage["late"] == "drop":
            yield _Line("late", "records are counted and no more")


def _window_text(window: Entry) -> str:
    text = f"{window['kind']}, {_seconds(window['size_us'])}"
    if window["kind"] == "session":
        text = f"session, records at most {_seconds(window['size_us'])} apart"
    elif window["kind"] != "tumbling":
        text += f", every {_seconds(window['slide_us'])}"
    if window["offset_us"]:
        text += f", from {_seconds(window['offset_us'])}"
    if window["zone"] is not None:
        text += f", days of {window['zone']}"
    if window["time"] is not None:
        text += f", over {window['time']}"
    return text


def _lateness_text(stage: Entry, window: Entry) -> str:
    delay_us, lateness_us = stage["delay_us"], stage["allowed_lateness_us"]
    parts = f"delay {_seconds(delay_us)}, allowed lateness {_seconds(lateness_us)}"
    if window["kind"] == "session":
        gap_us = window["size_us"]
        past = _seconds(gap_us + delay_us + lateness_us)
        parts = f"gap {_seconds(gap_us)}, {parts}"
        return f"late once the clock is {past} past a record ({parts})"
    past = _seconds(delay_us + lateness_us)
    return f"closed to a record once the clock is {past} past its end ({parts})"


def _fold_lines(stage: Entry) -> Iterator[_Line]:
    for name, expression in stage["keys"].items():
        yield _Line("key", expression, "spark", f"{name} = ")
    for aggregate in stage["aggregates"]:
        yield _Line("aggregate", aggregate["call"], "spark", f"{aggregate['name']} = ")
        if aggregate["items"] is not None:
            yield _Line("", f"a row per item in headrace.{aggregate['items']}", prefix="  ")
        for state in aggregate["states"]:
            yield _Line("", f"{state['column']} {state['type']}", prefix="  ")
            yield _Line("", state["partial"], "spark", "    partial  ")
            yield _Line("", state["merge"], "store", "    merge    ")
    yield _Line("spark", stage["spark_query"], "spark")
    if stage["folded_by"]["long"] == "tasks":
        yield _Line("long turns", "each task folds its split of the log by itself, without this")
    if not stage["prepared"]:
        yield _Line("planned", "anew in every short turn, because Spark runs on other machines")


def _table_lines(stage: Entry) -> Iterator[_Line]:
    """Yield what all branches share, as the fold of each of them says it."""
    columns = ", ".join(f"{name} {type}" for name, type in stage["columns"].items())
    if stage["table"] is None:  # its rows are written to a topic
        yield _Line("rows", columns, "store")
        yield _Line("kept", "until they are in their topic")
        return
    yield _Line("name", f"headrace.{stage['table']}")
    yield _Line("columns", columns, "store")
    kept = stage["retention_us"]
    yield _Line("kept", "for good" if kept is None else f"{_seconds(kept)} past the end")
    if stage["having"]:
        yield _Line("having", stage["having"], "store")
    yield from _evaluator_lines(stage)
    yield _Line("final", stage["public_select"], "store")


def _evaluator_lines(stage: Entry) -> Iterator[_Line]:
    """Yield who evaluates each output, and HAVING, and what Spark evaluates."""
    found: dict[str, list[str]] = {}
    for each in stage["outputs"]:
        found.setdefault(each["evaluator"], []).append(each["name"])
    if stage["having_evaluator"] is not None:
        found.setdefault(stage["having_evaluator"], []).append("HAVING")
    for evaluator, when in (("store", "when they are read"), ("spark", "in the turn")):
        if evaluator in found:
            yield _Line("evaluator", f"{evaluator}, {when}: {', '.join(found[evaluator])}")
    for name, expression in stage["evaluated"].items():
        yield _Line("", expression, "spark", f"  {name} = ")


def _publish_lines(stage: Entry) -> Iterator[_Line]:
    yield _Line("dead", stage["dead"])
    if stage["late"] is not None:
        yield _Line("late", stage["late"])
    if "written" in stage:
        yield _Line("rows", stage["written"])


_LINES = {
    "read": _read_lines,
    "step": _step_lines,
    "narrow": _narrow_lines,
    "fold": _fold_lines,
}


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"
