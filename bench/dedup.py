"""Dedup of 10M distinct ids in long turns, beside the same replay without `unique`.

Method: the events stand in an embedded log of four partitions, each with a 36-byte id; one in a
hundred comes again within the horizon. Both projects replay the log in one process, in turn, and
the best run of each counts. Meanwhile the largest resident memory of any of their Python workers is
read from /proc. Others may use the machine too: its load is printed, and the core-seconds that the
process and its children used, which depend on it less than the time that passed.

    python bench/dedup.py [--events 10000000] [--runs 2]
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.ledger.entries import MAIN
from headrace.log import EmbeddedLog
from headrace.log.base import APPENDS
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

PARTITIONS = 4
DEFINITIONS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json'{unique});
CREATE MATERIALIZED VIEW per_minute WITH (allowed_lateness = '2 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 minute'), country;
"""
UNIQUE = ", unique = 'id', unique_within = '1 day'"
# Every 101st event has the id of the one before it.
EVENTS = """
SELECT '{"id":"' || uuid_of(i - CASE WHEN i % 101 = 100 THEN 1 ELSE 0 END)
  || '","card":"c' || (hash(i) % 100000) || '","amount":' || ((hash(i) % 10000) / 100.0)
  || ',"country":"' || (['DE','US','FR','IN'])[1 + (hash(i) % 4)::INT]
  || '","ts":"' || strftime(TIMESTAMP '2026-01-01' + to_milliseconds(i * 4 // 10),
       '%Y-%m-%dT%H:%M:%S.%gZ') || '"}' AS value
FROM range(?, ?) r(i)
"""
UUID_OF = """
CREATE MACRO uuid_of(n) AS md5(n::VARCHAR)[:8] || '-' || md5(n::VARCHAR)[9:12] || '-'
  || md5(n::VARCHAR)[13:16] || '-' || md5(n::VARCHAR)[17:20] || '-' || md5(n::VARCHAR)[21:32]
"""


def make_events(folder: Path, events: int) -> None:
    log = EmbeddedLog(folder / "log", sync=False)
    log.create_topic("payments", partitions=PARTITIONS)
    share = events // PARTITIONS
    with duckdb.connect() as connection:
        connection.execute(UUID_OF)
        for partition in range(PARTITIONS):
            # Ids of their own: the same id in two partitions is two ids.
            for start in range(0, share, 500_000):
                base = partition * share
                bounds = [base + start, base + min(share, start + 500_000)]
                values = connection.sql(EVENTS, params=bounds).to_arrow_table()["value"]
                for at in range(0, len(values), 5_000):
                    chunk = values.slice(at, 5_000).combine_chunks().cast(pa.binary())
                    nulls = [pa.nulls(len(chunk), field.type) for field in APPENDS]
                    table = pa.table([nulls[0], chunk, nulls[2]], schema=APPENDS)
                    log.append("payments", table, partition=partition)
    log.close()


class WorkerMemory:
    """Watches the Python workers of this process's Spark; `peak_bytes` is of the largest one."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "WorkerMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            parents: dict[int, int] = {}
            peaks: dict[int, int] = {}
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    status = dict(
                        line.split(":", 1) for line in (process / "status").read_text().splitlines()
                    )
                    number = int(process.name)
                    parents[number] = int(status["PPid"])
                    if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                        peaks[number] = int(status["VmHWM"].split()[0]) * 1024
                except (OSError, KeyError):
                    continue  # it ended meanwhile
            mine = [peak for number, peak in peaks.items() if _descends(number, parents)]
            self.peak_bytes = max([self.peak_bytes, *mine])


def core_seconds() -> float:
    """Return the processor time of this process and all that it started, so far."""
    ticks, parents = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(process.name)] = int(fields[1])
        ticks[int(process.name)] = sum(map(int, fields[11:15]))
    mine = sum(used for number, used in ticks.items() if _descends(number, parents))
    return mine / os.sysconf("SC_CLK_TCK")


def _descends(number: int, parents: dict[int, int]) -> bool:
    while number in parents and number != os.getpid():
        number = parents[number]
    return number == os.getpid()


def replay(folder: Path, spark: SparkSession, run: str, *, unique: bool) -> dict[str, float]:
    log = EmbeddedLog(folder / "log")
    store = DuckDBStore(folder / run / "store.duckdb")
    definitions = DEFINITIONS.format(unique=UNIQUE if unique else "")
    engine = Engine(parse_project({"bench": definitions}), log, store, spark)
    engine.start()
    begin, used = time.perf_counter(), core_seconds()
    while engine.turn():
        pass
    found: dict[str, float] = {"seconds": time.perf_counter() - begin}
    found["core_seconds"] = core_seconds() - used
    runs = engine.units[MAIN].runs.get("payments", ())
    found["rows"] = sum(run.rows for run in runs)
    found["bytes"] = sum({run.file: run.file_bytes for run in runs}.values())
    found["files"] = len({run.file for run in runs})
    with store.open() as snapshot:
        found["duplicates"] = sum(
            counted.get("duplicate", 0)
            for owner, counted in snapshot.counters().items()
            if owner.kind == "stream"
        )
    engine.close()
    store.close()
    log.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_100_000)
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        make_events(folder, arguments.events)
        spark = start_spark()
        best: dict[bool, dict[str, float]] = {}
        with WorkerMemory() as memory:
            for run in range(arguments.runs):
                for unique in (True, False):
                    found = replay(folder, spark, f"{unique}{run}", unique=unique)
                    if unique not in best or found["seconds"] < best[unique]["seconds"]:
                        best[unique] = found
                    label = "unique" if unique else "plain"
                    load = os.getloadavg()[0]
                    print(
                        f"run {run + 1}: {label}: {found['seconds']:.1f} s, "
                        f"{found['core_seconds']:.1f} core-seconds, load {load:.1f}",
                        flush=True,
                    )
        with_ids, without = best[True], best[False]
        events = arguments.events
        for label, found in (("unique", with_ids), ("plain", without)):
            print(
                f"{label}: {events / found['seconds']:,.0f} events/s, "
                f"{events / found['core_seconds']:,.0f} per core-second"
            )
        print(f"unique takes {with_ids['seconds'] / without['seconds']:.2f}x the time of plain")
        print(
            f"state: {with_ids['rows']:,.0f} ids in {with_ids['bytes'] / 1e6:,.0f} MB, "
            f"{with_ids['files']:.0f} files; {with_ids['duplicates']:,.0f} duplicates"
        )
        print(f"largest Python worker: {memory.peak_bytes / 1e6:,.0f} MB resident")
        print(f"cores: {os.cpu_count()}, load at the end: {os.getloadavg()[0]:.1f}")
        spark.stop()


if __name__ == "__main__":
    main()
