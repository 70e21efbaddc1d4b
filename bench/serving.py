"""What readers cost: keyed reads by themselves, and freshness with subscribers and reads beside it.

1. `keyed`: reads of one row by its whole key over HTTP, one after another on one connection, from a
   view of windows and from one without, of `--rows` rows each. Reads a second, p50 and p99.
2. `load`: an engine folds 10,000 JSON events a second into one view. Phases of the same run: no
   readers; then 50 subscribers by WebSocket and 100 keyed reads a second, from a process of their
   own; then no readers again. The delay of a batch of 100 runs from the call of `append` to the
   first commit whose position covers it. With `--knee` subscribers are doubled until p99 has
   doubled.
The first minute is not counted: Java compiles what it runs often. Machine load changes all of it:
the phases without readers before and after say how much.

    python bench/serving.py [--only keyed] [--rows 1000000] [--seconds 20] [--knee]
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from freshness import BATCH, DEFINITIONS, WARM_SECONDS, produce
from websockets.asyncio.client import connect

from headrace.engine.engine import Engine
from headrace.engine.running import run_engine
from headrace.engine.spark.session import start_spark
from headrace.ledger.entries import MAIN, Progress, TurnReport
from headrace.log import EmbeddedLog
from headrace.model.definitions import Project
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.guard import Limits
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.serve.signal import Signal
from headrace.sql import parse_project
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import table_of
from headrace.testing.store.samples import PARTITION_0, holding, planned, stream_holding, turn_of

TOKEN = "bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SUBSCRIBERS, READS_PER_SECOND = 50, 100
# After all subscribers have their first rows: what readers cost while they come is not measured.
SETTLE_SECONDS = 3


@contextmanager
def served(store: Store, log: EmbeddedLog, commits: Signal) -> Iterator[str]:
    desk = StoreDesk("bench", log, store, Settings(), pipelines=list)
    services = Services(desk, log, store, project=lambda: Project((), ()), commits=commits)
    permissions = Permissions([TokenGrant.of(TOKEN, Grant("bench", Role.ADMIN))])
    limits = Limits(requests_per_second=100_000)
    with serve(make_app(services, permissions, limits=limits)) as url:
        yield url


def fill(store: Store, kind: str, rows: int) -> list[dict[str, str]]:
    """Give a view so many rows; return conditions that each find one."""
    table = table_of(kind, "v1", retention=False)
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(table)], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    numbers = np.arange(rows)
    keys = [f"user-{number * 7919 % rows:09d}" for number in range(rows)]
    # A thousand keys in each window.
    starts = pa.array(numbers // 1000 * 20).cast(pa.timestamp("us", "UTC"))
    columns = {"k": keys, "_events": np.ones(rows, "int64"), "most": numbers}
    columns |= {"window_start": starts}
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    delta = pa.table({name: columns[name] for name in schema.names}).cast(schema)
    store.commit(turn_of(planned(epoch, 1), {table: (delta,)}))
    found = []
    for number in np.random.default_rng(1).integers(0, rows, 500):
        where = [f"k={keys[number]}"]
        if kind != "forever":
            moment = starts[int(number)].as_py().isoformat().replace("+00:00", "Z")
            where.append(f"window_start={moment}")
        found.append({"where": where})
    return found


def keyed(rows: int) -> None:
    for kind, name in (("tumbling", "windows"), ("forever", "no windows")):
        with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
            log = EmbeddedLog(Path(folder) / "log")
            store = DuckDBStore(Path(folder) / "store.duckdb")
            asked = fill(store, kind, rows)
            with served(store, log, Signal()) as url, reader(url) as http:
                times = []
                for at, params in enumerate(asked):
                    begin = time.perf_counter()
                    answer = http.get("/v1/views/hits", params=params)
                    if at >= 50:
                        times.append((time.perf_counter() - begin) * 1000)
                    assert len(answer.json()["rows"]) == 1, answer.text
            p50, p99 = np.percentile(times, [50, 99])
            print(
                f"keyed reads, {name}, {rows} rows: {1000 / np.mean(times):.0f}/s on one "
                f"connection, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
            )
            store.close()
            log.close()


def reader(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers=HEADERS, trust_env=False, timeout=30)


def read_in_process(
    url: str, subscribers: int, reads: int, stop: ProcessEvent, told: "Queue[str]"
) -> None:
    """Follow and read until told to stop; then say what was seen."""
    asyncio.run(follow_and_read(url, subscribers, reads, stop, told))


class Requests:
    """A connection that sends requests by hand.

    A client library would take as much CPU as the engine does, and here they share the cores.
    """

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, target: str) -> int:
        """Return the status of an answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        incoming, outgoing = self._streams
        outgoing.write(
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        try:
            head = await incoming.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await incoming.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._streams = None
            return 0
        return int(head.split(b" ")[1])


async def follow_and_read(
    url: str, subscribers: int, reads: int, stop: ProcessEvent, told: "Queue[str]"
) -> None:
    messages, failed_reads, begun = [0], [0], [0]
    read_ms: list[float] = []

    async def follow() -> None:
        address = f"{url.replace('http', 'ws', 1)}/v1/views/per_second/changes"
        async with connect(
            address,
            additional_headers=HEADERS,
            proxy=None,
            compression=None,
            max_size=None,
            open_timeout=60,
        ) as socket:
            await socket.recv()
            begun[0] += 1
            async for _ in socket:
                messages[0] += 1

    async def read(free: "asyncio.Queue[Requests]", due: float) -> None:
        requests = await free.get()
        second = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 2))
        target = f"/v1/views/per_second?where=second={second}&where=country=DE"
        if await requests.get(target) == 200:
            read_ms.append((time.monotonic() - due) * 1000)
        else:
            failed_reads[0] += 1
        free.put_nowait(requests)

    tasks = [asyncio.create_task(follow()) for _ in range(subscribers)]
    free: asyncio.Queue[Requests] = asyncio.Queue()
    for _ in range(8):
        free.put_nowait(Requests(url))
    while begun[0] < subscribers:
        await asyncio.sleep(0.05)
    told.put("all are there")
    due = time.monotonic()
    waiting: set[asyncio.Task[None]] = set()
    while not stop.is_set():
        if reads:
            waiting.add(asyncio.create_task(read(free, due)))
            waiting = {each for each in waiting if not each.done()}
        due += 1 / (reads or 20)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await asyncio.gather(*waiting)
    for task in tasks:
        task.cancel()
    ended = [each for each in await asyncio.gather(*tasks, return_exceptions=True) if each]
    failed = [repr(each) for each in ended if not isinstance(each, asyncio.CancelledError)]
    p50, p99 = np.percentile(read_ms or [0.0], [50, 99])
    told.put(
        f"{messages[0]} messages, {len(read_ms)} reads with p50 {p50:.1f} ms and p99 {p99:.1f} ms, "
        f"{failed_reads[0]} reads refused, {len(failed)} subscribers lost {failed[:1]}, "
        f"{time.process_time():.1f} s of CPU"
    )


