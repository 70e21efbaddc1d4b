"""A store with rows, and pools of processes over it, as the tests of queries have them."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.ledger.entries import Progress
from headrace.model.canonical import to_canonical
from headrace.serve.queries.forms import Form
from headrace.serve.queries.limits import QueryLimits
from headrace.serve.queries.pool import QueryPool
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import (
    PARTITION_0,
    counts,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)

# The ledger has these; the tables are those of the store's own suite.
DEFINITIONS = """
CREATE STREAM clicks (k STRING) WITH (topic = 'web.clicks', format = 'json');
CREATE MATERIALIZED VIEW hits AS SELECT k, count(*) AS n FROM clicks GROUP BY k;
"""
MB = 1 << 20
ENDLESS = "SELECT sum(i) FROM range(1000000000000) t(i)"
#: Small, so that hungry queries are soon at their limits.
LIMITS = QueryLimits(seconds=1.5, memory_bytes=192 * MB, patience_seconds=60.0)


class Filled:
    """A store with a view `hits` of some rows; `turn` adds more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = DuckDBStore(folder / "store.duckdb")
        self.epoch = self.store.begin_epoch()
        self.table = counts()
        self.turns = 0
        defined = parse_project({"clicks.sql": DEFINITIONS})
        both = (*defined.views, *defined.streams)
        self._forms = tuple(json.dumps(to_canonical(each)) for each in both)
        held = replace(holding(self.table), forms=self._forms)
        self.store.hold(self.epoch, [stream_holding(), held], {"main": {PARTITION_0: Progress()}})
        self.store.prepare(self.table)
        self.store.show(self.epoch, "main", [self.table])
        self.turn(("a", 1, 1, 1, 1), ("b", 2, 3, 4, 5))

    def turn(self, *rows: tuple[Any, ...]) -> None:
        self.fold(delta(self.table, *rows))

    def fold(self, rows: pa.Table) -> None:
        self.turns += 1
        plan = planned(self.epoch, self.turns)
        self.store.commit(turn_of(plan, {self.table: (rows,)}))

    def add_view(self, name: str) -> None:
        table = counts(name)
        held = replace(holding(table), forms=self._forms)
        self.store.hold(self.epoch, [held], {})
        self.store.prepare(table)
        self.store.show(self.epoch, "main", [table])

    def pool(self, limits: QueryLimits = LIMITS, **changes: Any) -> QueryPool:
        return QueryPool(self.store, folder=self.folder, limits=replace(limits, **changes))


def rows_of(pool: QueryPool, sql: str, **options: Any) -> list[list[Any]]:
    """Return the rows of an answer."""
    answer = pool.ask(sql, form=Form.JSON, **options)
    found: list[list[Any]] = json.loads(b"".join(answer.json_chunks()))["rows"]
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come about")


def is_running(pid: int) -> bool:
    """Tell whether a process is there and does something."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def cpu_of(pid: int) -> int:
    """Return the time that a process has worked, in ticks."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def kill_busy(pool: QueryPool) -> int:
    """Kill the process that answers a query now, as the system would, and return its id."""
    idle = {pid: cpu_of(pid) for pid in pool.processes()}
    busy: list[int] = []

    def is_busy() -> bool:
        busy[:] = [pid for pid in idle if is_running(pid) and cpu_of(pid) > idle[pid] + 10]
        return bool(busy)

    wait_until(is_busy)
    os.kill(busy[0], signal.SIGKILL)
    return busy[0]
