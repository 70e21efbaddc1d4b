"""The Spark SQL of a view without grouping: one row per record."""

from headrace.model.definitions import Stream, View
from headrace.plan.shape import shape_of
from headrace.plan.spark.windowing import judged, levels_of

__all__ = ["plain_query"]


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