class Load:
    """An engine under load, and when each batch became visible."""

    def __init__(self, folder: Path, rate: int) -> None:
        self.folder = folder
        self.rate = rate
        self.log = EmbeddedLog(folder / "log")
        self.log.create_topic("payments")
        self.store = DuckDBStore(folder / "store.duckdb")
        project = parse_project({"bench": DEFINITIONS})
        self.engine = Engine(project, self.log, self.store, start_spark())
        self.engine.start()
        self.commits = Signal()
        self.seen: list[tuple[float, int]] = [(0.0, 0)]
        self.engine.emitting.on_commit = self._note
        self.turns: list[tuple[float, TurnReport]] = []
        self.engine.on_turn = lambda turn: self.turns.append((time.monotonic(), turn))

    def _note(self) -> None:
        with self.store.open() as snapshot:
            read = sum(place.offset for place in snapshot.progress(MAIN).values())
        self.seen.append((time.monotonic(), read))
        self.commits.note()


def delays_ms(called: list[float], seen: list[tuple[float, int]]) -> np.ndarray:
    moments = np.array([moment for moment, _ in seen])
    counts = np.array([count for _, count in seen])
    found = np.searchsorted(counts, (np.arange(len(called)) + 1) * BATCH)
    known = found < len(moments)
    return (moments[found[known]] - np.array(called)[known]) * 1000


