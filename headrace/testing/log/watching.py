"""What a log must tell whoever waits for records.

How fast is not part of the contract but of the benchmark (bench/idle.py); here a wait that is told
ends long before its timeout, and one that is not does not.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headrace.errors import UsageError
from headrace.log.base import Append, Log, Partition, TopicSettings, Watch
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, start_process

__all__ = ["WatchTests"]

# Nobody waits so long unless the log does not tell.
LONG_S = 30.0
SOON_S = 10.0
SHORT_S = 0.1

APPEND = """
from headrace.log.records import records
print("ready", flush=True)
input()
log.append("t", records(["from another process"]), partition=1)
log.close()
"""


def ends(log: Log, *topics: str) -> dict[Partition, int]:
    """Return where partitions end: the position of a reader that has read everything."""
    return {place: extent.end_offset for place, extent in log.extents(*topics).items()}


@contextmanager
def told(watch: Watch, positions: dict[Partition, int]) -> Iterator[None]:
    """Assert that what the block does is told to one who waits already."""
    answers: list[tuple[bool, float]] = []

    def wait() -> None:
        began = time.monotonic()
        answers.append((watch.wait(positions, timeout_s=LONG_S), time.monotonic() - began))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(SHORT_S)
    assert not answers, "it said that there is something before there was"
    yield
    thread.join()
    assert answers[0][0]
    assert answers[0][1] < SOON_S


class WatchTests(LogSuite):
    """Waiting for records."""

    @pytest.fixture
    def watch(self, log: Log) -> Iterator[Watch]:
        """Return a watch over the topic t of two partitions."""
        log.create_topic("t", partitions=2)
        with closing(log.watch()) as watch:
            yield watch

    def test_who_waits_is_told_of_an_append(self, log: Log, path: Path, watch: Watch) -> None:
        with told(watch, ends(log, "t")):
            log.append("t", records(["a"]), partition=1)
        other = self.make_log(path)
        with told(watch, ends(log, "t")):
            other.append("t", records(["b"]), partition=0)
        with told(watch, ends(log, "t")):
            other.append_all([Append("t", records([str(n)]), n) for n in range(2)])
        other.close()

    def test_who_waits_is_told_of_an_append_by_another_process(
        self, log: Log, path: Path, watch: Watch
    ) -> None:
        self.need("processes")
        process = start_process(f"{self.make_log_code(path)}\n{APPEND}")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with told(watch, ends(log, "t")):
            process.stdin.write("\n")
            process.stdin.flush()
        process.stdin.close()
        assert process.wait(SOON_S) == 0

    def test_a_record_that_is_there_is_told_at_once(self, log: Log, watch: Watch) -> None:
        before = ends(log, "t")
        log.append("t", records(["a"]), partition=1)
        for _ in range(3):
            assert watch.wait(before, timeout_s=LONG_S)
        assert not watch.wait(ends(log, "t"), timeout_s=SHORT_S)
        assert watch.wait(before, timeout_s=LONG_S)

    def test_where_nothing_comes_a_wait_takes_its_time(self, log: Log, watch: Watch) -> None:
        log.append("t", records(["a"]), partition=0)
        for positions in (ends(log, "t"), {}):
            began = time.monotonic()
            assert not watch.wait(positions, timeout_s=SHORT_S)
            assert SHORT_S * 0.9 < time.monotonic() - began < SOON_S

    def test_wake_ends_a_wait_and_one_that_begins_later(self, log: Log, watch: Watch) -> None:
        positions = ends(log, "t")
        for awaited in (positions, {}):
            with told(watch, awaited):
                watch.wake()
            watch.wake()
            watch.wake()
            assert watch.wait(awaited, timeout_s=LONG_S)
            assert not watch.wait(awaited, timeout_s=SHORT_S)
        with told(watch, positions):
            log.append("t", records(["a"]), partition=0)

    def test_none_of_many_appends_is_missed(self, log: Log, path: Path, watch: Watch) -> None:
        count = 60

        def append() -> None:
            other = self.make_log(path)
            for number in range(count):
                other.append("t", records([str(number)]), partition=number % 2)
                time.sleep(0.001 * (number % 7))
            other.close()

        thread = threading.Thread(target=append)
        positions = ends(log, "t")
        thread.start()
        while sum(positions.values()) < count:
            assert watch.wait(positions, timeout_s=LONG_S), "an append was not told"
            positions = ends(log, "t")
        thread.join()

    def test_each_of_two_watches_is_told(self, log: Log, watch: Watch) -> None:
        end = ends(log, "t")
        with closing(log.watch()) as other, told(watch, end), told(other, end):
            log.append("t", records(["a"]), partition=0)

    def test_a_partition_that_was_added_is_waited_for(self, log: Log, watch: Watch) -> None:
        assert not watch.wait(ends(log, "t"), timeout_s=SHORT_S)
        log.change_topic("t", partitions=4)
        with told(watch, ends(log, "t")):
            log.append("t", records(["a"]), partition=3)

    def test_several_topics_are_waited_for(self, log: Log, watch: Watch) -> None:
        log.create_topic("u", partitions=1)
        positions = ends(log, "t", "u")
        assert set(positions) == {Partition("t", 0), Partition("t", 1), Partition("u", 0)}
        with told(watch, positions):
            log.append("u", records(["a"]), partition=0)
        with told(watch, ends(log, "t")):
            log.append("t", records(["a"]), partition=0)

    def test_a_topic_that_goes_raises_nothing_and_comes_back(self, log: Log, watch: Watch) -> None:
        positions = ends(log, "t")
        assert not watch.wait(positions, timeout_s=SHORT_S)
        log.delete_topic("t")
        watch.wait(positions, timeout_s=SHORT_S)
        log.create_topic("t", partitions=2)
        self.settle()
        log.append("t", records(["a"]), partition=1)
        deadline = time.monotonic() + self.patience_s
        while not watch.wait(positions, timeout_s=SHORT_S):
            assert time.monotonic() < deadline

    def test_what_compaction_removes_does_not_end_the_telling(
        self, log: Log, path: Path, watch: Watch
    ) -> None:
        self.need("compaction")
        log.create_topic("c", partitions=1, settings=TopicSettings(compact=True))
        for number in range(3):
            log.append("c", records([str(number)], keys=["k"]), partition=0)
        assert not watch.wait(ends(log, "c"), timeout_s=SHORT_S)
        self.compact(path, "c")
        with told(watch, ends(log, "c")):
            log.append("c", records(["last"], keys=["k"]), partition=0)

    def test_a_closed_watch_waits_no_more(self, log: Log, watch: Watch) -> None:
        assert not watch.wait(ends(log, "t"), timeout_s=0)
        watch.close()
        watch.close()
        watch.wake()  # by a thread that does not know yet
        with pytest.raises(UsageError, match="closed"):
            watch.wait({}, timeout_s=0)
