"""How fresh a table is: from the call of append to the record being visible in a query.

Method: a process of its own appends 10,000 JSON events a second to an embedded log, in batches of
100; the engine folds them into one view; a reader asks the view for its number of events whenever
a turn was committed. The delay of a batch runs from the call of `append` to the end of the first
query that counts it. The same batches are also timed from append to a read of the log itself, every
20 ms, which is what there is without tables: the ratio says what Spark and the commit add.
The first minute is not counted: Java compiles what it runs often in the first few hundred turns.
With a sink, the events that the records of its topic tell of are summed in the end, by arrival: the
delay until these count a batch is that of the sink.

    python bench/freshness.py [--rate 10000] [--seconds 20] [--sink]
"""

import argparse
import json
import logging
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np

from headrace.engine.engine import Engine
from headrace.engine.running import run_engine
from headrace.engine.spark.session import start_spark
from headrace.ledger.entries import TurnReport
from headrace.log import EmbeddedLog, Range, records
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

BATCH = 100
WARM_SECONDS = 60
DEFINITIONS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
CREATE MATERIALIZED VIEW per_second WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS second, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 second'), country;
"""
SINK_TOPIC = "per-second"
SINK = f"CREATE SINK told FROM per_second WITH (topic = '{SINK_TOPIC}');"


def produce(folder: Path, rate: int, seconds: float, called: "Queue[list[float]]") -> None:
    log = EmbeddedLog(folder / "log")
    # All but the time is made beforehand: the two cores belong to what is measured.
    bodies = [
        f'{{"id":"e{i}","card":"c{i * 7919 % 1000}","amount":{i * 31 % 10_000 / 100},'
        f'"country":"{("DE", "US", "FR", "IN")[i % 4]}","ts":"'.encode()
        for i in range(10_000)
    ]
    times: list[float] = []
    begin = time.monotonic()
    for number in range(int(rate * seconds / BATCH)):
        due = begin + number * BATCH / rate
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.time()
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        end = f'{clock}.{int(now % 1 * 1000):03d}Z"}}'.encode()
        start = number * BATCH % len(bodies)
        values = [body + end for body in bodies[start : start + BATCH]]
        times.append(time.monotonic())
        log.append("payments", records(values))
    called.put(times)


def watch(
    counted: list[tuple[float, int]],
    count: Callable[[], int],
    wait: Callable[[], object],
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        wait()
        events = count()
        counted.append((time.monotonic(), events))


def told_events(log: EmbeddedLog) -> list[tuple[float, int]]:
    """Return how many events the records of the sink's topic told of, and since when.

    By the arrival of its records, so that no reader takes a core from what is measured.
    """
    to_monotonic = time.monotonic() - time.time()
    found = []
    for partition, extent in log.extents(SINK_TOPIC).items():
        for batch in log.read(Range(partition, *extent)):
            arrivals = batch["arrival"].cast("int64").to_pylist()
            found += zip(
                arrivals, batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True
            )
    counts: dict[bytes, int] = {}
    counted, events = [], 0
    for arrival_us, key, value in sorted(found, key=lambda each: each[0]):
        count = json.loads(value)["n"]
        events += count - counts.get(key, 0)
        counts[key] = count
        counted.append((arrival_us / 1_000_000 + to_monotonic, events))
    return counted


def delays_ms(called: list[float], counted: list[tuple[float, int]]) -> np.ndarray:
    moments = np.array([moment for moment, _ in counted])
    events = np.array([events for _, events in counted])
    wanted = (np.arange(len(called)) + 1) * BATCH
    seen = np.searchsorted(events, wanted)
    found = seen < len(moments)
    return (moments[seen[found]] - np.array(called)[found]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--sink", action="store_true", help="the view has a sink")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        log = EmbeddedLog(folder / "log")
        log.create_topic("payments")
        store = DuckDBStore(folder / "store.duckdb")
        definitions = DEFINITIONS + (SINK if arguments.sink else "")
        engine = Engine(parse_project({"bench": definitions}), log, store, start_spark())
        engine.start()
        reports: list[TurnReport] = []
        stop, committed = threading.Event(), threading.Semaphore(0)
        in_table: list[tuple[float, int]] = [(0.0, 0)]
        in_log: list[tuple[float, int]] = []

        def on_turn(report: TurnReport) -> None:
            reports.append(report)
            committed.release()

        engine.on_turn = on_turn

        def in_the_table() -> int:
            with store.open() as snapshot:
                rows = snapshot.query("SELECT sum(_events)::BIGINT AS n FROM per_second")
            return int(rows["n"][0].as_py() or 0)

        def pause() -> None:
            time.sleep(0.02)

        def in_the_log() -> int:
            return sum(extent.end_offset for extent in log.extents("payments").values())

        threads = [
            threading.Thread(target=run_engine, args=(engine, stop)),
            threading.Thread(target=watch, args=(in_table, in_the_table, committed.acquire, stop)),
            threading.Thread(target=watch, args=(in_log, in_the_log, pause, stop)),
        ]
        for thread in threads:
            thread.start()
        context = multiprocessing.get_context("spawn")
        called: Queue[list[float]] = context.Queue()
        seconds = WARM_SECONDS + arguments.seconds
        producer = context.Process(target=produce, args=(folder, arguments.rate, seconds, called))
        producer.start()
        times = called.get()
        producer.join()
        deadline = time.monotonic() + 30
        while in_table[-1][1] < len(times) * BATCH and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        committed.release()
        for thread in threads:
            thread.join()
        warm = int(WARM_SECONDS * arguments.rate / BATCH)
        table, plain = (delays_ms(times, counted)[warm:] for counted in (in_table, in_log))
        sink = delays_ms(times, told_events(log))[warm:] if arguments.sink else None
        print(f"{arguments.rate} events/s into one view, {len(table)} batches of {BATCH}")
        for quantile in (50, 90, 99, 100):
            ours, base = np.percentile(table, quantile), np.percentile(plain, quantile)
            told_ms = ""
            if sink is not None:
                told_ms = f"; {np.percentile(sink, quantile):.0f} ms to the sink"
            print(
                f"p{quantile}: {ours:.0f} ms to the table; {base:.1f} ms to the log alone{told_ms}"
            )
        last = reports[len(reports) * 2 // 3 :]
        print(f"turns: {len(last)}, median {np.median([r.records for r in last]):.0f} records")
        for step in last[0].milliseconds:
            spent = [report.milliseconds[step] for report in last]
            middle, high = np.percentile(spent, [50, 90])
            print(
                f"{step:>8}: median {middle:6.1f} ms, mean {np.mean(spent):6.1f}, p90 {high:6.1f}"
            )
        engine.close()
        store.close()
        log.close()


if __name__ == "__main__":
    main()
