"""How long from `headrace run` to the first record in a table, in seconds by step.

    python bench/start.py [--views 1 10] [--starts 3]

Method: a real `headrace run` over a project whose topic holds one record. The first start is not
counted: it loads Java and Python from disk. Time runs from the start of the process. Each step of
the start is taken when the engine says that it begins; the record is there when the engine's API
answers with it. The ratio is to a process in the same run that starts Spark and asks for one row.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.log import EmbeddedLog, records
from headrace.project.lock import read_address
from headrace.serve.client import EngineClient

PATIENCE_SECONDS = 120
STREAM = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, country STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json');
"""
VIEW = """
CREATE MATERIALIZED VIEW per_{number} AS
SELECT window.start AS start, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '{number} seconds'), country;
"""
RECORD = '{"id": "1", "card": "c", "amount": 1.5, "country": "DE", "ts": "2026-01-01T00:00:00Z"}'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    for views in options.views:
        start(views)  # loads what the others find in memory
        found = [start(views) for _ in range(options.starts)]
        bare_s = statistics.median(start_bare_spark() for _ in range(options.starts))
        middle = {step: statistics.median(each[step] for each in found) for step in found[0]}
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in middle.items())
        visible = middle["visible"]
        print(
            f"{views:2} views: first record visible after {visible:.1f} s "
            f"(worst {max(each['visible'] for each in found):.1f}); {steps}; "
            f"{visible / bare_s:.1f}x Spark alone ({bare_s:.1f} s)",
            flush=True,
        )


def start_bare_spark() -> float:
    """Return how long a process takes that starts Spark, asks for a row and ends."""
    bare = (
        "from headrace.engine.spark.session import start_spark\n"
        "start_spark().sql('SELECT 1').collect()"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", bare], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def start(views: int) -> dict[str, float]:
    """Return when each step of a start began, and when the record was visible, in seconds."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        folder = Path(name)
        (folder / "headrace.toml").write_text('[project]\nname = "start"\n')
        text = STREAM + "".join(VIEW.format(number=at + 1) for at in range(views))
        (folder / "definitions.sql").write_text(text)
        log = EmbeddedLog(folder / ".headrace" / "log")
        log.create_topic("payments")
        log.append("payments", records([RECORD]))
        log.close()
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli.main", "run", "-p", str(folder)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        steps: dict[str, float] = {}

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                for step in ("starting Spark", "checking", "preparing", "serving"):
                    if step in line:
                        steps.setdefault(step.split()[-1], time.monotonic() - began)

        threading.Thread(target=read, daemon=True).start()
        try:
            await_record(folder, began, process)
            return {**steps, "visible": time.monotonic() - began}
        finally:
            process.terminate()
            process.wait(60)


def await_record(folder: Path, began: float, process: "subprocess.Popen[str]") -> None:
    while time.monotonic() - began < PATIENCE_SECONDS and process.poll() is None:
        address = read_address(folder / ".headrace")
        if address is not None:
            client = EngineClient(address)
            with suppress(HeadraceError):  # it is not ready yet
                if client.sql("SELECT sum(n) FROM per_1")["rows"][0][0] == 1:
                    return
            client.close()
        time.sleep(0.02)
    raise SystemExit("the engine ended, or the record was not there in time")


if __name__ == "__main__":
    main()
