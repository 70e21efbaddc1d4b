"""Aggregate calls as columns of a fold: what Spark works out of each record for them.

A call `a0` has up to three columns: `a0` its argument, `a0_by` what it orders by, `a0_tiebreak`
what ties are broken by. All are NULL for a record that is not folded or that FILTER leaves out, and
neither its argument nor what it orders by is evaluated then.
"""

from collections.abc import Mapping

from headrace.aggregates import AGGREGATES, TIEBREAK, Aggregate, Arguments
from headrace.model.definitions import Stream
from headrace.plan.linear import ordinal_column
from headrace.plan.shape import Call, Shape
from headrace.plan.spark.names import event_time_of
from headrace.schema.types import DataType, parse_type

__all__ = [
    "aggregate_of",
    "asked",
    "call_columns",
    "call_text",
    "fill",
    "ordinals_of",
    "tiebreak_of",
    "tiebreak_text",
    "typed",
]

_INT = parse_type("INT")

#: Functions whose calls are written in another way: what stands before and after the arguments.
_WRITTEN = {
    "avg_distinct": ("avg(DISTINCT ", ""),
    "collect_set_with_nulls": ("collect_set(", " RESPECT NULLS"),
    "count_distinct": ("count(DISTINCT ", ""),
    "sum_distinct": ("sum(DISTINCT ", ""),
}


def typed(call: Call) -> dict[str, str]:
    """Return the expressions of a call whose types `aggregate_of` needs, by their names."""
    wanted = {
        call.name: call.argument,
        f"{call.name}_by": call.by,
        f"{call.name}_if": call.condition,
    }
    return {name: expression for name, expression in wanted.items() if expression is not None}


def tiebreak_of(shape: Shape) -> DataType:
    """Return the type of what breaks ties: the time and the coordinates of a row."""
    if not shape.is_derived:
        return TIEBREAK
    ordinals = tuple(f"n{number}" for number in range(shape.ordinals))
    time, partition, offset = TIEBREAK.parts
    parts = (time, _INT, partition, offset, *(_INT for _ in ordinals))
    names = ("time_us", "branch", "partition", "offset", *ordinals)
    return DataType("STRUCT", parts=parts, names=names)


def tiebreak_text(shape: Shape, stream: Stream) -> str:
    """Return what breaks ties, as an expression over a row."""
    # Not a bare 0: Spark cannot hand over a struct that is null with a field that never is.
    fields = {"time_us": "nullif(0L, 1L)"}
    # The event time does not decide which change of a key is the newest: the offset does.
    if stream.event_time is not None and not stream.primary_key:
        fields["time_us"] = f"unix_micros({event_time_of(stream)})"
    if shape.is_derived:
        fields["branch"] = f"nullif({shape.branch}, -1)"
    fields |= {"partition": "__partition", "offset": "__offset"}
    fields |= {f"n{number}": text for number, text in enumerate(ordinals_of(shape))}
    struct = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"named_struct({struct})"


def ordinals_of(shape: Shape) -> list[str]:
    """Return the numbers of the elements that a row came of, 0 where its branch has none."""
    own = [f"nullif(coalesce({ordinal_column(at)}, 0), -1)" for at in range(len(shape.expansions))]
    return own + ["nullif(0, 1)"] * (shape.ordinals - len(own))


def aggregate_of(
    call: Call, types: Mapping[str, DataType], tiebreak: DataType = TIEBREAK
) -> Aggregate:
    """Return the aggregate that a call means. ValueError: it does not take these types."""
    condition = types.get(f"{call.name}_if")
    if condition is not None and condition.kind != "BOOLEAN":
        raise ValueError(f"FILTER (WHERE {call.condition}) is {condition.sql}; write a condition")
    value = types.get(call.name)
    if call.argument is None and condition is not None:
        value = parse_type("BOOLEAN")  # count(*) counts the records that the condition holds for
    arguments = Arguments(
        value, types.get(f"{call.name}_by"), call.parameters, call.ignores_nulls, tiebreak
    )
    return AGGREGATES[call.function](arguments)


def asked(call: Call) -> list[str]:
    """Return the expressions of a call as they are asked of a record that is folded."""
    condition = [] if call.condition is None else [call.condition]
    return condition + [
        _filtered(call, each) for each in (call.argument, call.by) if each is not None
    ]


def call_columns(call: Call, aggregate: Aggregate, tiebreak: str, folded: str) -> list[str]:
    """Return the columns of a call; `folded` is the test for a record that is."""
    wanted = {}
    if call.argument is not None or call.condition is not None:
        wanted[call.name] = call.argument or "true"
    if call.by is not None:
        wanted[f"{call.name}_by"] = call.by
    texts = [state.partial for state in aggregate.states]
    texts += [] if aggregate.items is None else [aggregate.items.item]
    if any("{tiebreak}" in text for text in texts):
        wanted[f"{call.name}_tiebreak"] = tiebreak
    # One CASE within the other: Spark may work out both sides of an AND before either is asked.
    return [
        f"CASE WHEN {folded} THEN {_filtered(call, expression)} END AS {name}"
        for name, expression in wanted.items()
    ]


def fill(call: Call, text: str) -> str:
    """Return a partial or an item over the columns of its call."""
    return text.format(x=call.name, y=f"{call.name}_by", tiebreak=f"{call.name}_tiebreak")


def call_text(call: Call) -> str:
    """Return a call as SQL writes it."""
    arguments = [call.argument or "*", call.by, *call.parameters]
    opening, suffix = _WRITTEN.get(call.function, (f"{call.function}(", ""))
    text = f"{opening}{', '.join(each for each in arguments if each is not None)}){suffix}"
    if call.ignores_nulls:
        text += " IGNORE NULLS"
    return text if call.condition is None else f"{text} FILTER (WHERE {call.condition})"


def _filtered(call: Call, expression: str) -> str:
    if call.condition is None:
        return f"({expression})"
    return f"CASE WHEN ({call.condition}) THEN ({expression}) END"
