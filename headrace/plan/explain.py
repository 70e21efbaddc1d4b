"""Say what a view's pipeline will do, from the very values that run: nothing is worked out again.

`explain_view` gives a value of one entry per stage; `explanation_text` prints it for people.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.plan.spark.calls import call_text
from headrace.plan.stages import Fold, Pipeline, Publish, Read, Step
from headrace.plan.tables import Table

__all__ = ["Explanation", "StoreText", "explain_view", "explanation_text"]

Entry = dict[str, Any]


@dataclass(frozen=True)
class StoreText:
    """What a store makes of a table, in its own language: merges by column, and what is read."""

    merges: Mapping[str, str]
    select: str


@dataclass(frozen=True)
class Explanation:
    """What a view does with a record, stage by stage: `stage` names the kind of each entry."""

    view: str
    version: str
    stages: tuple[Entry, ...]

    def to_json(self) -> Entry:
        """Return the same under the same names, as JSON takes it."""
        return asdict(self)


def explain_view(pipeline: Pipeline, table: Table, store: StoreText) -> Explanation:
    """Return what a pipeline does for the view of a table, branch by branch.

    `store` is what the store makes of the table.
    """
    stages: list[Entry] = []
    for fold in pipeline.folds:
        if fold.table != table:
            continue
        stream = fold.stream.name
        stages += [
            *(_read(read) for read in pipeline.reads if read.stream.name == stream),
            *(_step(step) for step in pipeline.steps if step.operator.name == stream),
            _narrow(fold),
            _fold(fold, store),
        ]
    stages += [_publish(each) for each in pipeline.publishes if each.owner == table.view]
    return Explanation(table.view, table.version, tuple(stages))


def _read(read: Read) -> Entry:
    stream = read.stream
    columns = [column.name for column in stream.columns if column.name in read.columns]
    return {
        "stage": "read",
        "stream": stream.name,
        "topic": stream.topic,
        "format": stream.format,
        "columns": columns,
        "event_time": stream.event_time,
        "delay_us": stream.delay_us,
    }


def _step(step: Step) -> Entry:
    return {
        "stage": "step",
        "operator": str(step.operator),
        "by": step.by,
        "within_us": step.within_us,
    }


def _narrow(fold: Fold) -> Entry:
    query, view = fold.shape, fold.view
    window = None if query.window is None else asdict(query.window) | {"time": query.time}
    note = fold.placement.note
    return {
        "stage": "narrow",
        "expansions": [
            {
                "function": each.function,
                "argument": each.argument,
                "outer": each.outer,
                "where": each.where,
            }
            for each in query.expansions
        ],
        "where": query.where,
        "window": window,
        "placement": None if note is None else {"kind": note[0], "note": note[1]},
        "delay_us": fold.stream.delay_us,
        "allowed_lateness_us": view.lateness_us,
        "late": view.late,
    }


def _fold(fold: Fold, store: StoreText) -> Entry:
    query, table, partials = fold.shape, fold.table, dict(fold.partials)
    aggregates = []
    for call, answer in zip(query.calls, table.answers, strict=True):
        kept = table if answer.items is None else table.child(answer.items)
        types = {column.name: column.type.sql for column in kept.columns}
        states = [
            {
                "column": name,
                "type": types[name],
                "partial": partials[name],
                "merge": store.merges[name],
            }
            for name in answer.states
        ]
        items = None if answer.items is None else kept.name
        entry = {"name": call.name, "call": call_text(call), "states": states, "items": items}
        aggregates.append(entry)
    return {
        "stage": "fold",
        "keys": {key.name: key.expression for key in query.keys},
        "aggregates": aggregates,
        "having": query.having,
        "retention_us": fold.view.retention_us,
        "spark_query": fold.query,
        "table": table.name if table.target is None else None,
        "columns": {column.name: column.type.sql for column in table.columns},
        "public_select": store.select if table.target is None else None,
    }


def _publish(publish: Publish) -> Entry:
    entry: Entry = {"stage": "publish", "dead": publish.dead, "late": publish.late}
    return entry if publish.written is None else {**entry, "written": publish.written}


def explanation_text(plan: Entry) -> str:
    """Return an explanation, as `to_json` gives it, as lines for people."""
    lines = [f"view {plan['view']} @{plan['version']}"]
    for stage in plan["stages"]:
        lines.append(f"  {stage['stage']}")
        lines += [f"    {word:<10} {text}".rstrip() for word, text in _LINES[stage["stage"]](stage)]
    return "\n".join(lines)


Lines = Iterator[tuple[str, str]]


def _read_lines(stage: Entry) -> Lines:
    yield "stream", f"{stage['stream']}, topic {stage['topic']}, {stage['format']}"
    yield "columns", ", ".join(stage["columns"]) or "none"


def _step_lines(stage: Entry) -> Lines:
    within = _seconds(stage["within_us"])
    yield (
        stage["operator"].partition(":")[0],
        (
            f"by {stage['by']}, remembered for {within} of its partition's clock, as "
            f"{stage['operator']}"
        ),
    )


def _narrow_lines(stage: Entry) -> Lines:
    for each in stage["expansions"]:
        if each["where"]:
            yield "where", each["where"]
        outer = ", or one row with nulls" if each["outer"] else ""
        what = "window around" if each["function"] == "windows" else "element of"
        over = each["argument"] or "the event time"
        yield each["function"], f"a row for each {what} {over}{outer}"
    yield "where", stage["where"] or "every record"
    window = stage["window"]
    if window is None:
        yield "window", "none: no record is late"
        return
    yield "window", _window_text(window)
    if stage["placement"] is not None:
        yield stage["placement"]["kind"], stage["placement"]["note"]
    if stage["allowed_lateness_us"] is None:
        yield "lateness", "none: every record is folded, however late"
    else:
        yield "lateness", _lateness_text(stage, window)
        if stage["late"] == "drop":
            yield "late", "records are counted and no more"


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


def _fold_lines(stage: Entry) -> Lines:
    for name, expression in stage["keys"].items():
        yield "key", f"{name} = {expression}"
    for aggregate in stage["aggregates"]:
        yield "aggregate", f"{aggregate['name']} = {aggregate['call']}"
        if aggregate["items"] is not None:
            yield "", f"  a row per item in headrace.{aggregate['items']}"
        for state in aggregate["states"]:
            yield "", f"  {state['column']} {state['type']}"
            yield "", f"    partial  {state['partial']}"
            yield "", f"    merge    {state['merge']}"
    if stage["having"]:
        yield "having", stage["having"]
    kept = stage["retention_us"]
    if stage["table"] is None:
        yield "kept", "until they are in their topic"
    else:
        yield "kept", "for good" if kept is None else f"{_seconds(kept)} past the end"
    yield "spark", stage["spark_query"]
    columns = ", ".join(f"{name} {type}" for name, type in stage["columns"].items())
    if stage["table"] is None:  # its rows are written to a topic
        yield "rows", columns
        return
    yield "table", f"headrace.{stage['table']} ({columns})"
    yield "final", stage["public_select"]


def _publish_lines(stage: Entry) -> Lines:
    yield "dead", stage["dead"]
    if stage["late"] is not None:
        yield "late", stage["late"]
    if "written" in stage:
        yield "rows", stage["written"]


_LINES = {
    "read": _read_lines,
    "step": _step_lines,
    "narrow": _narrow_lines,
    "fold": _fold_lines,
    "publish": _publish_lines,
}


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"
