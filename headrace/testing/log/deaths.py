"""The log's contract: a process that dies within an append leaves all of it or nothing.

Method: a process is killed at a fault point between the writes of an append to three partitions;
then others read, and append, at once.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.log.base import Append, Log, Partition, Producer
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, values

__all__ = ["DeathTests"]

PLACES = [Partition("t", 0), Partition("t", 1), Partition("u", 0)]
# Where the append dies, and whether it is there afterwards.
POINTS = {"log_in_transaction": False, "log_before_decision": False, "log_after_decision": True}
#: Nobody who comes after a death waits as long as this.
AT_ONCE_S = 12

DIE = """
import pickle, sys
open_log, appends = pickle.load(sys.stdin.buffer)
open_log().append_all(appends)
"""


def _appends(text: str, producer: Producer | None = None) -> list[Append]:
    return [Append(place.topic, records([text]), place.number, producer) for place in PLACES]


class DeathTests(LogSuite):
    """Processes that are killed."""

    def kill(self, path: Path, point: str, appends: list[Append]) -> None:
        """Run a process that appends, and dies on the way."""
        died = subprocess.run(
            [sys.executable, "-c", DIE],
            input=pickle.dumps((self.opener(path), appends)),
            env={**os.environ, "HEADRACE_FAULT": point},
        )
        assert died.returncode == -9

    @pytest.mark.parametrize("point", POINTS)
    def test_a_killed_process_leaves_all_or_nothing_and_holds_nothing_up(
        self, log: Log, path: Path, point: str
    ) -> None:
        log.create_topic("t", partitions=2)
        log.create_topic("u", partitions=1)
        log.append_all(_appends("before"))
        self.kill(path, point, _appends("dies"))
        successor = self.opener(path)()
        began = time.monotonic()
        successor.append_all(_appends("after"))
        successor.append("t", records(["plain"]), partition=0)
        assert time.monotonic() - began < AT_ONCE_S
        expected = [b"before", b"dies", b"after"] if POINTS[point] else [b"before", b"after"]
        for each in (log, successor):
            assert values(each, PLACES[0]) == [*expected, b"plain"]
            assert [values(each, place) for place in PLACES[1:]] == [expected] * 2
        successor.close()

    @pytest.mark.parametrize("point", POINTS)
    def test_a_producer_that_retries_after_a_kill_is_stored_once(
        self, log: Log, path: Path, point: str
    ) -> None:
        self.need("producers")
        log.create_topic("t", partitions=2)
        log.create_topic("u", partitions=1)
        self.kill(path, point, _appends("once", Producer("p", 1, 1)))
        began = time.monotonic()
        for place in PLACES:
            again = log.append(
                place.topic, records(["once"]), partition=place.number, producer=Producer("p", 2, 1)
            )
            assert again.duplicate == POINTS[point]
        assert time.monotonic() - began < AT_ONCE_S
        assert [values(log, place) for place in PLACES] == [[b"once"]] * 3
