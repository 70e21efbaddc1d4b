"""What queries of others cost the engine: latency, export, and memory under hungry ones.

Method: a store with one counting view, filled through real commits. A small query is answered by
turns in this process and by the pool. Columns are exported into shared memory, best of five. Then
20 hungry queries are asked at once, with the limits that an engine has; the memory of this process
is read every 50 ms meanwhile, and a turn of 1,000 keys is committed as often as it can be.

    python bench/queries.py [--rows 1000000] [--queries 300] [--no-hungry]
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.ledger.entries import MAIN, Progress
from headrace.serve.queries.exports import Exports
from headrace.serve.queries.forms import Form
from headrace.serve.queries.limits import QueryLimits
from headrace.serve.queries.pool import QueryPool
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import (
    PARTITION_0,
    counts,
    holding,
    planned,
    stream_holding,
    turn_of,
)

STEP = 1_000_000
SMALL = "SELECT k, total FROM few WHERE k = 'card-00000007'"
HUNGRY = [
    "SELECT length(repeat('x', 4000000000))",
    "SELECT sum(i) FROM range(1000000000000) t(i)",
    "SELECT count(*) FROM range(100000000) a, range(100000000) b",
    "SELECT list(i) FROM range(1000000000) t(i)",
]


class Bench:
    """A store with the views `hits`, of many rows, and `few`, of 1,000."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.rows = rows
        self.store = DuckDBStore(folder / "store.duckdb")
        self.hits, self.few = counts(), counts("few")
        self.schema = pa.schema([(each.name, each.type.arrow) for each in self.hits.columns])
        self.epoch = self.store.begin_epoch()
        self.turns = 0
        # Without inputs: these views have no text that says which topics they read.
        held = [replace(holding(table), inputs=()) for table in (self.hits, self.few)]
        self.store.hold(self.epoch, [stream_holding(), *held], {MAIN: {PARTITION_0: Progress()}})
        for table in (self.hits, self.few):
            self.store.prepare(table)
        self.store.show(self.epoch, MAIN, [self.hits, self.few])
        self.turn(np.arange(1_000), few=True)
        for first in range(0, rows, STEP):
            self.turn(np.arange(first, min(rows, first + STEP)))

    def turn(self, numbers: np.ndarray, *, few: bool = False) -> None:
        """Commit a turn that changes the rows of some numbers."""
        self.turns += 1
        columns = [
            pa.array([f"card-{number:08d}" for number in numbers]),
            pa.array(np.ones(len(numbers), np.int64)),
            pa.array(numbers % 1_000).cast(pa.decimal128(38, 2)),
            pa.array(numbers % 7_919),
            pa.array(numbers * 31 % 100_003),
        ]
        delta = pa.Table.from_arrays(columns, names=self.schema.names).cast(self.schema)
        table = self.few if few else self.hits
        self.store.commit(turn_of(planned(self.epoch, self.turns), {table: (delta,)}))


def milliseconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def percentiles(times: Sequence[float]) -> str:
    """Return p50 and p99 as text."""
    return f"p50 {np.percentile(times, 50):6.1f} ms   p99 {np.percentile(times, 99):6.1f} ms"


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def ask_here(bench: Bench) -> None:
    """Answer the small query in this process."""
    with bench.store.open() as snapshot:
        snapshot.query(SMALL)


def measure_latency(bench: Bench, pool: QueryPool, queries: int) -> None:
    """Answer the small query by turns in both ways."""
    times: dict[str, list[float]] = {"in process": [], "pool": [], "pool, after a commit": []}
    for number in range(queries + 5):
        found = {
            "in process": milliseconds(lambda: ask_here(bench)),
            "pool": milliseconds(lambda: pool.ask(SMALL, form=Form.JSON).close()),
        }
        if number % 10 == 0:
            bench.turn(np.arange(10), few=True)
            asked = milliseconds(lambda: pool.ask(SMALL, form=Form.JSON).close())
            found["pool, after a commit"] = asked
        if number >= 5:
            for name, took in found.items():
                times[name].append(took)
    for name, each in times.items():
        print(f"small query, {name:21} {percentiles(each)}   ({len(each)} times)")


def measure_exports(bench: Bench) -> None:
    """Export one, three and all columns of the large view."""
    tables: dict[str, list[str]] = {"1 column": ["least"], "3 columns": ["k", "total", "least"]}
    tables["all columns"] = ["k", "total", "least", "greatest", "_events", "_closed"]
    for name, columns in tables.items():
        times, size = [], 0
        for _ in range(5):
            exports = Exports(bench.store, most_bytes=4 << 30, folder=bench.folder)
            known = exports.known()
            began = time.perf_counter()
            handed = exports.hand_out(
                {"hits": columns},
                known.tables,
                deadline=time.monotonic() + 600,
                cancelled=lambda: False,
            )
            times.append((time.perf_counter() - began) * 1000)
            size = sum(each.bytes for each in handed.files.values())
            exports.give_back(handed)
            exports.close()
        print(
            f"export of {bench.rows:,} rows, {name:11} {min(times):6.0f} ms   "
            f"{size / 1e6:5.0f} MB   this process {resident_bytes() / 1e6:.0f} MB"
        )


def measure_harm(bench: Bench, pool: QueryPool) -> None:
    """Ask 20 hungry queries at once, and commit turns meanwhile."""
    quiet = [milliseconds(lambda: bench.turn(np.arange(1_000), few=True)) for _ in range(20)]
    done = threading.Event()
    most, busy = [resident_bytes()], []

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], resident_bytes())

    def commit() -> None:
        while not done.is_set():
            busy.append(milliseconds(lambda: bench.turn(np.arange(1_000), few=True)))

    outcomes: dict[str, int] = {}

    def ask(sql: str) -> float:
        began = time.perf_counter()
        try:
            pool.ask(sql, form=Form.JSON).close()
            outcome = "answered"
        except HeadraceError as error:
            outcome = str(error).split(";")[0]
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        return time.perf_counter() - began

    before = resident_bytes()
    threads = [threading.Thread(target=watch), threading.Thread(target=commit)]
    for thread in threads:
        thread.start()
    with ThreadPoolExecutor(20) as askers:
        slowest = max(askers.map(ask, HUNGRY * 5))
    done.set()
    for thread in threads:
        thread.join()
    print(
        f"20 hungry queries: this process grew by {(most[0] - before) / 1e6:.0f} MB, the slowest "
        f"asker heard after {slowest:.1f} s (limit {pool.limits.seconds:g} s)"
    )
    for outcome, count in outcomes.items():
        print(f"    {count:2} x {outcome}")
    print(f"turns, quiet:  {percentiles(quiet)}\nturns, beside: {percentiles(busy)}")
    print(f"small query after them: {milliseconds(lambda: pool.ask(SMALL).close()):.1f} ms")


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=STEP, help="of the large view; 10000000 too")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--no-hungry", action="store_true")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.rows)
        with QueryPool(bench.store, folder=Path(folder), limits=QueryLimits()) as pool:
            while len(pool.processes()) < pool.limits.workers:
                time.sleep(0.05)
            measure_latency(bench, pool, options.queries)
            measure_exports(bench)
            if not options.no_hungry:
                measure_harm(bench, pool)
        bench.store.close()
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
