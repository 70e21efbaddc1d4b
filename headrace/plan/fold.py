"""Plan the fold of one view: the Spark SQL of a turn, and the table its deltas merge into.

The input of a fold has the stream's columns and four more:
- `__partition`, `__offset`: where the record stands in the log;
- `__watermark`: its watermark in microseconds, NULL for -infinity;
- `__side`: NULL for a record; a long turn's splits add rows that carry their summary here.

What leaves a fold is one Arrow table of four kinds of rows:
- a delta: partial states per key (or, in a view without grouping, one row per record);
- late: `__late_record` is not null: its place, its watermark, and which of its windows were closed;
  where others were open, the row is of the delta too;
- skipped: `__skip` is true; `_events` says how many (only in a view with grouping);
- side: `__side` is not null.
One aggregation yields them all, so a turn is one Spark job per view.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.definitions import Stream, View
from headrace.plan.finals import typed_parts
from headrace.plan.grouped_table import grouped_table
from headrace.plan.plain import plain_query, plain_table
from headrace.plan.shape import shape_of
from headrace.plan.spark.calls import asked, typed
from headrace.plan.spark.grouped import aggregates_of, grouped_query
from headrace.plan.spark.windowing import Levels, cut_of, levels_of, refuse
from headrace.plan.tables import Table
from headrace.schema.types import DataType, parse_type
from headrace.time.windows import Cut

__all__ = ["INPUT_COLUMNS", "Fold", "argument_types_query", "output_types_query", "plan_fold"]

#: The columns that stamping adds to the stream's own.
INPUT_COLUMNS = {
    "__partition": parse_type("INT"),
    "__offset": parse_type("BIGINT"),
    "__watermark": parse_type("BIGINT"),
    "__side": parse_type("BINARY"),
}

_TIMESTAMP = parse_type("TIMESTAMP")
_WINDOW_PARTS = ("start", "end", "time")


@dataclass(frozen=True)
class Fold:
    """Everything a turn needs to know of a view."""

    view: View
    stream: Stream
    table: Table
    query: str  # Spark SQL over the relation `__input`
    probe: "Probe"
    cut: Cut | None  # of a view with windows

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def version(self) -> str:
        """The version of the view that this fold maintains."""
        return self.table.version


@dataclass(frozen=True)
class Probe:
    """The expressions of a view in the order the query asks them, to find whose record fails.

    `levels` are added to the input one after the other; `values` are asked of what they make.
    """

    levels: Levels
    values: tuple[str, ...]


def argument_types_query(view: View, stream: Stream) -> str:
    """Return the query over `__input` whose column types `plan_fold` needs."""
    query = shape_of(view)
    wanted = {"__where": query.where or "true"}
    wanted |= {key.name: key.expression for key in query.keys}
    for call in query.calls:
        wanted |= typed(call)
    relation = "__input"
    if query.window is not None:
        wanted["__time"] = query.time or f"`{stream.event_time}`"
        parts = ", ".join(f"'{part}', CAST(NULL AS TIMESTAMP)" for part in _WINDOW_PARTS)
        relation = f"(SELECT *, named_struct({parts}) AS window FROM __input)"
    if not query.grouped:
        wanted |= {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    columns = ", ".join(f"{expression} AS {name}" for name, expression in wanted.items())
    return f"SELECT {columns} FROM {relation}"


def output_types_query(view: View, types: Mapping[str, DataType]) -> str:
    """Return the query that tells the types of a grouped view's outputs; it reads no table."""
    query = shape_of(view)
    inner = {key.name: types[key.name] for key in query.keys}
    inner |= {name: aggregate.type for name, aggregate in aggregates_of(view, types).items()}
    if query.window is not None:
        inner |= {f"window_{part}": _TIMESTAMP for part in _WINDOW_PARTS}
    wanted = {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    if query.having is not None:
        wanted["__having"] = query.having
    wanted |= {f"__part{i}": text for i, text in enumerate(typed_parts(list(wanted.values())))}
    nulls = ", ".join(f"CAST(NULL AS {type.sql}) AS {name}" for name, type in inner.items())
    columns = ", ".join(f"{expression} AS {name}" for name, expression in wanted.items())
    return f"SELECT {columns} FROM (SELECT {nulls or '1'})"


def plan_fold(
    view: View,
    stream: Stream,
    version: str,
    argument_types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
) -> Fold:
    """Return the fold of a view. DefinitionError: a type that cannot be folded."""
    if argument_types["__where"].kind != "BOOLEAN":
        raise refuse(view, f"WHERE is {argument_types['__where'].sql}; write a condition")
    time = argument_types.get("__time", _TIMESTAMP)
    if time.kind != "TIMESTAMP":
        raise refuse(
            view,
            f"windows are over a TIMESTAMP, and the first argument of the window is {time.sql}; "
            "write CAST(... AS TIMESTAMP)",
        )
    if shape_of(view).grouped:
        table = grouped_table(view, version, argument_types, output_types)
        query = grouped_query(view, stream, argument_types)
    else:
        table = plain_table(view, version, argument_types)
        query = plain_query(view, stream)
    return Fold(view, stream, table, query, _probe(view, stream), cut_of(view))


def _probe(view: View, stream: Stream) -> Probe:
    query = shape_of(view)
    values = [output.expression for output in query.outputs]
    if query.grouped:
        values = [key.expression for key in query.keys]
        values += [value for call in query.calls for value in asked(call)]
    guarded = (f"CASE WHEN NOT (__skip OR __late) THEN {value} END" for value in values)
    return Probe(levels_of(view, stream), tuple(guarded))
