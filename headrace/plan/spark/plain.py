"""The Spark SQL of a view without grouping: one row per record."""

from headrace.model.definitions import Stream, View
from headrace.plan.shape import Shape
from headrace.plan.spark.calls import ordinals_of
from headrace.plan.spark.expanding import is_first
from headrace.plan.spark.windowing import judged, levels_of
from headrace.plan.tables import RECORD_KEY, WATERMARK

__all__ = ["plain_query"]


def plain_query(view: View, shape: Shape, stream: Stream) -> str:
    """Return the query over `__input` with a row per record that WHERE takes.

    Where a record is several rows, those that are left out are there too, to be counted. Rows that
    are written to a topic have the watermark and the key of their record beside them.
    """
    places = ["__partition", "__offset"]
    if shape.is_derived:
        numbers = [f"{text} AS __row{at}" for at, text in enumerate(ordinals_of(shape))]
        places = [f"{shape.branch} AS __branch", *places, *numbers]
    outputs = [
        f"CASE WHEN NOT __skip THEN {output.expression} END AS o{i}"
        for i, output in enumerate(shape.outputs)
    ]
    if view.topic is not None:
        # A key of its own makes the record's unnecessary, which then does not travel.
        key = RECORD_KEY if view.key is None else "CAST(NULL AS BINARY)"
        outputs += [WATERMARK, f"{key} AS {RECORD_KEY}"]
    kept = "__side IS NOT NULL OR NOT __skip"
    if shape.expansions:
        places, kept = ["__out", f"{is_first(shape)} AS __firsts", *places], "true"
    columns = ", ".join(["__side", *places, *outputs])
    return f"SELECT {columns} FROM {judged(levels_of(view, shape, stream))} WHERE {kept}"
