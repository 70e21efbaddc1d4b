"""The log's contract: producers that begin, crash, come again and replace each other."""

# ruff: noqa: D102 (the name of a test is its sentence)

import threading
from pathlib import Path

import pytest

from headrace.errors import ProducerFenced, UsageError
from headrace.log.base import Log, Partition, Producer
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, values

__all__ = ["ProducerTests"]

PLACE = Partition("t", 0)
HOSTILE = "../../a\n\0b/" + "ü" * 300


class ProducerTests(LogSuite):
    """Epochs and sequences of producers."""

    def test_every_epoch_is_greater_than_those_before(self, log: Log, path: Path) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        other = self.make_log(path)
        epochs = [each.begin_producer("p") for each in (log, other, log, log, other)]
        assert epochs == sorted(set(epochs))
        log.append("t", records(["x"]), partition=0, producer=Producer("p", epochs[-1] + 10**6, 1))
        after = other.begin_producer("p")
        assert after > epochs[-1] + 10**6
        other.close()
        log.close()
        again = self.make_log(path)
        assert again.begin_producer("p") > after
        again.close()

    def test_of_those_who_begin_at_once_each_has_an_epoch_of_its_own(
        self, log: Log, path: Path
    ) -> None:
        self.need("producers")
        logs = [log, log, self.make_log(path), self.make_log(path)]
        epochs: list[int] = []

        def begin(each: Log) -> None:
            epochs.extend(each.begin_producer("p") for _ in range(5))

        threads = [threading.Thread(target=begin, args=(each,)) for each in logs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(epochs) == len(set(epochs)) == 20
        for each in logs[2:]:
            each.close()

    def test_the_newer_of_two_producers_fences_the_older(self, log: Log, path: Path) -> None:
        self.need("producers")
        log.create_topic("t", partitions=2)
        old = log.begin_producer("p")
        log.append("t", records(["a"]), partition=0, producer=Producer("p", old, 1))
        other = self.make_log(path)
        new = other.begin_producer("p")
        # Until the newer has appended there, the older may go on; what it stored counts.
        log.append("t", records(["b"]), partition=0, producer=Producer("p", old, 2))
        assert other.last_sequence(PLACE, "p") == 2
        other.append("t", records(["c"]), partition=0, producer=Producer("p", new, 3))
        for sequence in (2, 3, 4):
            with pytest.raises(ProducerFenced, match="stop this process"):
                log.append("t", records(["z"]), partition=0, producer=Producer("p", old, sequence))
        assert values(other, PLACE) == [b"a", b"b", b"c"]
        other.close()

    def test_a_producer_goes_on_after_a_crash_and_stores_nothing_twice(
        self, log: Log, path: Path
    ) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        batches = [records([f"{n}-a", f"{n}-b"]) for n in range(6)]
        epoch = log.begin_producer("p")
        for n in range(4):  # and it dies before it hears of the last one
            log.append("t", batches[n], partition=0, producer=Producer("p", epoch, n))
        again = self.make_log(path)
        epoch = again.begin_producer("p")
        assert again.last_sequence(PLACE, "p") == 3
        for n in range(3, 6):
            done = again.append("t", batches[n], partition=0, producer=Producer("p", epoch, n))
            assert done.duplicate == (n == 3)
        expected = [f"{n}-{which}".encode() for n in range(6) for which in "ab"]
        assert values(again, PLACE) == expected
        again.close()

    def test_a_producer_may_have_any_name_of_some_length(self, log: Log) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        epoch = log.begin_producer(HOSTILE)
        log.append("t", records(["x"]), partition=0, producer=Producer(HOSTILE, epoch, 0))
        assert log.begin_producer(HOSTILE) > epoch
        assert [topic.name for topic in log.topics()] == ["t"]
        for wrong in ("", "x" * 2000):
            with pytest.raises(UsageError, match="a producer id has 1 to"):
                log.begin_producer(wrong)
