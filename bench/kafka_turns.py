"""How turns read Kafka fastest.

    python bench/kafka_turns.py [--records 1000000]

Long turns: a broker with a million JSON records in two partitions. Two of Spark's tasks read them
as Arrow, with librdkafka within them or through Spark's own connector, and decode them or not; in
turn, warm. Short turns: the driver reads 2,000 records out of two partitions, and of eight, one
after the other or all together. Prints rates, and the median of several. Ends in three minutes.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from brokers import resolve, resolve_jars, run_broker
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.reading import workers_decoder
from headrace.engine.gears.stamping import gather
from headrace.engine.spark.session import start_spark
from headrace.log import KafkaLog, Range, records
from headrace.sql import parse_project

BATCH_RECORDS = 50_000
# The newest versions that work together with PySpark 4.2, each without its dependencies.
CONNECTOR = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
]
SHORT_RECORDS = 2_000
SHORT_READS = 30
[STREAM] = parse_project(
    {
        "bench": """
        CREATE STREAM bench (
          id STRING NOT NULL, card STRING NOT NULL, amount DECIMAL(12,2), country STRING,
          ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
        ) WITH (topic = 'bench', format = 'json');
        """
    }
).streams
WANTED = frozenset({"card", "amount", "country", "ts"})
Count = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
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
        wide = log.create_topic("wide", partitions=8).partitions
        few = records([json.dumps(RECORD)] * (SHORT_RECORDS // wide))
        for number in range(wide):
            log.append("wide", few, partition=number)
        spark = start_spark(settings={"spark.jars": ",".join(map(str, jars.glob("*.jar")))})
        for title, count in (("long turn, decoded", decode), ("long turn, bytes only", count_all)):
            ways = {
                "connector": lambda count=count: connector(spark, broker.bootstrap, ranges, count),
                "librdkafka": lambda count=count: tasks(spark, log, ranges, count),
            }
            show(title, {name: measure(way) for name, way in ways.items()})
        half = SHORT_RECORDS // len(ranges)
        short = [range._replace(end=range.start + half) for range in ranges]
        spread = [Range(place, *extent) for place, extent in log.extents("wide").items()]
        for wanted in (short, spread):
            one = median_ms(lambda wanted=wanted: [list(log.read(range)) for range in wanted])
            print(f"short turn, {SHORT_RECORDS:,} records in {len(wanted)} partitions")
            print(f"  one after the other {one:7.1f} ms")
            together = median_ms(lambda wanted=wanted: log.read_many(wanted))
            print(f"  together            {together:7.1f} ms   {one / together:5.2f} times")
        log.close()
        spark.stop()


def median_ms(read: Callable[[], object]) -> float:
    """Return how long a read takes, warm."""
    times = []
    for _ in range(SHORT_READS):
        started = time.perf_counter()
        read()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def measure(way: Callable[[], DataFrame]) -> tuple[int, float]:
    """Return how many records were read, and the median seconds of three warm runs."""
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        count = sum(row.n for row in way().collect())
        seconds.append(time.perf_counter() - started)
    return count, statistics.median(seconds[1:])


def count_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    count = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"n": pa.array([count], pa.int64())})


def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    decoder = workers_decoder(STREAM, WANTED)
    count = 0
    for table in gather(batches):
        decoded = decoder.decode(table)
        assert not len(decoded.dead)
        count += decoded.rows.num_rows
    yield pa.record_batch({"n": pa.array([count], pa.int64())})


def connector(spark: SparkSession, bootstrap: str, ranges: list[Range], count: Count) -> DataFrame:
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
    return columns.mapInArrow(count, "n BIGINT")


def tasks(spark: SparkSession, log: KafkaLog, ranges: list[Range], count: Count) -> DataFrame:
    """Let tasks read as long turns do."""
    splits = [split for range in ranges for split in log.splits(range, max_records=range.span)]

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from count(splits[number].read())

    return spark.range(len(splits), numPartitions=len(splits)).mapInArrow(read, "n BIGINT")


def show(title: str, found: dict[str, tuple[int, float]]) -> None:
    print(title)
    base = found["connector"][1]
    for name, (count, seconds) in found.items():
        rate = count / seconds
        print(f"  {name:12} {seconds:7.3f} s {rate:12,.0f} records/s   {base / seconds:5.2f} times")


if __name__ == "__main__":
    main()
