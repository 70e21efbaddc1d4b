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

from headrace.model.definitions import Stream, View
from headrace.plan.columns import columns_read
from headrace.plan.refusals import refuse
from headrace.plan.shape import shape_of
from headrace.plan.spark.calls import asked
from headrace.plan.spark.grouped import grouped_query, partials_of
from headrace.plan.spark.plain import plain_query
from headrace.plan.spark.windowing import levels_of
from headrace.plan.stages import Fold, Narrow
from headrace.plan.states import grouped_table, plain_table
from headrace.schema.types import DataType, parse_type

__all__ = ["INPUT_COLUMNS", "plan_fold"]

#: The columns that stamping adds to the stream's own.
INPUT_COLUMNS = {
    "__partition": parse_type("INT"),
    "__offset": parse_type("BIGINT"),
    "__watermark": parse_type("BIGINT"),
    "__side": parse_type("BINARY"),
}

_TIMESTAMP = parse_type("TIMESTAMP")


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
        partials = partials_of(view, argument_types)
    else:
        table = plain_table(view, version, argument_types)
        query = plain_query(view, stream)
        partials = {}
    narrow = Narrow(columns_read(view, stream), levels_of(view, stream))
    return Fold(view, stream, table, narrow, query, _values(view), tuple(partials.items()))


def _values(view: View) -> tuple[str, ...]:
    query = shape_of(view)
    values = [output.expression for output in query.outputs]
    if query.grouped:
        values = [key.expression for key in query.keys]
        values += [value for call in query.calls for value in asked(call)]
    return tuple(f"CASE WHEN NOT (__skip OR __late) THEN {value} END" for value in values)
