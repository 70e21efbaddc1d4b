"""Check that Spark and the store know the same rules of a time zone.

Where windows of a zone's days overlap, Spark puts records into them and the store says when they
begin and end. Each brings the rules of all zones with it, of its own release; governments change
them at short notice. A zone that they disagree on would show windows that its records are not in.
"""

from datetime import date, timedelta
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headrace.errors import DefinitionError, Problem
from headrace.plan.fold import Fold
from headrace.plan.spark.cutting import day_start
from headrace.store.base import Store

__all__ = ["check_zone"]

# Of 1970 to 2100. Rules for later years are those of the last one.
_DAYS = 47_482


def check_zone(spark: SparkSession, store: Store, fold: Fold) -> None:
    """Refuse a view whose time zone means different days to Spark and to the store.

    DefinitionError. Views whose windows do not overlap keep the edges that Spark found.
    """
    zone = fold.placement.days_of
    if zone is None:
        return
    with store.open() as snapshot:
        theirs = snapshot.day_starts(zone, _DAYS)
    same = pc.equal(_days_of_spark(spark, zone), theirs)
    apart = pc.index(same, False).as_py()
    if apart >= 0:
        day = date(1970, 1, 1) + timedelta(days=apart)
        raise DefinitionError(
            [
                Problem(
                    fold.view.location,
                    f"view {fold.name}: time_zone {zone!r}: Java and the store have different "
                    f"rules for it, first for {day}; bring both up to date, or write windows that "
                    "do not overlap, such as window(<event time>, '1 day')",
                )
            ]
        )


@lru_cache(maxsize=8)
def _days_of_spark(spark: SparkSession, zone: str) -> pa.ChunkedArray:
    query = f"SELECT id, unix_micros({day_start(zone, 'id')}) AS begin FROM range({_DAYS})"
    return spark.sql(query).toArrow().sort_by("id")["begin"]
