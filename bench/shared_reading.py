"""What groups and queues of the embedded log cost: polls, commits, deliveries, acknowledgements.

    python bench/shared_reading.py

Prints medians beside that of a plain append, and what several processes take from one queue
together. Ends in 20 s.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headrace.consume import consume_queue, join_group
from headrace.log import Append, EmbeddedLog, records

BATCH_RECORDS = 1_000
RECORD_BYTES = 100
PARTITIONS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    parser.add_argument("--rounds", type=int, default=100, help="calls to time")
    parser.add_argument("--processes", type=int, default=4, help="consumers of one queue")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench_group(Path(folder) / "group", options.rounds)
        bench_queue(Path(folder) / "queue", options.rounds)
        bench_processes(Path(folder) / "processes", options.processes)


def timed(call: Callable[[], object], seconds: list[float]) -> None:
    started = time.perf_counter()
    call()
    seconds.append(time.perf_counter() - started)


def show(what: str, seconds: list[float], count: int = 1) -> None:
    median = statistics.median(seconds) * 1e6
    each = "" if count == 1 else f", {median / count:8.2f} µs/record"
    print(f"{what:42} {median:10,.0f} µs{each}")


def bench_group(path: Path, rounds: int) -> None:
    log = EmbeddedLog(path)
    log.create_topic("in", partitions=PARTITIONS)
    log.create_topic("out", partitions=1)
    table = records([os.urandom(RECORD_BYTES) for _ in range(BATCH_RECORDS)])
    output = Append("out", records(["done"]), 0)
    member = join_group(log, "bench", ["in"])
    member.poll(timeout_s=0)
    append: list[float] = []
    empty: list[float] = []
    poll: list[float] = []
    commit: list[float] = []
    together: list[float] = []
    for number in range(rounds):
        timed(partial(log.append, "in", table, partition=number % PARTITIONS), append)
        timed(member.poll, poll)
        timed(member.commit, commit)
        timed(lambda: member.poll(timeout_s=0), empty)
        log.append("in", table, partition=number % PARTITIONS)
        member.poll()
        timed(lambda: member.commit([output]), together)
    show(f"append of {BATCH_RECORDS} records", append)
    show(f"group: poll of {BATCH_RECORDS} records", poll, BATCH_RECORDS)
    show("group: poll that finds nothing", empty)
    show("group: commit", commit)
    show("group: commit with output", together)
    log.close()


def fill(log: EmbeddedLog, count: int) -> None:
    log.create_topic("jobs", partitions=PARTITIONS)
    table = records([os.urandom(RECORD_BYTES) for _ in range(count // PARTITIONS)])
    for number in range(PARTITIONS):
        log.append("jobs", table, partition=number)


def bench_queue(path: Path, rounds: int) -> None:
    log = EmbeddedLog(path)
    fill(log, rounds * 1_200)
    consumer = consume_queue(log, "bench", "jobs")
    for count in (1, 100, 1_000):
        poll: list[float] = []
        acknowledge: list[float] = []
        for _ in range(rounds):
            started = time.perf_counter()
            deliveries = consumer.poll(max_records=count)
            poll.append(time.perf_counter() - started)
            assert len(deliveries) == count
            timed(partial(consumer.acknowledge, deliveries), acknowledge)
        show(f"queue: poll of {count}", poll, count)
        show(f"queue: acknowledge {count}", acknowledge, count)
    log.close()


def bench_processes(path: Path, processes: int) -> None:
    log = EmbeddedLog(path)
    fill(log, 40_000)
    log.close()
    started = time.perf_counter()
    children = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            consume(path)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    rate = 40_000 / (time.perf_counter() - started)
    print(f"queue: {processes} processes, 100 at a time {rate:22,.0f} records/s")


def consume(path: Path) -> None:
    log = EmbeddedLog(path)
    consumer = consume_queue(log, "bench", "jobs")
    slowest_s = 0.0
    started = time.perf_counter()
    while deliveries := consumer.poll(timeout_s=0.1):
        consumer.acknowledge(deliveries)
        now = time.perf_counter()
        slowest_s, started = max(slowest_s, now - started), now
    print(f"  slowest poll and acknowledge: {slowest_s * 1e3:.0f} ms", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
