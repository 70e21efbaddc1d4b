"""Events per second by HTTP: batches of 500, each answered after the sync, no view running.

Method: the API serves an embedded log in this process; a process of its own sends bodies that were
made beforehand over a few connections, each of which sends the next when the last was answered. The
same batches go to the log directly with `append`, in turn with the requests, from as many threads
as there are connections, and from one. All rounds are printed, and the best of each.

    python bench/ingest.py [--connections 8] [--seconds 5] [--rounds 3] [--view]

Goal: 50,000 events/s on 2 cores, client included. With --view the log is also folded into one view.
"""

import argparse
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from headrace.log import EmbeddedLog, records
from headrace.log.base import Log
from headrace.model.definitions import Project
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.sql import parse_project
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore

BATCH = 500
WARM_ROUNDS = 10
LEVEL_SECONDS = 240
TOKEN = "bench"
DEFINITIONS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');
CREATE STREAM clicks (id STRING, card STRING) WITH (topic = 'clicks', format = 'json');
CREATE MATERIALIZED VIEW per_second WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS second, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 second'), country;
"""
LINES, ARRAY = "application/x-ndjson", "application/json"
#: What is sent: the topic, the type, and whether each request has an Idempotency-Key.
CASES = {
    "JSON lines, no key": ("clicks", LINES, False),
    "JSON array, no key": ("clicks", ARRAY, False),
    "JSON lines, declared key": ("payments", LINES, False),
    "JSON lines, key, idempotent": ("payments", LINES, True),
}


def events(number: int) -> list[bytes]:
    return [
        f'{{"id":"e{i}","card":"c{i * 7919 % 1000}","amount":{i * 31 % 10_000 / 100},'
        f'"country":"{("DE", "US", "FR", "IN")[i % 4]}",'
        f'"ts":"2026-01-01T12:00:00.{i % 1000:03d}Z"}}'.encode()
        for i in range(number * BATCH, (number + 1) * BATCH)
    ]


def request(topic: str, type_: str, values: list[bytes], key: str | None) -> bytes:
    body = b"\n".join(values) if type_ == LINES else b"[" + b",".join(values) + b"]"
    named = "" if key is None else f"Idempotency-Key: {key}\r\n"
    head = (
        f"POST /v1/topics/{topic} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: {type_}\r\nContent-Length: {len(body)}\r\n{named}\r\n"
    )
    return head.encode() + body


def receive(connection: socket.socket) -> None:
    """Take one answer, which must be 200."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65_536)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), found
    (length,) = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    while len(body) < length:
        body += connection.recv(65_536)


def produce(url: str, connections: int, orders: Connection) -> None:
    """Send what is ordered for so many seconds; tell how many requests, in what time."""
    address = urlsplit(url)
    batches = [events(number) for number in range(20)]
    while (order := orders.recv()) is not None:
        case, seconds = order
        topic, type_, idempotent = CASES[case]
        prepared = [request(topic, type_, values, None) for values in batches]

        def send(thread: int) -> int:
            sent = 0
            deadline = time.monotonic() + seconds  # noqa: B023 - all ends before the next order
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while time.monotonic() < deadline:
                    at = (thread + sent) % len(batches)
                    data = prepared[at]  # noqa: B023
                    if idempotent:  # noqa: B023
                        key = f"{os.getpid()}-{thread}-{sent}-{time.monotonic_ns()}"
                        data = request(topic, type_, batches[at], key)  # noqa: B023
                    connection.sendall(data)
                    receive(connection)
                    sent += 1
            return sent

        begin, spent = time.monotonic(), time.process_time()
        with ThreadPoolExecutor(connections) as pool:
            sent = sum(pool.map(send, range(connections)))
        orders.send((sent, time.monotonic() - begin, time.process_time() - spent))


def append_directly(log: Log, topic: str, threads: int, seconds: float) -> float:
    """Return the rate of `append` itself; the tables are made beforehand."""
    keyed = topic == "payments"
    tables = []
    for number in range(20):
        values = events(number)
        keys = [value.split(b'"')[7] for value in values] if keyed else None
        tables.append(records(values, keys=keys))

    def send(thread: int) -> int:
        sent = 0
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            log.append(topic, tables[(thread + sent) % len(tables)])
            sent += 1
        return sent

    begin = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        sent = sum(pool.map(send, range(threads)))
    return sent * BATCH / (time.monotonic() - begin)


