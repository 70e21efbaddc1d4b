"""What a sink adds to a live turn: milliseconds of its steps with one and without, and the ratio.

Method: turns of 1,000 records, one engine for each kind of window and each of the two. Windows that
overlap get a full history first: the panes of the first turn are copied to every minute of the 24
hours before, within the store. Each turn is a second later than the one before. Two turns are not
counted; a kind ends after its turns or its time, whichever comes first, and at least one counts.

    python bench/sinks.py [--keys 1000] [--turns 20] [--seconds 60] [--only hopping]
"""

import argparse
import logging
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
from pyspark.sql import SparkSession

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.ledger.entries import TurnReport
from headrace.log import EmbeddedLog, records
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

TURN_RECORDS = 1_000
WARM_TURNS = 2
HISTORY_MINUTES = 24 * 60
FIRST = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
DEFINITIONS = """
CREATE STREAM payments (
  card STRING NOT NULL, amount DOUBLE, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
CREATE MATERIALIZED VIEW spend AS
SELECT window.start AS start, window.end AS until, card, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY {window}, card;
"""
SINK = "CREATE SINK told FROM spend WITH (topic = 'told');"


@dataclass(frozen=True)
class Kind:
    """A kind of window, and of the keys that are there the share that a turn touches."""

    window: str
    overlaps: bool = False
    touched: float = 1.0


KINDS = {
    "tumbling, 1 min": Kind("window(ts, '1 minute')"),
    "session, gap 1 min": Kind("session_window(ts, '1 minute')"),
    "hopping, 24 h every min": Kind("window(ts, '24 hours', '1 minute')", overlaps=True),
    "hopping, 24 h every min, 1% of keys": Kind(
        "window(ts, '24 hours', '1 minute')", overlaps=True, touched=0.01
    ),
    "cumulative, 24 h by min": Kind("cumulate(ts, '1 minute', '24 hours')", overlaps=True),
}


def append(log: EmbeddedLog, keys: int, second: int) -> None:
    """Append the records of a turn, so many keys in turn."""
    ts = (FIRST + timedelta(seconds=second)).isoformat()
    values = [
        f'{{"card":"c{i % keys}","amount":{i * 31 % 10_000 / 100},"ts":"{ts}"}}'
        for i in range(TURN_RECORDS)
    ]
    log.append("payments", records(values))


def fill_history(path: Path) -> None:
    """Copy the panes that are there to every minute of a day before them."""
    with duckdb.connect(str(path)) as connection:
        [(name,)] = connection.execute(
            "SELECT table_name FROM duckdb_columns() "
            "WHERE schema_name = 'headrace' AND column_name = 'first_window'"
        ).fetchall()
        connection.execute(
            f'INSERT INTO headrace."{name}" SELECT p.* '
            f"REPLACE (p.pane - i AS pane, p.first_window - i AS first_window) "
            f'FROM headrace."{name}" p, range(1, {HISTORY_MINUTES}) r(i) ORDER BY i DESC'
        )


def measure(
    spark: SparkSession, kind: Kind, *, sink: bool, keys: int, turns: int, seconds: float
) -> tuple[list[TurnReport], int]:
    """Return the reports of the turns that count, and how many records each told the sink."""
    text = DEFINITIONS.format(window=kind.window) + (SINK if sink else "")
    project = parse_project({"bench": text})
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        path = Path(name) / "store.duckdb"
        log = EmbeddedLog(Path(name) / "log")
        log.create_topic("payments", partitions=1)
        reports: list[TurnReport] = []
        told = 0
        for is_first in (True, False):
            store = DuckDBStore(path)
            engine = Engine(project, log, store, spark)
            engine.start()
            if is_first:
                append(log, keys, 0)
                engine.turn()
                told -= end_of_sink(log)
            else:
                reports = take_turns(
                    engine, log, max(1, round(keys * kind.touched)), turns, seconds
                )
            engine.close()
            store.close()
            if is_first and kind.overlaps:
                fill_history(path)
        told += end_of_sink(log)
        log.close()
    return reports, told // (WARM_TURNS + len(reports))


def end_of_sink(log: EmbeddedLog) -> int:
    """Return how many records the sink's topic has."""
    if "told" not in {topic.name for topic in log.topics()}:
        return 0
    return sum(extent.end_offset for extent in log.extents("told").values())


def take_turns(
    engine: Engine, log: EmbeddedLog, keys: int, turns: int, seconds: float
) -> list[TurnReport]:
    reports: list[TurnReport] = []
    deadline = time.monotonic() + seconds
    for number in range(WARM_TURNS + turns):
        append(log, keys, number + 1)
        reports += engine.turn(max_records=TURN_RECORDS)
        if time.monotonic() > deadline and len(reports) > WARM_TURNS:
            break
    return reports[WARM_TURNS:]


def steps(reports: Sequence[TurnReport]) -> tuple[float, float, float]:
    """Return the medians of whole turns, of their commits and of their publishing."""
    whole = np.median([sum(report.milliseconds.values()) for report in reports])
    parts = [
        np.median([report.milliseconds.get(step, 0.0) for report in reports])
        for step in ("commit", "publish")
    ]
    return float(whole), float(parts[0]), float(parts[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    spark = start_spark()
    for label, kind in KINDS.items():
        if not label.startswith(arguments.only):
            continue
        whole: dict[bool, float] = {}
        for sink in (False, True):
            reports, told_records = measure(
                spark,
                kind,
                sink=sink,
                keys=arguments.keys,
                turns=arguments.turns,
                seconds=arguments.seconds,
            )
            whole[sink], commit, publish = steps(reports)
            told = f"{told_records:,}"
            ratio = f"; {whole[True] / whole[False]:.1f}x without" if sink else ""
            print(
                f"{label}, {arguments.keys} keys, {'a sink' if sink else 'no sink'}: turn p50 "
                f"{whole[sink]:.0f} ms, commit {commit:.0f}, publish {publish:.0f}; "
                f"{len(reports)} turns, {told} records to the sink{ratio}",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
