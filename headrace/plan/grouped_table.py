"""The table of a view with grouping: its columns, what readers see of it, and what leaves it."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.aggregates.base import COUNT_UP
from headrace.model.definitions import View
from headrace.model.sinks import key_parts
from headrace.model.windows import DAY_US
from headrace.plan.finals import Names, store_expression, typed_parts
from headrace.plan.items import items_final, items_table
from headrace.plan.panes import windows_of_panes
from headrace.plan.sessions import SESSION_COLUMNS, near_rows
from headrace.plan.shape import Key, Shape, shape_of
from headrace.plan.spark.calls import call_text
from headrace.plan.spark.grouped import aggregates_of
from headrace.plan.spark.windowing import cut_of, refuse
from headrace.plan.tables import Rows, Table, TableColumn, quote, watermark_of
from headrace.schema.types import DataType, parse_type
from headrace.time.windows import Cut

__all__ = ["grouped_table"]

_TIMESTAMP = parse_type("TIMESTAMP")
_BIGINT = parse_type("BIGINT")


def grouped_table(
    view: View,
    version: str,
    types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
) -> Table:
    """Return the table of a grouped view. DefinitionError: a type that cannot be folded or read."""
    query = shape_of(view)
    cut = cut_of(view)
    columns: list[TableColumn] = []
    references: dict[str, str] = {}
    if cut is not None:
        columns += _place_columns(cut)
        references |= _window_references(cut)
    for key in query.keys:
        if not types[key.name].is_orderable:
            found = types[key.name].sql
            raise refuse(view, f"GROUP BY {key.expression} is {found}; group by a field of it")
        _refuse_two_zeros(view, key, types)
        columns.append(TableColumn(key.name, types[key.name]))
        references[key.name] = key.name
    columns.append(TableColumn("_events", _BIGINT, "{old} + {new}", COUNT_UP))
    aggregates = aggregates_of(view, types)
    for name, aggregate in aggregates.items():
        if aggregate.items is not None:
            continue
        names = [f"{name}_{i}" for i in range(len(aggregate.states))]
        columns += [
            TableColumn(column, state.type, state.merge, state.combine, state.differs)
            for column, state in zip(names, aggregate.states, strict=True)
        ]
        references[name] = aggregate.final.format(*names)
    relation = ""
    if cut is not None and cut.overlaps:
        relation = windows_of_panes(
            cut, view.name, version, columns, retention_us=view.retention_us
        )
    expired = ""
    if cut is not None and view.retention_us is not None:
        expired = _expired(cut, view.retention_us)
    gap_us = cut.size if cut is not None and cut.session else None
    table = Table(
        view.name, version, tuple(columns), (), relation=relation, expired=expired, gap_us=gap_us
    )
    children = []
    for name, aggregate in aggregates.items():
        if aggregate.items is not None:
            child = items_table(name, aggregate, table, retention_us=view.retention_us)
            children.append(child)
            references[name] = items_final(name, aggregate, children[-1], cut)
    outputs, kept = _outputs(view, references, output_types)
    closed = "false"
    if cut is not None:
        closed = (
            f"coalesce({references['window_end']} <= {watermark_of(view.name, version)}, false)"
        )
    return replace(
        table,
        shown=(*outputs, "_events", f"{closed} AS _closed"),
        condition=f" WHERE {kept}" if kept else "",
        children=tuple(children),
        retention_us=view.retention_us,
        rows=_rows(view, table, cut, references, types, output_types),
    )


def _rows(
    view: View,
    table: Table,
    cut: Cut | None,
    references: Mapping[str, str],
    types: Mapping[str, DataType],
    output_types: Mapping[str, DataType],
) -> Rows:
    query = shape_of(view)
    keys = [key.name for key in query.keys]
    told = {key.name: (key.name, types[key.name]) for key in query.keys if not key.derived}
    closing = ""
    touched = ["1 AS __all"] if cut is None and not keys else []
    if cut is not None:
        parts = ["window_start", "window_end"] if cut.cumulative else ["window_start"]
        told = {part: (references[part], _TIMESTAMP) for part in parts} | told
        closing = _closing(cut, references["window_end"])
        start = "first_time" if cut.session else "window_start"
        keys = ["number" if cut.overlaps else start, *keys]
        if cut.overlaps:
            last = cut.store_last("pane")
            touched = [f"unnest(range(first_window, {last} + 1)) AS number"]
    touched += [name for name in keys if name != "number"]
    selected = f"SELECT DISTINCT {', '.join(touched)} FROM {{delta}}"
    if table.gap_us is not None:
        # A session begins where one of its parts does: a piece of the turn, or a row near one.
        physical, groups = f"headrace.{quote(table.name)}", [each.name for each in table.groups]
        near = near_rows(physical, groups, table.gap_us, "{delta}", ("{low}", "{high}"))
        selected += f" UNION SELECT {', '.join(f'o.{key}' for key in keys)} {near}"
    names = key_parts(view).values()
    return Rows(
        tuple(keys),
        selected,
        tuple((name, *part) for name, part in zip(names, told.values(), strict=True)),
        tuple((output.name, output_types[f"o{i}"]) for i, output in enumerate(query.outputs)),
        closing,
        "" if cut is None else _last_end(cut),
    )


def _closing(cut: Cut, end: str) -> str:
    if cut.session:
        column, shift = "last_time", cut.size
    elif not cut.overlaps and cut.zone is None:
        # In terms of the column itself, so that the store skips the row groups of other times.
        column, shift = "window_start", cut.size
    else:
        column, shift = end, 0
    edges = [f"make_timestamptz({{{edge}}} - {shift})" for edge in ("before", "after")]
    return f"({column} > {edges[0]} AND {column} <= {edges[1]})"


def _last_end(cut: Cut) -> str:
    if cut.overlaps:
        return f"epoch_us({cut.store_time(cut.store_end(cut.store_last('max(pane)')))})"
    if cut.session:
        return f"epoch_us(max(last_time)) + {cut.size}"
    return "epoch_us(max(window_end))" if cut.zone else f"epoch_us(max(window_start)) + {cut.size}"


def _place_columns(cut: Cut) -> list[TableColumn]:
    if cut.overlaps:
        return [TableColumn("pane", _BIGINT), TableColumn("first_window", _BIGINT)]
    if cut.session:
        return list(SESSION_COLUMNS)
    if cut.zone is None:
        return [TableColumn("window_start", _TIMESTAMP)]
    # The end of a zone's day is not a matter of arithmetic, so it is kept.
    return [TableColumn("window_start", _TIMESTAMP), TableColumn("window_end", _TIMESTAMP)]


def _window_references(cut: Cut) -> dict[str, str]:
    start, end = "window_start", "window_end"
    if cut.session:
        start, end = "first_time", f"last_time + to_microseconds({cut.size})"
    elif not cut.overlaps and cut.zone is None:
        end = f"window_start + to_microseconds({cut.size})"
    return {
        "window_start": start,
        "window_end": end,
        "window_time": f"{end} - to_microseconds(1)",
    }


def _outputs(
    view: View, references: Mapping[str, str], output_types: Mapping[str, DataType]
) -> tuple[list[str], str]:
    """Return the columns that readers see and the condition of HAVING."""
    query = shape_of(view)
    names = _names(query, references, output_types)
    try:
        outputs = [
            f"CAST({store_expression(output.expression, names)} AS "
            f"{output_types[f'o{i}'].duckdb}) AS {quote(output.name)}"
            for i, output in enumerate(query.outputs)
        ]
        kept = "" if query.having is None else store_expression(query.having, names)
    except ValueError as error:
        raise refuse(view, str(error)) from error
    if query.having is not None and output_types["__having"].kind != "BOOLEAN":
        raise refuse(view, f"HAVING is {output_types['__having'].sql}; write a condition")
    return outputs, kept


def _refuse_two_zeros(view: View, key: Key, types: Mapping[str, DataType]) -> None:
    """Refuse a key that 0.0 and -0.0, which are one group, could make two groups of."""
    for base in shape_of(view).keys:
        if base.name in key.over and types[base.name].kind in ("FLOAT", "DOUBLE"):
            raise refuse(
                view,
                f"{key.expression} may not be the same for all of a group: {base.expression} is "
                f"{types[base.name].sql}, whose 0.0 and -0.0 are one key; add {key.expression} to "
                f"GROUP BY, or compute it when you read the view",
            )


def _names(
    query: Shape, references: Mapping[str, str], output_types: Mapping[str, DataType]
) -> Names:
    expressions = [output.expression for output in query.outputs]
    expressions += [] if query.having is None else [query.having]
    types = {text: output_types[f"__part{i}"] for i, text in enumerate(typed_parts(expressions))}
    written = {key.name: key.expression for key in query.keys}
    written |= {call.name: call_text(call) for call in query.calls}
    written |= {"window_start": "window.start", "window_end": "window.end"}
    return Names(references, written | {"window_time": "window_time(window)"}, types)


def _expired(cut: Cut, retention_us: int) -> str:
    """Return the test for a row whose last window has left, where W is `{watermark}`, micros."""
    left = f"make_timestamptz({{watermark}} - {retention_us})"
    if cut.session:
        return f"last_time <= make_timestamptz({{watermark}} - {retention_us + cut.size})"
    if not cut.overlaps and cut.zone is None:
        return f"window_start <= make_timestamptz({{watermark}} - {retention_us + cut.size})"
    if not cut.overlaps:
        return f"window_end <= {left}"
    # The first test says less, but the store can answer it for whole row groups at once.
    unit = 1 if cut.zone is None else DAY_US
    pane_us = cut.pane * unit
    begun = f"({{watermark}} - {retention_us + cut.offset * unit}) // {pane_us} + 2"
    end = cut.store_time(cut.store_end(cut.store_last("pane")))
    return f"pane <= {begun} AND {end} <= {left}"
