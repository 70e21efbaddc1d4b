"""The log's contract: how far an append goes before it returns."""

# ruff: noqa: D102 (the name of a test is its sentence)

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import UsageError
from headrace.log.base import Acks, Log, Partition, Producer
from headrace.log.records import records
from headrace.testing.log_suite import LogSuite, values

__all__ = ["SendingTests", "wait_until"]

PATIENCE_S = 10.0


def wait_until(holds: Callable[[], bool]) -> None:
    """Return once something holds; fail if it does not for PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.002)


class SendingTests(LogSuite):
    """Acknowledgements."""

    def test_what_is_written_is_visible_soon(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=2)
        other = self.make_log(path)
        for n in range(20):
            done = log.append("t", records([f"{n}-a", f"{n}-b"]), partition=1, acks=1)
            assert sum(each.span for each in done.ranges) == 2
        expected = [f"{n}-{which}".encode() for n in range(20) for which in "ab"]
        wait_until(lambda: values(log, Partition("t", 1)) == expected)
        wait_until(lambda: values(other, Partition("t", 1)) == expected)
        other.close()

    def test_what_is_written_is_durable_once_the_log_is_closed(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=3)
        keys = [str(n) for n in range(50)]
        log.append("t", records(keys, keys=keys), acks=1)
        log.close()
        again = self.make_log(path)
        found = [value for place in again.extents("t") for value in values(again, place)]
        assert sorted(found, key=str) == sorted((key.encode() for key in keys), key=str)
        again.close()

    def test_written_and_durable_appends_keep_their_order(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        ways: list[Acks] = [1, 1, "all", 1, "all", "all", 1, "all"]
        for n, acks in enumerate(ways):
            log.append("t", records([str(n)]), partition=0, acks=acks)
        assert values(log, Partition("t", 0)) == [str(n).encode() for n in range(len(ways))]

    def test_other_acknowledgements_are_refused(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(UsageError, match="t: acks cannot be 0 here"):
            log.append("t", records(["x"]), acks=0)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="'p' asks for acks=1"):
            log.append("t", records(["x"]), partition=0, producer=Producer("p", 1, 1), acks=1)
        assert values(log, Partition("t", 0)) == []
