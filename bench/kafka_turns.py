"""How Spark's tasks read Kafka fastest: librdkafka within them, or Spark's own connector.

    python bench/kafka_turns.py

Starts a broker with a million JSON records, and lets two tasks read them as Arrow both ways, in
turn, warm; then a short range. Prints rates and their ratio. Ends in two minutes.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from brokers import resolve, resolve_jars, run_broker
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.spark.session import start_spark
from headrace.log import KafkaLog, Range, records

BATCH_RECORDS = 50_000
# The newest versions that work together with PySpark 4.2, each without its dependencies.
CONNECTOR = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
]
RECORD = {"id": "1", "card": "c1", "amount": "12.50", "country": "de", "ts": "2026-01-01T12:00:05Z"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    jars = resolve("spark-kafka-4.2.0", CONNECTOR, with_dependencies=False)
    with run_broker(resolve_jars()) as broker:
        log = KafkaLog({"bootstrap.servers": broker.bootstrap})
        log.create_topic("bench", partitions=2)
        table = records([json.dumps(RECORD)] * BATCH_RECORDS)
        for number in range(options.records // BATCH_RECORDS):
            log.append("bench", table, partition=number % 2)
        ranges = [Range(place, *extent) for place, extent in log.extents("bench").items()]
        spark = start_spark(settings={"spark.jars": ",".join(map(str, jars.glob("*.jar")))})
        short = [range._replace(end=range.start + 1_000) for range in ranges]
        for title, wanted in (("all of it", ranges), ("2,000 records", short)):
            ways = {
                "connector": lambda wanted=wanted: connector(spark, broker.bootstrap, wanted),
                "librdkafka": lambda wanted=wanted: tasks(spark, log, wanted),
            }
            show(title, {name: measure(way) for name, way in ways.items()})
        started = time.perf_counter()
        count = sum(batch.num_rows for range in short for batch in log.read(range))
        print(f"the driver itself reads {count:,} in {time.perf_counter() - started:.3f} s")
        log.close()
        spark.stop()


def measure(way: Callable[[], DataFrame]) -> tuple[int, float]:
    """Return how many records were read, and the median seconds of three warm runs."""
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        count = sum(row.n for row in way().collect())
        seconds.append(time.perf_counter() - started)
    return count, statistics.median(seconds[1:])


def count_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    count = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"n": pa.array([count], pa.int64())})


def connector(spark: SparkSession, bootstrap: str, ranges: list[Range]) -> DataFrame:
    """Let Spark's connector read, with the settings that served it best."""
    numbers = [range.partition.number for range in ranges]
    reader = spark.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "assign": json.dumps({"bench": numbers}),
            "startingOffsets": json.dumps(
                {"bench": {str(r.partition.number): r.start for r in ranges}}
            ),
            "endingOffsets": json.dumps(
                {"bench": {str(r.partition.number): r.end for r in ranges}}
            ),
            "kafka.isolation.level": "read_committed",
            "kafka.group.id": "bench",  # else its consumers are never used again
            "kafka.max.poll.records": "10000",
            "kafka.max.partition.fetch.bytes": str(8 << 20),
        }
    )
    columns = reader.load().select("partition", "offset", "timestamp", "value")
    return columns.mapInArrow(count_batches, "n BIGINT")


def tasks(spark: SparkSession, log: KafkaLog, ranges: list[Range]) -> DataFrame:
    """Let tasks read as long turns do."""
    splits = [split for range in ranges for split in log.splits(range, max_records=range.span)]

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from count_batches(splits[number].read())

    return spark.range(len(splits), numPartitions=len(splits)).mapInArrow(read, "n BIGINT")


def show(title: str, found: dict[str, tuple[int, float]]) -> None:
    print(title)
    base = found["connector"][1]
    for name, (count, seconds) in found.items():
        rate = count / seconds
        print(f"  {name:12} {seconds:7.3f} s {rate:12,.0f} records/s   {base / seconds:5.2f} times")


if __name__ == "__main__":
    main()
