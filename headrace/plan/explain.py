"""Say what a view's pipeline will do, from the very values that run: nothing is worked out again.

`explain_view` gives a value of one entry per stage; explain_text.py sets it for people.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.plan.spark.calls import call_text
from headrace.plan.stages import Fold, Pipeline, Publish, Read, Step
from headrace.plan.tables import Table
from headrace.plan.terms import Reference, Term

__all__ = ["Explanation", "StoreText", "explain_view"]

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


def explain_view(
    pipeline: Pipeline, table: Table, store: StoreText, *, prepared: bool
) -> Explanation:
    """Return what a pipeline does for the view of a table, branch by branch.

    `store` is what the store makes of the table; `prepared`, whether short turns run a plan that
    Spark has made once.
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
            _fold(fold, store, prepared),
        ]
    stages += [_publish(each) for each in pipeline.publishes if each.owner == table.view]
    return Explanation(table.view, table.version, tuple(stages))


def _read(read: Read) -> Entry:
    stream = read.stream
    columns = [column.name for column in stream.scanned if column.name in read.columns]
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


def _fold(fold: Fold, store: StoreText, prepared: bool) -> Entry:
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
        "outputs": [
            {
                "name": each.name,
                "expression": each.expression,
                "evaluator": _evaluator(table, output.term),
            }
            for each, output in zip(query.outputs, table.outputs, strict=True)
        ],
        "having": query.having,
        "having_evaluator": None if table.having is None else _evaluator(table, table.having.term),
        "evaluated": {each.name: each.expression for each in table.evaluated},
        "retention_us": fold.view.retention_us,
        "spark_query": fold.query,
        "prepared": prepared,
        # Changes of a key are in one partition, so a long turn's tasks need no shuffle.
        "folded_by": {"short": "spark", "long": "spark" if table.newest is None else "tasks"},
        "table": table.name if table.target is None else None,
        "columns": {column.name: column.type.sql for column in table.columns},
        "public_select": store.select if table.target is None else None,
    }


def _evaluator(table: Table, term: Term) -> str:
    """Return who evaluates what is seen: Spark in the turn, or the store when it is read."""
    evaluated = {each.name for each in table.evaluated}
    is_of_spark = isinstance(term, Reference) and term.name in evaluated
    return "spark" if table.placement.appends or is_of_spark else "store"


def _publish(publish: Publish) -> Entry:
    entry: Entry = {"stage": "publish", "dead": publish.dead, "late": publish.late}
    return entry if publish.written is None else {**entry, "written": publish.written}
