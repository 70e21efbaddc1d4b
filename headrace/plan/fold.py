"""Plan the fold of one view: the Spark SQL of a turn, and the table its deltas merge into.

The input of a fold has the stream's columns and four more:
- `__partition`, `__offset`: where the record stands in the log;
- `__watermark`: its watermark in microseconds, NULL for -infinity;
- `__side`: NULL for a record; a long turn's splits add rows that carry their summary here.

What leaves a fold is one Arrow table of four kinds of rows:
- a delta: partial states per key (or, in a view without grouping, one row per record);
- late: `__late_record` is not null: its partition, offset and watermark; one row each and window;
- skipped: `__skip` is true; `_events` says how many (only in a view with grouping);
- side: `__side` is not null.
One aggregation yields them all, so a turn is one Spark job per view.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.aggregates import AGGREGATES, Aggregate
from headrace.errors import DefinitionError, Problem
from headrace.model.definitions import Stream, View
from headrace.plan.finals import check_division, divisions, store_expression
from headrace.plan.tables import Table, TableColumn, quote, watermark_of
from headrace.schema.types import DataType, parse_type
from headrace.time.windows import late, window_start, window_struct

__all__ = ["INPUT_COLUMNS", "Fold", "argument_types_query", "output_types_query", "plan_fold"]

#: The columns that stamping adds to the stream's own.
INPUT_COLUMNS = {
    "__partition": parse_type("INT"),
    "__offset": parse_type("BIGINT"),
    "__watermark": parse_type("BIGINT"),
    "__side": parse_type("BINARY"),
}

_TIMESTAMP = parse_type("TIMESTAMP")
_BIGINT = parse_type("BIGINT")


@dataclass(frozen=True)
class Fold:
    """Everything a turn needs to know of a view."""

    view: View
    stream: Stream
    table: Table
    query: str  # Spark SQL over the relation `__input`
    probe: "Probe"

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

    `skip` is asked of the input; `values` of the input with `window`, `__late` and `__skip`.
    """

    windowed: tuple[str, ...]
    skip: str
    values: tuple[str, ...]


