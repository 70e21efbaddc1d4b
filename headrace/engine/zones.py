"""Check that Spark and the store know the same rules of a time zone.

Where windows of a zone's days overlap, Spark puts records into them and the store says when they
begin and end. Each brings the rules of all zones with it, of its own release; governments change
them at short notice. A zone that they disagree on would show windows that its records are not in.
"""

from datetime import date, timedelta

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.errors import DefinitionError, Problem
from headrace.plan.fold import Fold
from headrace.store.base import Store

__all__ = ["check_zone"]

# Of 1970 to 2100. Rules for later years are those of the last one.
_DAYS = 47_482


def check_zone(spark: SparkSession, store: Store, fold: Fold) -> None:
    """Refuse a view whose time zone means different days to Spark and to the store.

    DefinitionError. Views whose windows do not overlap keep the edges that Spark found.
    """
    cut = fold.cut
    if cut is None or cut.zone is None or not cut.overlaps:
        return
    ours = f"SELECT id, unix_micros({cut.spark_time('id')}) AS begin FROM range({_DAYS})"
    with store.open() as snapshot:
        theirs = snapshot.query(
            f"SELECT epoch_us({cut.store_time('day')}) AS begin FROM range({_DAYS}) r(day) "
            "ORDER BY day",
            max_rows=None,
        )
    days = spark.sql(ours).toArrow().sort_by("id")["begin"].to_pylist()
    apart = _first_difference(days, theirs["begin"])
    if apart is not None:
        day = date(1970, 1, 1) + timedelta(days=apart)
        raise DefinitionError(
            [
                Problem(
                    fold.view.location,
                    f"view {fold.name}: time_zone {cut.zone!r}: Java and the store have different "
                    f"rules for it, first for {day}; bring both up to date, or write windows that "
                    "do not overlap, such as window(<event time>, '1 day')",
                )
            ]
        )


def _first_difference(ours: list[int], theirs: pa.ChunkedArray) -> int | None:
    found = (day for day, pair in enumerate(zip(ours, theirs.to_pylist(), strict=True))
             if pair[0] != pair[1])  # fmt: skip
    return next(found, None)