def load(rate: int, seconds: float, *, knee: bool, apart: bool) -> None:
    phases = [(0, 0), (SUBSCRIBERS, READS_PER_SECOND), (0, 0)]
    if apart:
        phases = [(0, 0), (SUBSCRIBERS, 0), (0, 0), (0, READS_PER_SECOND), (0, 0)]
    if knee:
        more = [(SUBSCRIBERS * 2**n, READS_PER_SECOND) for n in range(1, 5)]
        phases = [(0, 0), (SUBSCRIBERS, READS_PER_SECOND), *more, (0, 0)]
    total = WARM_SECONDS + (seconds + 15) * len(phases)  # readers come and go in between
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        work = Load(Path(name), rate)
        stop = threading.Event()
        turning = threading.Thread(target=run_engine, args=(work.engine, stop))
        turning.start()
        context = multiprocessing.get_context("spawn")
        called: Queue[list[float]] = context.Queue()
        told: Queue[str] = context.Queue()
        producer = context.Process(target=produce, args=(work.folder, rate, total, called))
        producer.start()
        edges = []
        with served(work.store, work.log, work.commits) as url:
            time.sleep(WARM_SECONDS)
            for subscribers, reads in phases:
                ends = context.Event()
                asked = (url, subscribers, reads, ends, told)
                readers = context.Process(target=read_in_process, args=asked)
                is_read = subscribers or reads
                if is_read:
                    readers.start()
                    told.get(timeout=60)
                    time.sleep(SETTLE_SECONDS)
                spent = time.process_time()
                from_s = time.monotonic()
                time.sleep(seconds)
                edges.append((from_s, time.monotonic(), os.getloadavg()[0]))
                spent = (time.process_time() - spent) / seconds
                print(f"{subscribers} subscribers, {reads} reads/s: Python takes {spent:.2f} cores")
                if is_read:
                    ends.set()
                    print(f"    {told.get(timeout=60)}", flush=True)
                    readers.join()
            times = called.get(timeout=total)
            producer.join()
            deadline = time.monotonic() + 60
            while work.seen[-1][1] < len(times) * BATCH and time.monotonic() < deadline:
                time.sleep(0.05)
        stop.set()
        turning.join()
        report(phases, edges, times, work)
        work.engine.close()
        work.store.close()
        work.log.close()


def report(
    phases: list[tuple[int, int]],
    edges: list[tuple[float, float, float]],
    times: list[float],
    work: Load,
) -> None:
    delays = delays_ms(times, work.seen)
    moments = np.array(times[: len(delays)])
    base = 0.0
    for (subscribers, reads), (from_s, to_s, machine) in zip(phases, edges, strict=True):
        within = delays[(moments >= from_s) & (moments < to_s)]
        p50, p99 = np.percentile(within, [50, 99])
        base = base or p99
        print(
            f"{subscribers:4d} subscribers, {reads:3d} reads/s: freshness p50 {p50:.0f} ms, "
            f"p99 {p99:.0f} ms, ratio {p99 / base:.2f} (machine load {machine:.1f})"
        )
        turns = [turn for moment, turn in work.turns if from_s <= moment < to_s]
        steps = {
            step: np.median([turn.milliseconds[step] for turn in turns])
            for step in turns[0].milliseconds
        }
        middle = ", ".join(f"{step} {spent:.0f}" for step, spent in steps.items())
        print(f"    {len(turns)} turns, median ms: {middle}")
        if subscribers and p99 > 2 * base:
            print(f"    p99 has doubled with {subscribers} subscribers: the knee is before that")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["keyed", "load"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--knee", action="store_true")
    parser.add_argument("--apart", action="store_true", help="subscribers and reads by themselves")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    print(f"machine load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if arguments.only != "load":
        keyed(arguments.rows)
    if arguments.only != "keyed":
        load(arguments.rate, arguments.seconds, knee=arguments.knee, apart=arguments.apart)


if __name__ == "__main__":
    main()
