"""Hand rows that are in memory to Spark, for one task."""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

__all__ = ["make_frame"]


def make_frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows, also a slice of others, as a DataFrame of one partition."""
    # PySpark puts lists and maps together anew where times are among their values, and cannot do
    # so with a slice that has nulls. Copied they are none: 8 ms for 50,000 rows of two columns.
    everything = np.arange(rows.num_rows)
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            rows = rows.set_column(place, field, rows.column(place).take(everything))
    return session.createDataFrame(rows).coalesce(1)
