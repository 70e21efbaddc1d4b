"""Make the archive of the classes that Spark loads (engine/spark/classes.py).

It is made once for a machine, by a process of its own that turns a small project in both gears,
`python -m headrace.serve.archiving`: beside an engine that runs, after a while, at the lowest
priority. Whoever starts Spark meanwhile does so without it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.engine.spark.classes import OPTIONS, QUIET, archive_of
from headrace.errors import HeadraceError
from headrace.log.embedded.files import try_locked
from headrace.log.opening import EmbeddedPlace, open_log
from headrace.log.records import records
from headrace.store.opening import open_store

__all__ = ["keeping_archive", "make_archive"]

MAX_ARCHIVES = 4
DELAY_SECONDS = 30.0  # an engine that has just started has other things to do
_MAKE_SECONDS = 600.0
_LOOK_SECONDS = 0.5
_LOWEST_PRIORITY = 19
_TOPIC = "s"
_PROJECT = f"""
CREATE STREAM {_TOPIC} (id STRING NOT NULL, n BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 1 SECOND) WITH (unique = 'id', unique_within = '1 hour');
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS start, count(*) AS n, sum(n) AS total FROM s GROUP BY window(ts, '1 minute');
"""
_RECORDS = ('{"id": "a", "n": 1, "ts": "2026-01-01T12:00:00Z"}', "{")


def make_archive(options: str, stop: threading.Event | None = None) -> None:
    """Make the archive for Java's options, unless it is there or another process makes it. OSError.

    What fails here fails when Spark is started, and is told then. `stop` gives it up.
    """
    archive = archive_of(options)
    if archive is None:
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with try_locked(archive.parent / "lock") as mine:
        if mine is None or archive.exists():
            return
        staging = archive.with_suffix(".making")
        staging.unlink(missing_ok=True)
        warm = f"{options} -XX:ArchiveClassesAtExit={staging} {QUIET}".strip()
        if not _load_classes(warm, stop or threading.Event()):
            staging.unlink(missing_ok=True)
            return
        if not staging.exists():
            staging.touch()  # empty: this Java makes none, and is not asked again
        staging.replace(archive)
        _tidy(archive.parent)


@contextmanager
def keeping_archive(options: str) -> Iterator[None]:
    """Make the archive while an engine runs, if it is missing; it is given up when that ends."""
    archive = archive_of(options)
    if archive is None or archive.exists():
        yield
        return
    stop = threading.Event()

    def make() -> None:
        if not stop.wait(DELAY_SECONDS):
            # The cache may not be writable, or full: Spark starts as it did.
            with suppress(OSError, HeadraceError):
                make_archive(options, stop)

    thread = threading.Thread(target=make, name="class-archive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _load_classes(options: str, stop: threading.Event) -> bool:
    """Return whether the process that loads the classes did its work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.serve.archiving"],
        env={**os.environ, OPTIONS: options},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, process.pid, _LOWEST_PRIORITY)
    waited_seconds = 0.0
    while not stop.is_set() and waited_seconds < _MAKE_SECONDS:
        try:
            # Its output is closed when Java has ended too, which writes the archive last.
            process.communicate(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            waited_seconds += _LOOK_SECONDS
        else:
            return process.returncode == 0
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return False


def _tidy(folder: Path) -> None:
    """Leave the newest archives: others are of Javas and Sparks that were there before."""
    found = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime_ns)
    for old in found[:-MAX_ARCHIVES]:
        old.unlink(missing_ok=True)


def main() -> None:
    """Do what engines do, so that Java loads what it loads for them."""
    from headrace.engine.engine import Engine
    from headrace.engine.gears.warming import warm_folds
    from headrace.engine.spark.session import start_spark
    from headrace.ledger.entries import MAIN
    from headrace.sql import parse_project

    spark = start_spark()
    with tempfile.TemporaryDirectory(prefix="headrace-classes-") as name:
        folder = Path(name)
        log = open_log(EmbeddedPlace(folder / "log"))
        store = open_store(folder / "store.duckdb")
        engine = Engine(parse_project({"classes.sql": _PROJECT}), log, store, spark)
        engine.start()
        warm_folds(spark, engine.tools.pool, engine.units[MAIN].folds)
        for gear in ("short", "long"):
            log.append(_TOPIC, records(_RECORDS))
            engine.turn(gear=gear)
        engine.close()
        store.close()
        log.close()
    spark.stop()


if __name__ == "__main__":
    main()
