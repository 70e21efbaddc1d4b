"""A view without grouping: one row per record, in the query and in the table."""

from collections.abc import Mapping

from headrace.model.definitions import Stream, View
from headrace.plan.shape import shape_of
from headrace.plan.spark.windowing import judged, levels_of
from headrace.plan.tables import Rows, Table, TableColumn, quote
from headrace.schema.types import DataType, parse_type

__all__ = ["plain_query", "plain_table"]


def plain_query(view: View, stream: Stream) -> str:
    """Return the query over `__input` with a row per record that WHERE takes."""
    outputs = [
        f"CASE WHEN NOT __skip THEN {output.expression} END AS o{i}"
        for i, output in enumerate(shape_of(view).outputs)
    ]
    columns = ", ".join(["__side", "__partition", "__offset", *outputs])
    return (
        f"SELECT {columns} FROM {judged(levels_of(view, stream))} "
        f"WHERE __side IS NOT NULL OR NOT __skip"
    )


def plain_table(view: View, version: str, types: Mapping[str, DataType]) -> Table:
    """Return the table whose rows are records; nothing merges."""
    columns = [
        TableColumn("__partition", parse_type("INT")),
        TableColumn("__offset", parse_type("BIGINT")),
    ]
    outputs = []
    for i, output in enumerate(shape_of(view).outputs):
        columns.append(TableColumn(f"o{i}", types[f"o{i}"]))
        outputs.append(f"o{i} AS {quote(output.name)}")
    shown = (*outputs, "CAST(1 AS BIGINT) AS _events", "true AS _closed")
    keys = ("__partition", "__offset")
    rows = Rows(
        keys,
        f"SELECT {', '.join(keys)} FROM {{delta}}",
        tuple((name.strip("_"), name, parse_type("BIGINT")) for name in keys),
        tuple((output.name, types[f"o{i}"]) for i, output in enumerate(shape_of(view).outputs)),
    )
    return Table(view.name, version, tuple(columns), shown, appends=True, rows=rows)