@contextmanager
def engine_of(project: Project, log: Log, store: Store) -> Iterator[Callable[[], int]]:
    """Run an engine; yield what tells how many events its view has."""
    from headrace.engine.engine import Engine
    from headrace.engine.running import run_engine
    from headrace.engine.spark.session import start_spark

    engine = Engine(project, log, store, start_spark())
    engine.start()
    stop = threading.Event()
    thread = threading.Thread(target=run_engine, args=(engine, stop))
    thread.start()

    def count() -> int:
        with store.open() as snapshot:
            rows = snapshot.query("SELECT sum(_events)::BIGINT AS n FROM per_second")
        return int(rows["n"][0].as_py() or 0)

    try:
        yield count
    finally:
        stop.set()
        thread.join()
        engine.close()


def warm_up(orders: Connection, log: Log, count: Callable[[], int]) -> None:
    """Send records until the view keeps up: Java compiles what it runs often."""
    for _ in range(WARM_ROUNDS):
        orders.send((next(case for case in CASES if CASES[case][0] == "payments"), 1.0))
        orders.recv()
        level(log, count)


def level(log: Log, count: Callable[[], int]) -> None:
    """Wait until the view has all that the log holds."""
    wanted = sum(extent.end_offset for extent in log.extents("payments").values())
    deadline = time.monotonic() + LEVEL_SECONDS
    while count() < wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"the view has {count():,} of {wanted:,} events after a while")
        time.sleep(0.2)


def run(url: str, log: Log, options: argparse.Namespace, count: Callable[[], int] | None) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    producer = context.Process(target=produce, args=(url, options.connections, theirs))
    producer.start()
    cases = [case for case in CASES if count is None or CASES[case][0] == "payments"]
    if count is not None:
        warm_up(ours, log, count)
    for case in cases:
        topic = CASES[case][0]
        direct, alone, served, processor = [], [], [], []
        for _ in range(options.rounds):
            if count is None:
                direct.append(append_directly(log, topic, options.connections, options.seconds / 2))
                alone.append(append_directly(log, topic, 1, options.seconds / 2))
            before = count() if count else 0
            spent = time.process_time()
            ours.send((case, options.seconds))
            sent, seconds, client = ours.recv()
            server = time.process_time() - spent
            served.append(sent * BATCH / seconds)
            processor.append((server * 1000 / sent, client * 1000 / sent))
            if count:
                print(f"  meanwhile the view took in {(count() - before) / seconds:,.0f} events/s")
                level(log, count)
        shown = " ".join(f"{rate:,.0f}" for rate in served)
        print(f"{case}: best {max(served):,.0f} events/s of {shown}")
        ms = min(processor)
        print(f"  of a core for a request: server {ms[0]:.1f} ms, client {ms[1]:.1f} ms")
        if count is None:
            print(
                f"  append itself: {max(direct):,.0f} from {options.connections} threads (HTTP: "
                f"{max(served) / max(direct):.2f} of it), {max(alone):,.0f} from one "
                f"({max(served) / max(alone):.2f})"
            )
    ours.send(None)
    producer.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--view", action="store_true", help="beside a view that is kept up to date")
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.connections} connections"
    )
    project = parse_project({"bench": DEFINITIONS})
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=options.folder) as name,
        closing(EmbeddedLog(Path(name) / "log")) as log,
        closing(DuckDBStore(Path(name) / "store.duckdb")) as store,
    ):
        for topic in ("payments", "clicks"):
            log.create_topic(topic)
        desk = StoreDesk("bench", log, store, Settings(), pipelines=list)
        services = Services(desk, log, store, project=lambda: project)
        permissions = Permissions([TokenGrant.of(TOKEN, Grant("bench", Role.INGEST))])
        with (
            engine_of(project, log, store) if options.view else nullcontext() as count,
            serve(make_app(services, permissions)) as url,
        ):
            run(url, log, options, count)


if __name__ == "__main__":
    main()
