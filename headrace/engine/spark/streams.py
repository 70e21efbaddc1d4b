"""Let Spark check the columns that records are read with and that it computes."""

from functools import lru_cache

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.engine.spark.errors import explain
from headrace.errors import DefinitionError, Problem
from headrace.model.definitions import Computed, Stream
from headrace.plan.spark.names import identifier, text_of

__all__ = ["check_stream"]


@lru_cache(maxsize=256)
def check_stream(spark: SparkSession, stream: Stream) -> None:
    """Check the eager columns of a stream. DefinitionError: Spark refuses one.

    The others are expressions of the views that ask for them.
    """
    if not stream.eager:
        return
    session = spark.newSession()
    schema = ", ".join(f"{identifier(column.name)} {column.type.sql}" for column in stream.columns)
    frame = session.createDataFrame([], schema)
    problems: list[Problem] = []
    for each in stream.eager:
        try:
            _ = frame.selectExpr(text_of(each.scalar)).schema
        except PySparkException as error:
            problems.append(_problem(stream, each, error))
    if problems:
        raise DefinitionError(problems)


def _problem(stream: Stream, computed: Computed, error: PySparkException) -> Problem:
    sentence = explain(error).sentence.partition("; line ")[0]
    return Problem(
        computed.location, f"column {computed.name} of {stream.name}: Spark refuses it: {sentence}"
    )
