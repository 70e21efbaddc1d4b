"""Rows of a turn reach Spark as they are, whatever they are cut from; its functions are known."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.engine.gears.frames import make_frame
from headrace.engine.spark.session import start_spark
from headrace.sql.query.expressions.spark_functions import SPARK_FUNCTIONS

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