def argument_types_query(view: View, stream: Stream) -> str:
    """Return the query over `__input` whose column types `plan_fold` needs."""
    query = view.query
    wanted = {"__where": query.where or "true"}
    wanted |= {key.name: key.expression for key in query.keys}
    wanted |= {call.name: call.argument for call in query.calls if call.argument is not None}
    if not query.grouped:
        wanted |= {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    columns = ", ".join(f"{expression} AS {name}" for name, expression in wanted.items())
    return f"SELECT {columns} FROM ({_windowed(view, stream)})"


def output_types_query(view: View, types: Mapping[str, DataType]) -> str:
    """Return the query that tells the types of a grouped view's outputs; it reads no table."""
    query = view.query
    inner = {key.name: types[key.name] for key in query.keys}
    inner |= {name: aggregate.type for name, aggregate in _aggregates(view, types).items()}
    if query.window is not None:
        inner |= {"window_start": _TIMESTAMP, "window_end": _TIMESTAMP}
    wanted = {f"o{i}": output.expression for i, output in enumerate(query.outputs)}
    if query.having is not None:
        wanted["__having"] = query.having
    for name, expression in list(wanted.items()):
        wanted |= {f"{name}_div{i}": text for i, text in enumerate(divisions(expression))}
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
        raise _refuse(view, f"WHERE is {argument_types['__where'].sql}; write a condition")
    if view.query.grouped:
        table = _grouped_table(view, version, argument_types, output_types)
        query = _grouped_query(view, stream, argument_types)
    else:
        table = _plain_table(view, version, argument_types)
        query = _plain_query(view, stream)
    return Fold(view, stream, table, query, _probe(view, stream))


def _refuse(view: View, message: str) -> DefinitionError:
    return DefinitionError([Problem(view.location, f"view {view.name}: {message}")])


def _aggregates(view: View, types: Mapping[str, DataType]) -> dict[str, Aggregate]:
    aggregates = {}
    for call in view.query.calls:
        try:
            aggregates[call.name] = AGGREGATES[call.function](types.get(call.name))
        except ValueError as error:
            raise _refuse(view, str(error)) from error
    return aggregates


def _windowed(view: View, stream: Stream) -> str:
    """Return the input with the record's window, as keys and the types of expressions need it."""
    window = view.query.window
    if window is None:
        return "SELECT * FROM __input"
    struct = window_struct(_start(view, stream), window.size_us)
    return f"SELECT *, {struct} AS window FROM __input"


def _start(view: View, stream: Stream) -> str:
    assert view.query.window is not None
    assert stream.event_time is not None
    return window_start(f"`{stream.event_time}`", view.query.window.size_us)


def _judged(view: View, stream: Stream) -> str:
    """Return every record of the input, with its window, `__skip` and `__late`."""
    # One level of SELECT more or less is some 2 ms of every turn.
    columns = ", ".join(["*", *_windowing(view, stream), f"{_skip(view)} AS __skip"])
    return f"SELECT {columns} FROM __input"


def _skip(view: View) -> str:
    # Side rows count as skipped, so that no expression of the user's ever sees one.
    if view.query.where is None:
        return "__side IS NOT NULL"
    return f"(__side IS NOT NULL OR NOT coalesce({view.query.where}, false))"


def _windowing(view: View, stream: Stream) -> list[str]:
    window = view.query.window
    if window is None:
        return ["false AS __late"]
    start = _start(view, stream)
    is_late = late(
        start,
        window.size_us,
        "__watermark",
        lateness_us=view.allowed_lateness_us,
    )
    return [f"{window_struct(start, window.size_us)} AS window", f"{is_late} AS __late"]


def _probe(view: View, stream: Stream) -> Probe:
    query = view.query
    values = [output.expression for output in query.outputs]
    if query.grouped:
        values = [key.expression for key in query.keys]
        values += [call.argument for call in query.calls if call.argument is not None]
    asked = (f"CASE WHEN NOT (__skip OR __late) THEN {value} END" for value in values)
    return Probe(tuple(_windowing(view, stream)), _skip(view), tuple(asked))


def _grouped_query(view: View, stream: Stream, types: Mapping[str, DataType]) -> str:
    query = view.query
    # Keys and arguments are evaluated for what is folded only: a late record is late, and a
    # skipped one skipped, whatever its other fields hold.
    inner = ["__side", "__skip"]
    groups = ["__side", "__skip"]
    if query.window is not None:
        inner += [
            "CASE WHEN __late AND NOT __skip THEN struct(__partition, __offset, __watermark) END "
            "AS __late_record",
            "CASE WHEN NOT __skip THEN window.start END AS window_start",
        ]
        groups += ["__late_record", "window_start"]
    folded = "CASE WHEN NOT (__skip OR __late) THEN {} END AS {}"
    inner += [folded.format(f"({key.expression})", key.name) for key in query.keys]
    groups += [key.name for key in query.keys]
    outer = ["count(1) AS _events"]
    arguments = {call.name: call.argument for call in query.calls}
    for name, aggregate in _aggregates(view, types).items():
        if arguments[name] is not None:
            inner.append(folded.format(f"({arguments[name]})", name))
        outer += [
            f"{state.partial.format(x=name)} AS {name}_{i}"
            for i, state in enumerate(aggregate.states)
        ]
    return (
        f"SELECT {', '.join(groups + outer)} FROM ("
        f"SELECT {', '.join(inner)} FROM ({_judged(view, stream)})) GROUP BY {', '.join(groups)}"
    )


def _plain_query(view: View, stream: Stream) -> str:
    outputs = [
        f"CASE WHEN NOT __skip THEN {output.expression} END AS o{i}"
        for i, output in enumerate(view.query.outputs)
    ]
    columns = ", ".join(["__side", "__partition", "__offset", *outputs])
    return f"SELECT {columns} FROM ({_judged(view, stream)}) WHERE __side IS NOT NULL OR NOT __skip"


def _grouped_table(
    view: View,
    version: str,
    types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
) -> Table:
    query = view.query
    columns: list[TableColumn] = []
    references: dict[str, str] = {}
    if query.window is not None:
        columns.append(TableColumn("window_start", _TIMESTAMP))
        end = f"window_start + to_microseconds({query.window.size_us})"
        references |= {"window_start": "window_start", "window_end": end}
    for key in query.keys:
        if not types[key.name].is_orderable:
            found = types[key.name].sql
            raise _refuse(view, f"GROUP BY {key.expression} is {found}; group by a field of it")
        columns.append(TableColumn(key.name, types[key.name]))
        references[key.name] = key.name
    columns.append(TableColumn("_events", _BIGINT, "{old} + {new}"))
    for name, aggregate in _aggregates(view, types).items():
        names = [f"{name}_{i}" for i in range(len(aggregate.states))]
        columns += [
            TableColumn(column, state.type, state.merge)
            for column, state in zip(names, aggregate.states, strict=True)
        ]
        references[name] = aggregate.final.format(*names)
    try:
        for name, type in output_types.items():
            if "_div" in name:
                check_division("a / b", type)
        outputs = [
            f"CAST({store_expression(output.expression, references)} AS "
            f"{output_types[f'o{i}'].duckdb}) AS {quote(output.name)}"
            for i, output in enumerate(query.outputs)
        ]
        kept = "" if query.having is None else store_expression(query.having, references)
    except ValueError as error:
        raise _refuse(view, str(error)) from error
    if query.having is not None and output_types["__having"].kind != "BOOLEAN":
        raise _refuse(view, f"HAVING is {output_types['__having'].sql}; write a condition")
    closed = "false"
    if query.window is not None:
        closed = (
            f"coalesce({references['window_end']} <= {watermark_of(view.name, version)}, false)"
        )
    having = f" WHERE {kept}" if kept else ""
    shown = (*outputs, "_events", f"{closed} AS _closed")
    return Table(view.name, version, tuple(columns), shown, having)


def _plain_table(view: View, version: str, types: Mapping[str, DataType]) -> Table:
    columns = [TableColumn("__partition", parse_type("INT")), TableColumn("__offset", _BIGINT)]
    outputs = []
    for i, output in enumerate(view.query.outputs):
        columns.append(TableColumn(f"o{i}", types[f"o{i}"]))
        outputs.append(f"o{i} AS {quote(output.name)}")
    shown = (*outputs, "CAST(1 AS BIGINT) AS _events", "true AS _closed")
    return Table(view.name, version, tuple(columns), shown, appends=True)
