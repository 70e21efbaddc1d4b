"""Replay 5M JSON events, beside a plain Spark job and one DuckDB query over the same records.

Method: the events stand in an embedded log of four partitions and, for the other two, in four
files of JSON lines. Each contestant runs five times in one process, interleaved; the best run
counts, so that every one is warm. Printed are ratios; rates are this machine's.

    python bench/replay.py [--events 5000000] [--runs 5]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.log import EmbeddedLog
from headrace.log.base import APPENDS
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

PARTITIONS = 4
DEFINITIONS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
CREATE MATERIALIZED VIEW per_minute WITH (allowed_lateness = '2 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 minute'), country;
"""
EVENTS = """
SELECT '{"id":"e' || i || '","card":"c' || (hash(i) % 100000) || '","amount":'
  || ((hash(i) % 10000) / 100.0)
  || ',"country":"' || (['DE','US','FR','IN'])[1 + (hash(i) % 4)::INT]
  || '","ts":"' || strftime(TIMESTAMP '2026-01-01' + to_milliseconds(
       i * 4 // 10 - CASE WHEN hash(i) % 100 = 0 THEN 60000 ELSE (hash(i) % 3000)::BIGINT END),
       '%Y-%m-%dT%H:%M:%S.%gZ') || '"}' AS value
FROM range(?) r(i)
"""


def make_events(folder: Path, events: int) -> None:
    log = EmbeddedLog(folder / "log", sync=False)
    log.create_topic("payments", partitions=PARTITIONS)
    with duckdb.connect() as connection:
        query = connection.sql(EVENTS, params=[events // PARTITIONS])
        values = query.to_arrow_table()["value"]
    for partition in range(PARTITIONS):
        for start in range(0, len(values), 1_000):
            chunk = values.slice(start, 1_000).combine_chunks().cast(pa.binary())
            nulls = [pa.nulls(len(chunk), field.type) for field in APPENDS]
            table = pa.table([nulls[0], chunk, nulls[2]], schema=APPENDS)
            log.append("payments", table, partition=partition)
        with (folder / f"{partition}.json").open("wb") as file:
            file.write(b"\n".join(value.as_buffer() for value in values.cast(pa.binary())) + b"\n")
    log.close()


def replay(folder: Path, spark: SparkSession, run: int) -> int:
    log = EmbeddedLog(folder / "log")
    store = DuckDBStore(folder / f"run{run}" / "store.duckdb")
    engine = Engine(parse_project({"bench": DEFINITIONS}), log, store, spark, settings=Settings())
    engine.start()
    while engine.turn():
        pass
    with store.open() as snapshot:
        rows = snapshot.query("SELECT count(*) FROM per_minute").to_pylist()
    engine.close()
    store.close()
    log.close()
    return int(rows[0]["count_star()"])


def plain_spark(folder: Path, spark: SparkSession) -> int:
    schema = "id string, card string, amount double, country string, ts timestamp"
    text = spark.read.text([str(folder / f"{p}.json") for p in range(PARTITIONS)])
    rows = text.select(F.from_json("value", schema).alias("r")).select("r.*")
    grouped = rows.groupBy(F.window("ts", "1 minute"), "country")
    return int(grouped.agg(F.count("*"), F.sum("amount")).toArrow().num_rows)


def plain_duckdb(folder: Path) -> int:
    columns = "{id:'VARCHAR',card:'VARCHAR',amount:'DOUBLE',country:'VARCHAR',ts:'TIMESTAMP'}"
    with duckdb.connect() as connection:
        query = (
            f"SELECT time_bucket(INTERVAL 1 MINUTE, ts) w, country, count(*), sum(amount) "
            f"FROM read_json('{folder}/*.json', format='newline_delimited', columns={columns}) "
            f"GROUP BY ALL"
        )
        return len(connection.execute(query).fetchall())


def timed(work: Callable[[], int]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        make_events(folder, arguments.events)
        spark = start_spark()
        best: dict[str, float] = {}
        for run in range(arguments.runs):
            for label, work in {
                "headrace replay": lambda run=run: replay(folder, spark, run),
                "Spark from_json": lambda: plain_spark(folder, spark),
                "DuckDB read_json": lambda: plain_duckdb(folder),
            }.items():
                seconds = timed(work)
                best[label] = min(seconds, best.get(label, seconds))
                print(f"run {run + 1}: {label}: {seconds:.1f} s", flush=True)
        ours = best["headrace replay"]
        for label, seconds in best.items():
            rate = arguments.events / seconds / 1e6
            print(f"{label}: {rate:.2f}M events/s; headrace runs at {seconds / ours:.2f}x of it")
        spark.stop()


if __name__ == "__main__":
    main()
