"""Plan the fold of one view: the Spark SQL of a turn, and the table its deltas merge into.

The input of a fold has the stream's columns, those of the record's coordinates that it reads (with
two underscores: `__key`), and four more:
- `__partition`, `__offset`: where the record stands in the log;
- `__watermark`: its watermark in microseconds, NULL for -infinity;
- `__side`: NULL for a record; a long turn's splits add rows that carry their summary here.

What leaves a fold is one Arrow table of four kinds of rows:
- a delta: partial states per key (or, in a view without grouping, one row per record);
- late: `__late_record` is not null: its place, its watermark, and which of its windows were closed;
  where others were open, the row is of the delta too;
- skipped: `__skip` is true; `_events` says how many (only in a view with grouping). Where a record
  is several rows, `__out` says why (spark/expanding.py), also in a view without grouping;
- side: `__side` is not null.
One aggregation yields them all, so a turn is one Spark job per branch of a view.
"""

from collections.abc import Collection, Mapping

from headrace.model.definitions import Stream, View
from headrace.model.graph import condition_place
from headrace.model.nodes import COORDINATES
from headrace.plan.columns import columns_read
from headrace.plan.refusals import refuse
from headrace.plan.shape import Shape
from headrace.plan.spark.calls import asked
from headrace.plan.spark.grouped import grouped_query, partials_of
from headrace.plan.spark.names import coordinate_column
from headrace.plan.spark.plain import plain_query
from headrace.plan.spark.windowing import levels_of
from headrace.plan.stages import Fold, Narrow
from headrace.plan.states import grouped_table, plain_table
from headrace.schema.types import DataType, parse_type

__all__ = ["INPUT_COLUMNS", "input_columns", "plan_fold"]

#: The columns that stamping adds to the stream's own.
INPUT_COLUMNS = {
    "__partition": parse_type("INT"),
    "__offset": parse_type("BIGINT"),
    "__watermark": parse_type("BIGINT"),
    "__side": parse_type("BINARY"),
}

_TIMESTAMP = parse_type("TIMESTAMP")


def input_columns(stream: Stream, read: frozenset[str] | None = None) -> dict[str, DataType]:
    """Return the columns of a fold's input that reads these of a stream and its records; None: all.

    Where a record stands is always among them.
    """
    names = frozenset(COORDINATES) if read is None else read
    columns = {
        column.name: column.type for column in stream.scanned if read is None or column.name in read
    }
    own = {coordinate_column(each): type for each, type in COORDINATES.items() if each in names}
    return columns | own | INPUT_COLUMNS


def plan_fold(
    view: View,
    shape: Shape,
    stream: Stream,
    version: str,
    argument_types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
    evaluated: Collection[str] | None = None,
) -> Fold:
    """Return the fold of a branch of a view. DefinitionError: a type that cannot be folded.

    `evaluated` are the places that Spark evaluates, as the ledger has them; None: whatever the
    store cannot.
    """
    if argument_types["__where"].kind != "BOOLEAN":
        place = condition_place(view.query, over_groups=False)
        raise refuse(view, f"WHERE is {argument_types['__where'].sql}; write a condition", place)
    time = argument_types.get("__time", _TIMESTAMP)
    if time.kind != "TIMESTAMP":
        raise refuse(
            view,
            f"windows are over a TIMESTAMP, and the first argument of the window is {time.sql}; "
            "write CAST(... AS TIMESTAMP)",
        )
    if shape.grouped:
        table = grouped_table(view, version, argument_types, output_types, evaluated)
        query = grouped_query(view, shape, stream, argument_types)
        partials = partials_of(view, shape, argument_types)
    else:
        table = plain_table(view, version, argument_types)
        query = plain_query(view, shape, stream)
        partials = {}
    narrow = Narrow(columns_read(shape, stream), levels_of(view, shape, stream))
    return Fold(view, shape, stream, table, narrow, query, _values(shape), tuple(partials.items()))


def _values(query: Shape) -> tuple[str, ...]:
    values = [output.expression for output in query.outputs]
    if query.grouped:
        values = [key.expression for key in query.keys]
        values += [value for call in query.calls for value in asked(call)]
    return tuple(f"CASE WHEN NOT (__skip OR __late) THEN {value} END" for value in values)
