"""Say why Spark refuses a view: at the place of the expression at fault, in Spark's own sentence.

Spark is asked about single expressions only after it has refused the query as a whole.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.spark.errors import SparkError, explain
from headrace.errors import DefinitionError, Location
from headrace.model.definitions import View
from headrace.model.graph import condition_place, outputs_of
from headrace.plan.refusals import refuse
from headrace.plan.shape import shape_of
from headrace.plan.spark.calls import call_text
from headrace.plan.spark.places import Expression, expressions_of
from headrace.plan.spark.types import output_queries
from headrace.schema.types import DataType

__all__ = [
    "REFUSALS",
    "is_deterministic",
    "output_place",
    "refuse_chance",
    "refuse_outputs",
    "refuse_query",
]

#: What Spark raises for a query that it refuses; some checks of its own fail without a word of it.
REFUSALS = (AnalysisException, ParseException, PySparkException, Py4JJavaError)

_CHANCE = (
    "can give another answer each time it is asked, as Spark says; a replay would not give the "
    "same rows. Use columns of the record instead"
)
#: Names that are ours: relations and columns that no user wrote.
_OWN_NAMES = re.compile(r"`?__\w+`?\.")
#: What keys and calls are called in queries over groups.
_OF_GROUPS = re.compile(r"\b[ak]\d+\b")


def is_deterministic(frame: DataFrame) -> bool:
    """Whether Spark promises the same rows each time."""
    return bool(frame._jdf.queryExecution().analyzed().deterministic())


def refuse_query(
    session: SparkSession, view: View, leaves: Mapping[str, str], error: SparkError
) -> DefinitionError:
    """Return the refusal of a view whose query Spark refuses with an error."""

    def fault(query: str) -> str | None:
        try:
            session.sql(query)
        except REFUSALS as cause:
            return _sentence(cause)
        return None

    found = _first(expressions_of(view.query, leaves), fault)
    if found is None:
        return refuse(view, f"Spark refuses the query: {_sentence(error)}")
    expression, sentence = found
    return refuse(view, f"Spark refuses {expression.text}: {sentence}", expression.location)


def refuse_outputs(
    session: SparkSession,
    view: View,
    types: Mapping[str, DataType],
    error: SparkError | None = None,
) -> DefinitionError:
    """Return the refusal of a grouped view one of whose outputs, or HAVING, Spark refuses.

    Without an error, one of them is left to chance.
    """
    shape = shape_of(view)
    written = {key.name: key.expression for key in shape.keys}
    written |= {call.name: call_text(call) for call in shape.calls}
    for name, query in output_queries(view, types).items():
        try:
            if is_deterministic(session.sql(query)):
                continue
            return refuse(view, f"this {_CHANCE}", output_place(view, name))
        except REFUSALS as cause:
            sentence = _OF_GROUPS.sub(
                lambda found: written.get(found[0], found[0]), _sentence(cause)
            )
            return refuse(view, f"Spark refuses this: {sentence}", output_place(view, name))
    if error is None:
        return refuse(view, f"one of its expressions {_CHANCE}")
    return refuse(view, f"Spark refuses the query: {_sentence(error)}")


def output_place(view: View, name: str) -> Location | None:
    """Return the place of an output by its name in queries: `o0`, `o1`, ... or `__having`."""
    if name == "__having":
        return condition_place(view.query, over_groups=True)
    outputs = outputs_of(view.query)
    number = int(name.removeprefix("o")) if re.fullmatch(r"o\d+", name) else len(outputs)
    return outputs[number].place if number < len(outputs) else None


def refuse_chance(session: SparkSession, view: View, leaves: Mapping[str, str]) -> DefinitionError:
    """Return the refusal of an expression that Spark may answer differently the next time."""

    def fault(query: str) -> str | None:
        try:
            return None if is_deterministic(session.sql(query)) else _CHANCE
        except REFUSALS:
            return None  # the query as a whole was sound, so it is not this one

    found = _first(expressions_of(view.query, leaves), fault)
    if found is None:
        return refuse(view, f"one of its expressions {_CHANCE}")
    expression, _ = found
    return refuse(view, f"{expression.text} {_CHANCE}", expression.location)


def _first(
    expressions: Iterable[Expression], fault: Callable[[str], str | None]
) -> tuple[Expression, str] | None:
    for each in expressions:
        found = fault(each.query)
        if found is not None:
            return each, found
    return None


def _sentence(error: SparkError) -> str:
    is_told = isinstance(error, PySparkException)
    message = (error.getMessage() or str(error)) if is_told else explain(error).sentence
    # Spark appends the query's plan, which speaks of names the user never wrote.
    text = re.split(r"\n|; line \d+| SQLSTATE: ", message)[0]
    return _OWN_NAMES.sub("", text).rstrip(".")
