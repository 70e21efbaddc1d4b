"""Queries whose schemas tell the types of a view's expressions: Spark is asked before planning."""

from collections.abc import Mapping

from headrace.model.definitions import Stream, View
from headrace.plan.finals import typed_parts
from headrace.plan.refusals import refuse
from headrace.plan.shape import Shape, shape_of
from headrace.plan.spark.calls import typed
from headrace.plan.spark.expanding import expansion_levels
from headrace.plan.spark.grouped import aggregates_of
from headrace.plan.spark.names import event_time_of
from headrace.plan.spark.windowing import judged
from headrace.schema.types import DataType, parse_type

__all__ = ["argument_types_query", "output_queries", "output_types_query"]

_TIMESTAMP = parse_type("TIMESTAMP")
_WINDOW_PARTS = ("start", "end", "time")


def argument_types_query(query: Shape, stream: Stream) -> str:
    """Return the query over `__input` whose column types `plan_fold` needs."""
    wanted = {"__where": query.where or "true"}
    wanted |= {key.name: key.expression for key in query.keys}
    for call in query.calls:
        wanted |= typed(call)
    relation = judged(expansion_levels(query, stream)[:-1])
    if query.window is not None:
        wanted["__time"] = query.time or event_time_of(stream)
        parts = ", ".join(f"'{part}', CAST(NULL AS TIMESTAMP)" for part in _WINDOW_PARTS)
        relation = f"(SELECT *, named_struct({parts}) AS window FROM {relation})"
    if not query.grouped:
        wanted |= {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    columns = ", ".join(f"{expression} AS {name}" for name, expression in wanted.items())
    return f"SELECT {columns} FROM {relation}"


def output_types_query(view: View, types: Mapping[str, DataType]) -> str:
    """Return the query that tells the types of a grouped view's outputs; it reads no table.

    DefinitionError: an expression is too deep.
    """
    wanted, relation = _outputs(view, types)
    try:
        parts = typed_parts(list(wanted.values()))
    except ValueError as error:
        raise refuse(view, str(error)) from error
    wanted |= {f"__part{i}": text for i, text in enumerate(parts)}
    columns = ", ".join(f"{expression} AS {name}" for name, expression in wanted.items())
    return f"SELECT {columns} FROM {relation}"


def output_queries(view: View, types: Mapping[str, DataType]) -> dict[str, str]:
    """Return a query for each output of a grouped view alone, and for `__having`."""
    wanted, relation = _outputs(view, types)
    return {name: f"SELECT {text} AS x FROM {relation}" for name, text in wanted.items()}


def _outputs(view: View, types: Mapping[str, DataType]) -> tuple[dict[str, str], str]:
    query = shape_of(view)
    inner = {key.name: types[key.name] for key in query.keys}
    inner |= {name: aggregate.type for name, aggregate in aggregates_of(view, query, types).items()}
    if query.window is not None:
        inner |= {f"window_{part}": _TIMESTAMP for part in _WINDOW_PARTS}
    wanted = {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    if query.having is not None:
        wanted["__having"] = query.having
    nulls = ", ".join(f"CAST(NULL AS {type.sql}) AS {name}" for name, type in inner.items())
    return wanted, f"(SELECT {nulls or '1'})"
