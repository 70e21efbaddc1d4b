"""What windows that overlap cost: 24 h / 1 min hopping beside 1 min tumbling, in one run.

Method: the events stand in an embedded log of four partitions. Each view alone is replayed from its
start, in long turns, several times in one process, interleaved; the best run counts. Measured is
maintenance: reading, folding and merging, up to the last commit; nothing is emitted or read back.
CPU seconds are those of this process and its children, Spark's JVM among them.

    python bench/windows.py [--events 2000000] [--runs 3]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.log import EmbeddedLog
from headrace.log.base import APPENDS
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

PARTITIONS = 4
STREAM = """
CREATE STREAM payments (
  amount DECIMAL(12,2), country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
"""
VIEW = """
CREATE MATERIALIZED VIEW spend WITH (allowed_lateness = '2 minutes') AS
SELECT window.start AS start, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY {window}, country;
"""
WINDOWS = {
    "tumbling, 1 min": "window(ts, '1 minute')",
    "hopping, 24 h / 1 min": "window(ts, '24 hours', '1 minute')",
    "cumulative, 24 h / 1 min": "cumulate(ts, '1 minute', '24 hours')",
}
# About three days of event time, one in a hundred events a minute behind.
EVENTS = """
SELECT '{"amount":' || ((hash(i) % 10000) / 100.0)
  || ',"country":"' || (['DE','US','FR','IN'])[1 + (hash(i) % 4)::INT]
  || '","ts":"' || strftime(TIMESTAMP '2026-01-01' + to_milliseconds(
       i * ? - CASE WHEN hash(i) % 100 = 0 THEN 60000 ELSE (hash(i) % 3000)::BIGINT END),
       '%Y-%m-%dT%H:%M:%S.%gZ') || '"}' AS value
FROM range(?) r(i)
"""
SPAN_MS = 3 * 86_400_000


def make_events(folder: Path, events: int) -> None:
    log = EmbeddedLog(folder / "log", sync=False)
    log.create_topic("payments", partitions=PARTITIONS)
    each = events // PARTITIONS
    with duckdb.connect() as connection:
        query = connection.sql(EVENTS, params=[SPAN_MS // each, each])
        values = query.to_arrow_table()["value"]
    for partition in range(PARTITIONS):
        for start in range(0, len(values), 1_000):
            chunk = values.slice(start, 1_000).combine_chunks().cast(pa.binary())
            nulls = [pa.nulls(len(chunk), field.type) for field in APPENDS]
            table = pa.table([nulls[0], chunk, nulls[2]], schema=APPENDS)
            log.append("payments", table, partition=partition)
    log.close()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it started, ended ones too (Linux)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        fields = text.rpartition(")")[2].split()
        process = int(file.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(int(field) for field in fields[11:15])  # its own and ended children's
    total = 0
    for process, used in ticks.items():
        ancestor = process
        while ancestor not in (0, os.getpid()):
            ancestor = parents.get(ancestor, 0)
        total += used if ancestor == os.getpid() else 0
    return total / os.sysconf("SC_CLK_TCK")


def replay(folder: Path, spark: SparkSession, window: str, run: int) -> tuple[float, float, int]:
    """Return seconds, CPU seconds and rows of state of one replay."""
    log = EmbeddedLog(folder / "log")
    store = DuckDBStore(folder / f"run{run}" / f"{abs(hash(window))}.duckdb")
    project = parse_project({"bench": STREAM + VIEW.format(window=window)})
    engine = Engine(project, log, store, spark, settings=Settings())
    engine.start()
    began, used = time.perf_counter(), cpu_seconds()
    while engine.turn(gear="long"):
        pass
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - used
    with store.open() as snapshot:
        rows = sum(snapshot.state_rows().values())
    engine.close()
    store.close()
    log.close()
    return seconds, cpu, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        make_events(folder, arguments.events)
        spark = start_spark()
        best: dict[str, tuple[float, float, int]] = {}
        for run in range(arguments.runs):
            for label, window in WINDOWS.items():
                found = replay(folder, spark, window, run)
                print(f"run {run + 1}: {label}: {found[0]:.1f} s, {found[1]:.1f} CPU s", flush=True)
                best[label] = min(found, best.get(label, found), key=lambda each: each[1])
        _, cpu_of_tumbling, rows_of_tumbling = best["tumbling, 1 min"]
        for label, (_, cpu, rows) in best.items():
            print(
                f"{label}: {arguments.events / cpu:,.0f} events per core-second, "
                f"{cpu / cpu_of_tumbling:.2f}x the CPU of tumbling; {rows:,} rows of state, "
                f"{rows / rows_of_tumbling:.2f}x"
            )
        spark.stop()


if __name__ == "__main__":
    main()
