"""How fresh a table is: from the call of append to the record being visible in a query.

Method: a process of its own appends 10,000 JSON events a second to an embedded log, in batches of
100; the engine folds them into one view; a reader asks the view for its number of events every 20
ms. The delay of a batch runs from the call of `append` to the end of the first query that
counts it. The same batches are also timed from append to a read of the log itself, which is what
there is without tables: the ratio says what Spark and the commit add.

    python bench/freshness.py [--rate 10000] [--seconds 20]
"""

import argparse
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
from headrace.engine.session import start_spark
from headrace.ledger.entries import TurnReport
from headrace.log import EmbeddedLog, records
from headrace.sql import parse_project
from headrace.store.duckdb import DuckDBStore

BATCH = 100
WARM_SECONDS = 20
DEFINITIONS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
CREATE MATERIALIZED VIEW per_second WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS second, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 second'), country;
"""


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
    counted: list[tuple[float, int]], count: Callable[[], int], stop: threading.Event
) -> None:
    while not stop.is_set():
        events = count()
        counted.append((time.monotonic(), events))
        time.sleep(0.02)


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
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        log = EmbeddedLog(folder / "log")
        log.create_topic("payments")
        store = DuckDBStore(folder / "store.duckdb")
        engine = Engine(parse_project({"bench": DEFINITIONS}), log, store, start_spark())
        engine.start()
        reports: list[TurnReport] = []
        engine.on_turn = reports.append
        stop, in_table, in_log = threading.Event(), [], []  # type: ignore[var-annotated]

        def in_the_table() -> int:
            with store.open() as snapshot:
                rows = snapshot.query("SELECT sum(_events)::BIGINT AS n FROM per_second")
            return int(rows["n"][0].as_py() or 0)

        def in_the_log() -> int:
            return sum(extent.end_offset for extent in log.extents("payments").values())

        threads = [
            threading.Thread(target=run_engine, args=(engine, stop)),
            threading.Thread(target=watch, args=(in_table, in_the_table, stop)),
            threading.Thread(target=watch, args=(in_log, in_the_log, stop)),
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
        for thread in threads:
            thread.join()
        warm = int(WARM_SECONDS * arguments.rate / BATCH)
        table, plain = (delays_ms(times, counted)[warm:] for counted in (in_table, in_log))
        print(f"{arguments.rate} events/s into one view, {len(table)} batches of {BATCH}")
        for quantile in (50, 90, 99, 100):
            ours, base = np.percentile(table, quantile), np.percentile(plain, quantile)
            print(f"p{quantile}: {ours:.0f} ms to the table; {base:.1f} ms to the log alone")
        last = reports[len(reports) // 2 :]
        steps = {
            step: np.median([r.milliseconds[step] for r in last]) for step in last[0].milliseconds
        }
        print(f"turns: {len(last)}, median {np.median([r.records for r in last]):.0f} records")
        print("median ms per step: " + ", ".join(f"{k} {v:.1f}" for k, v in steps.items()))
        engine.close()
        store.close()
        log.close()


if __name__ == "__main__":
    main()
