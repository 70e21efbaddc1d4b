"""A demo that runs in a process of its own, for tests of the dashboard and for pictures of it."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

__all__ = ["LINK", "PAGES", "running_demo"]

START_SECONDS = 120
LINK = re.compile(r"dashboard: (\S+)")

#: The pages of the demo, by the names of their pictures.
PAGES = {
    "overview": "#/overview",
    "graph": "#/graph",
    "view": "#/view/revenue_per_minute",
    "leaderboard": "#/view/shops",
    "suspicious": "#/view/suspicious_cards",
    "visits": "#/view/visits",
    "stream": "#/stream/payments",
    "sql": "#/sql?q=" + quote("SELECT shop, payments, revenue FROM shops ORDER BY revenue DESC"),
}


@contextmanager
def running_demo(folder: Path, *, rate: int = 300) -> Iterator[str]:
    """Run a demo and yield the link to its dashboard; it is ended by Ctrl-C."""
    command = [sys.executable, "-m", "headrace.cli.main", "demo", "--no-browser"]
    command += ["--dir", str(folder), "--rate", str(rate)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.extend(process.stderr or []), daemon=True)
        reading.start()
        try:
            yield _await_link(process, lines)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await_link(process: "subprocess.Popen[str]", lines: list[str]) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in list(lines):
            if found := LINK.search(line):
                return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the demo does not start: {''.join(lines)[-2000:]}")
