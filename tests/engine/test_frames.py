"""Rows of a turn reach Spark as they are, whatever they are cut from; its functions are known."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.engine.gears.frames import make_frame
from headrace.engine.spark.session import start_spark
from headrace.sql.query.expressions.spark_functions import SPARK_AGGREGATES, SPARK_FUNCTIONS

pytestmark = pytest.mark.spark


def test_lists_and_maps_of_times_may_be_a_slice_with_nulls_among_them() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    time = pa.timestamp("us", "UTC")
    rows = pa.table(
        {
            "list": pa.array([[moment], [], None, [None, moment]], pa.list_(time)),
            "map": pa.array([[("a", moment)], None, [], [("b", None)]], pa.map_(pa.string(), time)),
            "struct": pa.array(
                [{"x": [moment]}, None, {"x": None}, {}], pa.struct([("x", pa.list_(time))])
            ),
        }
    )
    for part in (rows.slice(1), rows.slice(2, 1)):
        found = make_frame(start_spark(), part).toArrow()
        assert found.to_pylist() == part.to_pylist()


def test_the_functions_that_the_front_door_knows_are_those_of_spark() -> None:
    listed = {row[0] for row in start_spark().sql("SHOW FUNCTIONS").collect()}
    assert {name for name in listed if name.isidentifier()} == SPARK_FUNCTIONS


def test_the_aggregates_that_the_front_door_knows_are_those_of_spark() -> None:
    catalyst = start_spark()._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    registry = catalyst.analysis.FunctionRegistry.builtin()
    of_name = start_spark()._jvm.java.lang.Class.forName  # type: ignore[union-attr]
    package = "org.apache.spark.sql.catalyst.expressions"
    kinds = [
        of_name(f"{package}.{each}")
        for each in ("aggregate.AggregateFunction", "RuntimeReplaceableAggregate")
    ]
    found = set()
    for name in SPARK_FUNCTIONS - {"grouping", "grouping_id"}:  # which tell of keys
        known = registry.lookupFunction(catalyst.FunctionIdentifier(name))
        if known.isEmpty():
            continue  # a function of FROM
        info = known.get()
        is_one = any(kind.isAssignableFrom(of_name(info.getClassName())) for kind in kinds)
        is_one = is_one and info.getGroup() != "window_funcs"
        found |= {name} if is_one or info.getGroup() == "agg_funcs" else set()
    assert found == SPARK_AGGREGATES
