"""Let Spark check a view and tell its types; the plan is made from its answer."""

import re
from functools import lru_cache

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from headrace.engine.spark.streams import check_stream
from headrace.errors import DefinitionError, Problem
from headrace.ledger.definitions import short_version
from headrace.model.definitions import Stream, View
from headrace.model.fingerprint import view_fingerprint
from headrace.plan.fold import INPUT_COLUMNS, plan_fold
from headrace.plan.shape import shape_of
from headrace.plan.spark.types import argument_types_query, output_types_query
from headrace.plan.stages import Fold
from headrace.schema.types import DataType, parse_type

__all__ = ["plan_view"]


@lru_cache(maxsize=256)
def plan_view(spark: SparkSession, view: View, stream: Stream, version: str | None = None) -> Fold:
    """Return the fold of a view. DefinitionError: Spark, or the plan, refuses it.

    `version` is the one that the ledger keeps it under; None: it is new.
    """
    check_stream(spark, stream)
    session = spark.newSession()
    columns = {column.name: column.type for column in stream.scanned} | INPUT_COLUMNS
    schema = ", ".join(f"`{name}` {type.sql}" for name, type in columns.items())
    session.createDataFrame([], schema).createOrReplaceTempView("__input")
    arguments = _types(session, view, argument_types_query(view, stream))
    outputs = {}
    if shape_of(view).grouped:
        outputs = _types(session, view, output_types_query(view, arguments))
    version = version or short_version(view_fingerprint(view, stream))
    fold = plan_fold(view, stream, version, arguments, outputs)
    _types(session, view, fold.query)  # what runs is what was checked
    return fold


def _types(session: SparkSession, view: View, query: str) -> dict[str, DataType]:
    try:
        fields = session.sql(query).schema.fields
    except (AnalysisException, ParseException, PySparkException) as error:
        raise _refuse(view, f"Spark refuses the query: {_first_sentence(error)}") from error
    types = {}
    for field in fields:
        try:
            types[field.name] = parse_type(field.dataType.simpleString())
        except ValueError as error:
            raise _refuse(view, f"{field.dataType.simpleString()}: {error}") from error
    return types


def _refuse(view: View, message: str) -> DefinitionError:
    return DefinitionError([Problem(view.location, f"view {view.name}: {message}")])


def _first_sentence(error: PySparkException) -> str:
    # Spark appends the query's plan, which speaks of names the user never wrote.
    text = re.split(r"\n|; line \d+", error.getMessage() or str(error))[0]
    return text.replace("`__input`.", "")
