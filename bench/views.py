"""What a live turn costs with 1 to 32 views: milliseconds by step, and what a view adds.

Method: a process of its own appends JSON events at a steady rate, in batches of 100, while the
engine folds them into so many windowed views of different sizes. Turns of the first seconds are not
counted: Java compiles what it runs often. The ratio is to one view in the same run.

    python bench/views.py [--views 1,4,8,16,32] [--rates 2000,10000] [--warm 20] [--seconds 15]
"""

import argparse
import logging
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from freshness import produce

from headrace.engine.engine import Engine
from headrace.engine.running import run_engine
from headrace.engine.spark.session import start_spark
from headrace.ledger.entries import TurnReport
from headrace.log import EmbeddedLog
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

STREAM = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
"""
VIEW = """
CREATE MATERIALIZED VIEW per_{seconds} WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS start, {key}, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '{seconds} seconds'), {key};
"""


def measure(views: int, rate: int, warm: float, seconds: float) -> list[TurnReport]:
    """Return the reports of the turns that count."""
    text = STREAM + "".join(
        VIEW.format(seconds=at + 1, key=("country", "card")[at % 2]) for at in range(views)
    )
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        log = EmbeddedLog(folder / "log")
        log.create_topic("payments")
        store = DuckDBStore(folder / "store.duckdb")
        engine = Engine(parse_project({"bench": text}), log, store, start_spark())
        engine.start()
        reports: list[tuple[float, TurnReport]] = []
        engine.on_turn = lambda report: reports.append((time.monotonic(), report))
        stop = threading.Event()
        turning = threading.Thread(target=run_engine, args=(engine, stop))
        turning.start()
        context = multiprocessing.get_context("spawn")
        called = context.Queue()
        producer = context.Process(target=produce, args=(folder, rate, warm + seconds, called))
        producer.start()
        called.get()
        producer.join()
        end = time.monotonic()
        stop.set()
        turning.join()
        engine.close()
        store.close()
        log.close()
    return [report for at, report in reports if end - seconds <= at <= end]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", default="1,4,8,16,32")
    parser.add_argument("--rates", default="2000,10000")
    parser.add_argument("--warm", type=float, default=20)
    parser.add_argument("--seconds", type=float, default=15)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    for rate in map(int, arguments.rates.split(",")):
        one = None
        for views in map(int, arguments.views.split(",")):
            reports = measure(views, rate, arguments.warm, arguments.seconds)
            whole = [sum(report.milliseconds.values()) for report in reports]
            middle, high = np.percentile(whole, [50, 99])
            one = one or middle
            steps = ", ".join(
                f"{step} {np.median([report.milliseconds[step] for report in reports]):.0f}"
                for step in ("read", "fold", "commit", "publish")
            )
            records = np.median([report.records for report in reports])
            print(
                f"{rate} events/s, {views:2} views: turn p50 {middle:.0f} ms, p99 {high:.0f}; "
                f"{steps}; {len(whole)} turns of {records:.0f} records; "
                f"{middle / one:.1f}x one view",
                flush=True,
            )


if __name__ == "__main__":
    main()
