"""Windows and lateness in Spark SQL are the arithmetic of the design, before 1970 too.

Method: one Spark query over times around window edges, against Python's integers.
"""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.engine.session import start_spark
from headrace.time.windows import late, window_start, window_struct

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SIZE_US = 60_000_000
LATENESS_US = 10
# Around edges of windows at both sides of 1970, and far away from it.
TIMES = sorted(
    edge * SIZE_US + step
    for edge in (-(10**9), -2, -1, 0, 1, 2, 10**9)
    for step in (-1, 0, 1, SIZE_US // 2)
)


@pytest.mark.spark
def test_spark_finds_the_windows_and_the_late_records_of_the_definition() -> None:
    spark = start_spark()
    # The watermark stands around the moment at which the record's window closes to it.
    records = [
        (time, None if step is None else _closes(time) + step)
        for time in TIMES
        for step in (None, -1, 0, 1)
    ]
    frame = spark.createDataFrame(records, "time BIGINT, watermark BIGINT")
    frame = frame.selectExpr("time", "watermark", "timestamp_micros(time) AS ts")
    frame.createOrReplaceTempView("t")
    start = window_start("ts", SIZE_US)
    is_late = late("start", SIZE_US, "watermark", lateness_us=LATENESS_US)
    rows = spark.sql(
        f"SELECT time, watermark, start, {is_late} AS late, w.start AS s, w.end AS e FROM "
        f"(SELECT *, {window_struct('start', SIZE_US)} AS w FROM "
        f"(SELECT *, {start} AS start FROM t))"
    ).toArrow()
    assert rows.num_rows == len(records)
    for row in rows.to_pylist():
        begin = row["time"] // SIZE_US * SIZE_US
        assert row["start"] == begin
        assert row["s"] == EPOCH + timedelta(microseconds=begin)
        assert row["e"] == EPOCH + timedelta(microseconds=begin + SIZE_US)
        watermark = row["watermark"]
        closed = watermark is not None and begin + SIZE_US + LATENESS_US <= watermark
        assert row["late"] == closed


def _closes(time_us: int) -> int:
    return time_us // SIZE_US * SIZE_US + SIZE_US + LATENESS_US
