"""What an engine costs while nothing happens: its share of one core, by kind of process.

    python bench/idle.py [--seconds 60] [--streams 1 10] [--logs embedded kafka]

Method: a real `headrace run` over a project with so many streams and a view over each. Every stream
gets some records, so that plans, workers and connections are those of an engine that has worked.
After a pause the CPU time of its processes is taken from /proc, and again `--seconds` later:
- engine: the Python process: the turns' threads, the log, the store, the HTTP API;
- java: Spark;
- workers: Spark's Python workers.
Then one record is appended to a stream, ten times, and how long it takes until a turn has it is
printed: idling must not make an engine slow to wake. On Kafka the broker is not counted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from headrace.log import EmbeddedLog, Log, records

START_SECONDS = 120
WAKES = 10
DEFINITIONS = """
CREATE STREAM s{n} (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 's{n}', format = 'json');
CREATE MATERIALIZED VIEW v{n} AS
SELECT window.start AS minute, card, count(*) AS n, sum(amount) AS total
FROM s{n} GROUP BY window(ts, '1 minute'), card;
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=20, help="seconds before that")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--logs", nargs="+", default=["embedded", "kafka"])
    options = parser.parse_args()
    print(f"share of one core over {options.seconds:g} s without any record; wake: append to turn")
    print(f"{'log':9} {'streams':>7} {'engine':>8} {'java':>8} {'workers':>8} {'all':>8}   wake")
    for kind in options.logs:
        with ExitStack() as stack:
            bootstrap = None
            if kind == "kafka":
                from brokers import resolve_jars, run_broker

                bootstrap = stack.enter_context(run_broker(resolve_jars())).bootstrap
            for streams in options.streams:
                measure(kind, bootstrap, streams, options.seconds, options.settle)


def measure(kind: str, bootstrap: str | None, streams: int, seconds: float, settle: float) -> None:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        log = make_project(folder, bootstrap, streams)
        for number in range(streams):
            log.create_topic(f"s{number}")
        with running(folder) as engine:
            for number in range(streams):
                append(log, number, count=100)
            engine.await_records(100 * streams)
            time.sleep(settle)
            before, began = cpu_seconds(engine.pid), time.monotonic()
            time.sleep(seconds)
            after, took = cpu_seconds(engine.pid), time.monotonic() - began
            share = {part: 100 * (after[part] - before[part]) / took for part in after}
            wakes = [wake_ms(engine, log, number % streams) for number in range(WAKES)]
        parts = " ".join(f"{share[part]:6.2f} %" for part in ("engine", "java", "workers"))
        print(
            f"{kind:9} {streams:7} {parts} {sum(share.values()):6.2f} %   "
            f"median {statistics.median(wakes):.1f} ms, worst {max(wakes):.1f}",
            flush=True,
        )
        log.close()


def make_project(folder: Path, bootstrap: str | None, streams: int) -> Log:
    text = "".join(DEFINITIONS.format(n=number) for number in range(streams))
    (folder / "definitions.sql").write_text(text)
    if bootstrap is None:
        (folder / "headrace.toml").write_text('[project]\nname = "idle"\n')
        return EmbeddedLog(folder / ".headrace" / "log")
    from headrace.log import KafkaLog

    prefix = f"idle-{streams}."
    (folder / "headrace.toml").write_text(
        f'[project]\nname = "idle"\n[log]\nkind = "kafka"\nprefix = "{prefix}"\n'
        f'[log.client]\n"bootstrap.servers" = "{bootstrap}"\n'
    )
    return KafkaLog({"bootstrap.servers": bootstrap}, prefix=prefix)


def append(log: Log, number: int, *, count: int) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    values = [
        json.dumps({"id": str(each), "card": f"c{each % 7}", "amount": each, "ts": now})
        for each in range(count)
    ]
    log.append(f"s{number}", records(values, keys=[str(each) for each in range(count)]))


def wake_ms(engine: "Engine", log: Log, number: int) -> float:
    """Return how long after an append, by the engine's own times, the turn that has it began."""
    time.sleep(1.3)  # the engine is level again, and waits
    wanted = engine.records + 1
    append(log, number, count=1)
    appended = time.time()
    logged, turn_ms = engine.await_records(wanted)
    return (logged - appended) * 1000 - turn_ms


class Engine:
    """A running engine, and what its log says of turns."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._changed = threading.Condition()
        self._last = (0.0, 0.0)
        self.pid = process.pid
        self.records = 0
        self.serving = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            entry = json.loads(line) if line.startswith("{") else {"message": line}
            with self._changed:
                self.serving = self.serving or "serving" in entry["message"]
                if entry["message"] == "turn":
                    self.records += entry["records"]
                    self._last = time.time(), entry["ms"]
                self._changed.notify_all()

    def await_serving(self) -> None:
        """Return once the engine says that it serves."""
        self._await(lambda: self.serving)

    def await_records(self, count: int) -> tuple[float, float]:
        """Return when the turn with the last of them was logged, and how long it took."""
        self._await(lambda: self.records >= count)
        return self._last

    def _await(self, check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        with self._changed:
            while not check():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the engine ended, or did nothing for too long")
                self._changed.wait(0.5)


@contextmanager
def running(folder: Path) -> Iterator[Engine]:
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli.main", "run", "--json", "-p", str(folder)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        engine = Engine(process)
        engine.await_serving()
        yield engine
    finally:
        process.terminate()
        process.wait(60)


def cpu_seconds(root: int) -> dict[str, float]:
    """Return the CPU time of a process and all below it, by kind, with that of children gone."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {"engine": 0.0, "java": 0.0, "workers": 0.0}
    below = {root}
    for pid, parent, name, ticks in sorted(_processes()):
        if pid == root or parent in below:
            below.add(pid)
            kind = "engine" if pid == root else "java" if name == "java" else "workers"
            found[kind] += ticks / tick
    return found


def _processes() -> Iterator[tuple[int, int, str, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue  # it ended meanwhile
            name, _, rest = text.partition("(")[2].rpartition(")")
            fields = rest.split()
            yield int(entry), int(fields[1]), name, sum(map(int, fields[11:15]))


if __name__ == "__main__":
    main()
