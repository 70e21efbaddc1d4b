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
    from broker import Broker

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
