"""Fixtures for all tests. Spark and Kafka are started once per run, by the first who needs them.

Run by several workers, each has its own: their tests stop and start them as they like.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.broker import Broker

SLOW = (
    "cli",
    "store",
    "log/test_acks.py",
    "log/test_compaction_crash.py",
    "log/test_contract.py",
    "log/test_crash.py",
    "log/test_kafka.py",
    "log/test_kafka_cluster.py",
    "log/test_kafka_transactions.py",
    "log/test_groups.py",
    "log/test_epochs.py",
    "log/test_queues.py",
    "log/test_retention.py",
    "log/test_sender.py",
    "log/test_transactions.py",
)
HERE = Path(__file__).parent

# Workers share the cores: Java's collector is to have no threads of its own.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")

# Helper modules stand beside the tests that use them.
for folder in HERE.iterdir():
    if folder.is_dir() and not (folder / "__init__.py").exists():
        sys.path.insert(0, str(folder))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out, by where it stands."""
    for item in items:
        if item.path.is_relative_to(HERE):
            place = item.path.relative_to(HERE).as_posix()
            if place.startswith(SLOW):
                item.add_marker("slow")
    items[:] = _mixed(items)


def _mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return tests so that files that keep Spark busy stand among files that do not.

    Two workers with Spark at work are in each other's way; one of them beside another that waits,
    for Kafka, a process or a disk, is not.
    """
    busy: dict[Path, list[pytest.Item]] = {}
    others: dict[Path, list[pytest.Item]] = {}
    for item in items:
        is_busy = item.get_closest_marker("spark") is not None and item.path.parent.name != "cli"
        (busy if is_busy else others).setdefault(item.path, []).append(item)
    for path in busy.keys() & others.keys():
        busy[path] += others.pop(path)
    places = {path: at / len(kind) for kind in (busy, others) for at, path in enumerate(kind)}
    files = {**busy, **others}
    return [item for path in sorted(files, key=places.__getitem__) for item in files[path]]


@pytest.fixture(scope="session")
def broker() -> "Iterator[Broker]":
    """Run a Kafka broker. Where its jars cannot be had its tests are skipped, but not in CI."""
    from headrace.errors import Unreachable
    from headrace.testing.broker import resolve_jars, run_broker

    try:
        jars = resolve_jars()
    except Unreachable as error:
        if os.environ.get("HEADRACE_CI") or os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with run_broker(jars) as running:
        yield running
