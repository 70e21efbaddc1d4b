"""Every column that an expression names is a reference of its scalar, whatever it is written in.

Method: each function of Spark, and every form of an expression, over columns that no function is
called; the columns of the scalar are those of the text, and each is a hole of it.
"""

import re

import pytest

from headrace.errors import DefinitionError
from headrace.model.nodes import Project
from headrace.model.scalars import Scalar
from headrace.sql import parse_project
from headrace.sql.query.expressions.spark_functions import SPARK_FUNCTIONS
from headrace.sql.query.reading.calls import AGGREGATES

STREAM = "CREATE STREAM s (q1 STRING, q2 STRING, q3 STRING);"
COLUMN = re.compile(r"\bq\d\b")
FORMS = [
    "array(q1, q2)[q3]",
    "ARRAY[q1, q2][q3]",
    "MAP[q1, q2][q3]",
    "from_json(q1, q2).list[q3]",
    "struct(q1, q2).array[q3]",
    "named_struct(q1, q2).true",
    "q1[q2][q3]",
    "q1[0].map[q2].list[q3]",
    "q1 || q2 || q3",
    "q1 ?? q2",
    "q1 COLLATE UTF8_BINARY || q2",
    "q1 AT TIME ZONE q2",
    "q1 IS NOT DISTINCT FROM q2",
    "q1 LIKE ANY (q2, q3)",
    "q1 NOT BETWEEN q2 AND q3",
    "q1 NOT IN (q2, q3)",
    "q1 RLIKE q2 AND NOT q3",
    "q1::int + q2::decimal(3, 1) * q3",
    "-q1 % +q2 DIV ~q3",
    "q1 << q2 >> q3",
    "q1 <=> q2 != q3",
    "(q1, q2, q3)",
    "CASE q1 WHEN q2 THEN q3 END",
    "CASE WHEN q1 THEN q2 ELSE q3 END",
    "if(q1, q2, q3)",
    "INTERVAL q1 DAY + q2",
    "INTERVAL '1' DAY * q1",
    "cast(q1 AS ARRAY<INT>)[q2]",
    "cast(q1 AS STRUCT<a: INT>)",
    "try_cast(q1 AS MAP<STRING, INT>)[q2]",
    "extract(DAY FROM q1) + q2",
    "overlay(q1 PLACING q2 FROM q3)",
    "position(q1 IN q2) + q3",
    "substring(q1 FROM q2 FOR q3)",
    "substr(q1, q2, q3)",
    "trim(BOTH q1 FROM q2)",
    "trim(q1)",
    "filter(q1, x -> x = q2 AND x[q3] > 0)",
    "aggregate(q1, 0, (x, y) -> x + y + q2, x -> x + q3)",
    "transform(q1, list -> list[q2])",
]


def scalar_of(expression: str, stream: str = STREAM) -> Scalar:
    view = f"CREATE MATERIALIZED VIEW v AS SELECT {expression} AS x FROM s"
    query = parse_project({"f.sql": stream + view}).views[0].query
    assert isinstance(query, Project)
    return query.columns[0].scalar


def is_complete(form: str, scalar: Scalar) -> bool:
    """Whether a scalar refers to all columns of a form, and its text to none of them by name."""
    return {*scalar.refs} == {*COLUMN.findall(form)} and not COLUMN.findall(scalar.text)


@pytest.mark.parametrize("form", FORMS)
def test_no_column_of_a_form_is_lost(form: str) -> None:
    scalar = scalar_of(form)
    assert is_complete(form, scalar), scalar


def test_no_argument_of_a_function_is_lost() -> None:
    lost = {}
    for name in sorted(SPARK_FUNCTIONS - AGGREGATES.keys() - {"extract"}):  # of DAY FROM x
        for form in (f"{name}(q1, q2)", f"{name}(q1)[q2]", f"{name}(q1, q2).list[q3]"):
            try:
                scalar = scalar_of(form)
            except DefinitionError:
                continue  # refused by its name, or for a syntax of its own
            if not is_complete(form, scalar):
                lost[form] = scalar
    assert lost == {}


@pytest.mark.parametrize("name", ["array", "list", "map", "struct", "values", "date", "interval"])
def test_a_column_may_be_called_as_what_makes_values(name: str) -> None:
    stream = f"CREATE STREAM s (`{name}` ARRAY<INT>);"
    for written in (f"`{name}`[0]", f"s.{name}[0]", f"s.`{name}`[0]"):
        assert scalar_of(written, stream) == Scalar("{0}[0]", (name,))
