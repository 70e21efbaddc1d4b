"""Fixtures for all tests. Spark is started once per run, by the first test that needs it."""

import sys
from pathlib import Path

import pytest

SLOW = (
    "cli",
    "store",
    "log/test_contract.py",
    "log/test_crash.py",
    "log/test_retention.py",
    "log/test_transactions.py",
)
HERE = Path(__file__).parent

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
