"""The Spark SQL of a view with grouping: one aggregation that yields a turn's delta and the rest.

Keys and arguments are evaluated for what is folded only: a late record is late, and a skipped one
skipped, whatever its other fields hold. Each late record is a group of its own, by its place in the
log. Where windows overlap it may be late for the first ones and open to later ones: then its row is
a part of the delta as well. Where aggregates keep items (plan/spark/items.py), those are rows of
the same aggregation.

The records of a session are folded by its pieces (time/windows.py), each with the times of its
first and its last record. So it costs Spark what a tumbling window does; the store puts the pieces
together, those of a turn and those of the turns before it.
"""

from collections.abc import Mapping

from headrace.aggregates import Aggregate
from headrace.model.definitions import Stream, View
from headrace.model.graph import group_place
from headrace.model.nodes import call_column
from headrace.plan.refusals import refuse
from headrace.plan.shape import Shape
from headrace.plan.spark.calls import aggregate_of, call_columns, fill, tiebreak_of, tiebreak_text
from headrace.plan.spark.expanding import is_first
from headrace.plan.spark.items import item_column, items_query, set_columns
from headrace.plan.spark.placing import LateRecord, placing_of
from headrace.plan.spark.windowing import judged, levels_of
from headrace.schema.types import DataType
from headrace.time.placement import placement_of

__all__ = ["aggregates_of", "grouped_query", "partials_of"]

_FOLDED = "CASE WHEN NOT (__skip OR __late) THEN {} END AS {}"


def aggregates_of(view: View, shape: Shape, types: Mapping[str, DataType]) -> dict[str, Aggregate]:
    """Return the aggregate of every call. DefinitionError: its argument does not fit."""
    aggregates = {}
    for at, call in enumerate(shape.calls):
        try:
            aggregates[call.name] = aggregate_of(call, types, tiebreak_of(shape))
        except ValueError as error:
            place = group_place(view.query, call_column(at))
            raise refuse(view, str(error), place) from error
    return aggregates


def partials_of(view: View, shape: Shape, types: Mapping[str, DataType]) -> dict[str, str]:
    """Return what every state column is of a turn's records, an aggregate over their columns."""
    aggregates = aggregates_of(view, shape, types)
    return {
        f"{call.name}_{i}": fill(call, state.partial)
        for call in shape.calls
        for i, state in enumerate(aggregates[call.name].states)
    }


def grouped_query(view: View, shape: Shape, stream: Stream, types: Mapping[str, DataType]) -> str:
    """Return the query over `__input` whose rows are deltas, late records, and what was skipped."""
    placing = placing_of(placement_of(shape.window))
    inner = ["__side", "__skip"]
    groups = ["__side", "__skip"]
    outer = ["count(1) AS _events"]
    if shape.expansions:
        inner += ["__out", f"{is_first(shape)} AS __first"]
        groups.append("__out")
        outer.append("sum(__first) AS __firsts")
    if placing is not None:
        inner.append(f"{_late_text(view, placing.late_record())} AS __late_record")
        groups.append("__late_record")
        placed = placing.placed()
        inner += [_FOLDED.format(text, name) for name, text in placed.items()]
        groups += placed
        if spans := placing.spans():
            inner.append(_FOLDED.format("window.start", "__time"))
            outer += [f"{text} AS {name}" for name, text in spans.items()]
        if view.lateness_us != 0:
            inner.append(_FOLDED.format("__corrected", "__corrected"))
            outer.append("sum(__corrected) AS __corrected")
    inner += [
        _FOLDED.format(_nullable(f"({key.expression})", types[key.name]), key.name)
        for key in shape.keys
    ]
    groups += [key.name for key in shape.keys]
    aggregates = aggregates_of(view, shape, types)
    tiebreak = tiebreak_text(shape, stream)
    for call in shape.calls:
        inner += call_columns(call, aggregates[call.name], tiebreak, "NOT (__skip OR __late)")
    outer += [f"{text} AS {name}" for name, text in partials_of(view, shape, types).items()]
    relation = f"(SELECT {', '.join(inner)} FROM {judged(levels_of(view, shape, stream))})"
    relation = items_query(shape.calls, aggregates, relation)
    items = [item_column(name) for name, each in aggregates.items() if each.items is not None]
    sets = set_columns(items)
    columns = groups + [f"{text} AS {name}" for name, text in sets.items()] + outer
    group_by = ", ".join([*groups, *sets.values()])
    return f"SELECT {', '.join(columns)} FROM {relation} GROUP BY {group_by}"


def _nullable(expression: str, type: DataType) -> str:
    """Return a key as one whose parts may all be null: Spark hands over no null with others."""
    return f"CAST({expression} AS {type.sql})" if type.parts else expression


def _late_text(view: View, late: LateRecord) -> str:
    """Return what tells late records apart: their places and windows.

    Of those that are dropped only what their count needs. No field may be NOT NULL, or Arrow
    refuses the rows that are not late.
    """
    fields = late.counted
    if view.late != "drop":
        place = {name: f"__{name}" for name in ("partition", "offset", "watermark")}
        fields = place | fields | late.edges
    struct = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"CASE WHEN {late.test} THEN named_struct({struct}) END"
