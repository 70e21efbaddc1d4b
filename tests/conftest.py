"""Fixtures for all tests. Spark and Kafka are started once per run, by the first who needs them.

Run by several workers, each has its own: their tests stop and start them as they like.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from in_memory import forget_folder, use_memory
from sharing import ByNeed, begins_with_spark, give_way, rank
from soaking import SEED, SOAKING

if TYPE_CHECKING:
    from broker import Broker
    from xdist.remote import Producer

SLOW = (
    "cli",
    "store",
    "consume/test_groups.py",
    "consume/test_queues.py",
    "consume/test_sender.py",
    "log/test_acks.py",
    "log/test_compaction_crash.py",
    "log/test_contract.py",
    "log/test_crash.py",
    "log/test_kafka.py",
    "log/test_kafka_cluster.py",
    "log/test_kafka_transactions.py",
    "log/test_epochs.py",
    "log/test_retention.py",
    "log/test_transactions.py",
    "serve/test_query_harm.py",
    "serve/test_query_pool.py",
    "serve/test_sql_over_http.py",
)
HERE = Path(__file__).parent

# Workers share the cores: Java's collector is to have no threads of its own. And Java compiles
# quickly instead of well, because tests run much new code a few times each: 55 instead of 85
# CPU-seconds for engine/test_aggregates.py.
# With that alone Java has 48 MB for compiled code, which the plans of some 200 views fill; then it
# dies with "Out of space in CodeCache".
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
)

# The tests start some hundred processes, and each of them would compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

use_memory()
give_way(os.environ.get("PYTEST_XDIST_WORKER"))

# No test fails because the machine is busy: Hypothesis would give an example 200 ms.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

# Helper modules stand beside the tests that use them.
for folder in HERE.iterdir():
    if folder.is_dir() and not (folder / "__init__.py").exists():
        sys.path.insert(0, str(folder))


def pytest_report_header() -> str | None:
    """Tell what draws the cases of a soak again."""
    return f"HEADRACE_SEED={SEED}" if SOAKING else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out, by where it stands. A soak has no time limits."""
    for item in items:
        if SOAKING:
            item.add_marker(pytest.mark.timeout(0), append=False)  # before the test's own
        if item.path.is_relative_to(HERE):
            place = item.path.relative_to(HERE).as_posix()
            if place.startswith(SLOW):
                item.add_marker("slow")
    items.sort(key=lambda item: rank(item.nodeid.split("::", 1)[0]))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give back the memory that temporary folders took."""
    forget_folder()


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> ByNeed:
    """Let sharing.py say which worker runs which file."""
    return ByNeed(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let Java take Spark's classes from an archive, in this process and in those it starts."""
    needed = any(item.get_closest_marker("spark") for item in session.items)
    if needed and not session.config.option.collectonly:
        from headrace.engine.spark.classes import OPTIONS, archived
        from headrace.engine.spark.java import cache_folder
        from headrace.log.embedded.files import locked
        from headrace.serve.archiving import make_archive

        if begins_with_spark(os.environ.get("PYTEST_XDIST_WORKER")):
            cache_folder().mkdir(parents=True, exist_ok=True)
            with locked(cache_folder() / "tests"):  # of several workers one makes it
                make_archive(os.environ[OPTIONS])
        os.environ[OPTIONS] = archived(os.environ[OPTIONS])


@pytest.fixture(scope="session")
def broker() -> "Iterator[Broker]":
    """Run a Kafka broker. Where its jars cannot be had its tests are skipped, but not in CI."""
    from broker import resolve_jars, run_broker

    from headrace.errors import Unreachable

    try:
        jars = resolve_jars()
    except Unreachable as error:
        if os.environ.get("HEADRACE_CI") or os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with run_broker(jars) as running:
        yield running
