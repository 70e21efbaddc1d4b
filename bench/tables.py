"""A table of a changelog topic: replay of many upserts, and live turns over all its keys.

Replay: the upserts stand in an embedded log of four partitions and, for DuckDB and Spark, in files
of JSON lines; the newest row of a key is max_by(row, number) there. A tumbling view
is replayed over the same records. Each runs several times in one process, interleaved; the best run
counts. Live: on the table that the last replay left, turns of a quarter of a second's upserts of
random keys, every other one merged with MERGE instead of by replacing rows. Printed are ratios.

    python bench/tables.py [--upserts 5000000] [--keys 1000000] [--runs 3] [--turns 60]
"""

import argparse
import logging
import statistics
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
from headrace.sql import parse_project
from headrace.store.duckdb import commit
from headrace.store.duckdb.store import DuckDBStore

PARTITIONS = 4
TABLE = """
CREATE TABLE accounts (account STRING PRIMARY KEY, owner STRING, balance DECIMAL(12,2), n BIGINT)
WITH (topic = 'accounts', format = 'upsert');
"""
VIEW = """
CREATE STREAM changes (
  account STRING, owner STRING, balance DECIMAL(12,2), n BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'accounts', format = 'json');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n, sum(balance) AS total
FROM changes GROUP BY window(ts, '1 minute');
"""
UPSERTS = """
SELECT '{{"account":"a' || k || '"}}' AS key,
  '{{"account":"a' || k || '","owner":"owner ' || (i % 1000) || '","balance":'
  || (i % 100000) / 100.0
  || ',"n":' || i || ',"ts":"' || strftime(TIMESTAMP '2026-01-01' + to_milliseconds(i // 10),
    '%Y-%m-%dT%H:%M:%S.%gZ') || '"}}' AS value
FROM (SELECT i, (hash(i) % {keys}) // {partitions} * {partitions} + {partition} AS k
  FROM range({start}, {end}) r(i))
"""
COLUMNS = "{account:'VARCHAR',owner:'VARCHAR',balance:'DECIMAL(12,2)',n:'BIGINT',ts:'TIMESTAMP'}"


def upserts(start: int, end: int, keys: int, partition: int) -> pa.Table:
    """Return records of one partition, each of whose keys is in no other one."""
    text = UPSERTS.format(
        keys=keys, partitions=PARTITIONS, partition=partition, start=start, end=end
    )
    with duckdb.connect() as connection:
        return connection.sql(text).to_arrow_table()


def append(log: EmbeddedLog, rows: pa.Table, partition: int, batch: int) -> None:
    for start in range(0, rows.num_rows, batch):
        part = rows.slice(start, batch)
        key, value = (part[name].combine_chunks().cast(pa.binary()) for name in ("key", "value"))
        headers = pa.nulls(len(key), APPENDS.field("headers").type)
        log.append("accounts", pa.table([key, value, headers], schema=APPENDS), partition=partition)


def make_upserts(folder: Path, count: int, keys: int) -> None:
    log = EmbeddedLog(folder / "log", sync=False)
    log.create_topic("accounts", partitions=PARTITIONS)
    share = count // PARTITIONS
    for partition in range(PARTITIONS):
        rows = upserts(partition * share, (partition + 1) * share, keys, partition)
        append(log, rows, partition, 1_000)
        lines = rows["value"].combine_chunks().cast(pa.binary())
        with (folder / f"{partition}.json").open("wb") as file:
            file.write(b"\n".join(value.as_buffer() for value in lines) + b"\n")
    log.close()


def replay(folder: Path, spark: SparkSession, definitions: str, name: str) -> Engine:
    """Return an engine that has read everything; its store is `name` in the folder."""
    store = DuckDBStore(folder / name / "store.duckdb")
    log = EmbeddedLog(folder / "log")
    engine = Engine(parse_project({"bench": definitions}), log, store, spark)
    engine.start()
    while engine.turn():
        pass
    return engine


def close(engine: Engine) -> None:
    engine.close()
    engine.tools.store.close()
    engine.tools.log.close()


def by_duckdb(folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT account, max_by(r, n) FROM read_json('{folder}/*.json', "
            f"format='newline_delimited', columns={COLUMNS}) r GROUP BY account"
        )


def by_spark(folder: Path, spark: SparkSession) -> None:
    schema = "account string, owner string, balance decimal(12,2), n bigint, ts timestamp"
    text = spark.read.text([str(folder / f"{number}.json") for number in range(PARTITIONS)])
    rows = text.select(F.from_json("value", schema).alias("r"))
    newest = rows.groupBy("r.account").agg(F.max_by("r", "r.n").alias("r"))
    newest.write.mode("overwrite").parquet(str(folder / "spark"))


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def live(engine: Engine, keys: int, rate: int, turns: int) -> None:
    """Print how long turns and their commits take, with both ways of merging."""
    log = engine.tools.log
    assert isinstance(log, EmbeddedLog)
    share = rate // 4 // PARTITIONS
    found: dict[str, list[tuple[float, float]]] = {"replaced": [], "MERGE": []}
    ways = {"replaced": commit.REPLACE_ROWS, "MERGE": 1 << 60}
    begin = 10**9
    for turn in range(-10, turns):
        way = ("replaced", "MERGE")[turn % 2]
        commit.REPLACE_ROWS = ways[way]
        for partition in range(PARTITIONS):
            start = begin + (turn * PARTITIONS + partition) * share
            append(log, upserts(start, start + share, keys, partition), partition, share)
        [report] = engine.turn()
        if turn >= 0:
            steps = report.milliseconds
            found[way].append((sum(steps.values()), steps["commit"]))
    commit.REPLACE_ROWS = ways["replaced"]
    medians = {
        way: [statistics.median(column) for column in zip(*steps, strict=True)]
        for way, steps in found.items()
    }
    for way, (whole, committed) in medians.items():
        print(
            f"live, {share * PARTITIONS} upserts a turn over {keys:,} keys, {way}: turn p50 "
            f"{whole:.0f} ms, commit {committed:.0f} ms"
        )
    turn, committed = (a / b for a, b in zip(medians["MERGE"], medians["replaced"], strict=True))
    print(f"MERGE takes {turn:.2f}x of the turn and {committed:.2f}x of the commit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upserts", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=60)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        make_upserts(folder, arguments.upserts, arguments.keys)
        spark = start_spark()
        best: dict[str, float] = {}
        for run in range(arguments.runs):
            for label, work in {
                "table": lambda run=run: close(replay(folder, spark, TABLE, f"table{run}")),
                "tumbling view": lambda run=run: close(replay(folder, spark, VIEW, f"view{run}")),
                "DuckDB max_by": lambda: by_duckdb(folder),
                "Spark max_by": lambda: by_spark(folder, spark),
            }.items():
                seconds = timed(work)
                best[label] = min(seconds, best.get(label, seconds))
                print(f"run {run + 1}: {label}: {seconds:.1f} s", flush=True)
        ours = best["table"]
        for label, seconds in best.items():
            rate = arguments.upserts / seconds / 1e6
            print(f"{label}: {rate:.2f}M upserts/s; the table runs at {seconds / ours:.2f}x of it")
        engine = replay(folder, spark, TABLE, "live")
        live(engine, arguments.keys, arguments.rate, arguments.turns)
        close(engine)
        spark.stop()


if __name__ == "__main__":
    main()
