"""The log's contract: topics are made, found, changed and deleted."""

# ruff: noqa: D102 (the name of a test is its sentence)

from pathlib import Path

import pytest

from headrace.errors import InvalidTopic, TopicExists, TopicNotFound
from headrace.log.base import Log, Partition, Topic, TopicSettings
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, values

__all__ = ["TopicTests"]


class TopicTests(LogSuite):
    """Topics."""

    def test_a_topic_is_found_again_with_its_partitions(self, log: Log, path: Path) -> None:
        assert log.create_topic("b", partitions=2) == Topic("b", 2)
        log.create_topic("a")
        assert log.topics() == [Topic("a", 4), Topic("b", 2)]
        again = self.make_log(path)
        assert again.topic("b") == Topic("b", 2)
        again.close()

    def test_a_topic_keeps_its_settings_until_they_are_changed(self, log: Log, path: Path) -> None:
        week = TopicSettings(retention_ms=7 * 86_400_000)
        both = TopicSettings(1_000, 1 << 30)
        assert log.create_topic("t", partitions=2, settings=week) == Topic("t", 2, week)
        other = self.make_log(path)
        assert other.topic("t") == Topic("t", 2, week)
        assert log.change_topic("t", settings=both) == Topic("t", 2, both)
        self.settle()
        assert log.topic("t") == other.topic("t") == Topic("t", 2, both)
        assert log.change_topic("t", settings=TopicSettings()) == Topic("t", 2)
        assert log.topics() == other.topics() == [Topic("t", 2)]
        other.close()
        for wrong in (TopicSettings(retention_ms=0), TopicSettings(retention_bytes=-1)):
            with pytest.raises(InvalidTopic, match=r"t: retention_.* cannot be"):
                log.change_topic("t", settings=wrong)
            with pytest.raises(InvalidTopic, match=r"new: retention_.* cannot be"):
                log.create_topic("new", settings=wrong)
        with pytest.raises(TopicNotFound):
            log.change_topic("missing", partitions=9)

    def test_a_topic_gets_more_partitions_and_keeps_its_records(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=2)
        log.append("t", records(["old"]), partition=1)
        other = self.make_log(path)
        assert other.topic("t").partitions == 2
        assert log.change_topic("t", partitions=5) == Topic("t", 5)
        self.settle()
        for each in (log, other):
            assert each.topic("t") == Topic("t", 5)
            assert len(each.extents("t")) == 5
        other.append("t", records(["new"]), partition=4)
        assert values(log, Partition("t", 1)) == [b"old"]
        assert values(log, Partition("t", 4)) == [b"new"]
        log.append("t", records([str(n) for n in range(99)], keys=[str(n) for n in range(99)]))
        assert all(values(log, Partition("t", n)) for n in range(5))
        with pytest.raises(InvalidTopic, match="it has 5 partitions"):
            log.change_topic("t", partitions=4)
        other.close()

    def test_a_deleted_topic_is_gone_and_its_name_is_free(self, log: Log, path: Path) -> None:
        other = self.make_log(path)
        log.create_topic("kept")
        for n in range(3):
            log.create_topic("t", partitions=2)
            for each, value in ((log, f"{n}-a"), (other, f"{n}-b")):
                each.append("t", records([value]), partition=0)
            for each in (log, other):
                assert values(each, Partition("t", 0)) == [f"{n}-a".encode(), f"{n}-b".encode()]
            other.delete_topic("t")
            self.settle()
            assert log.topics() == [Topic("kept", 4)]
            for each in (log, other):
                with pytest.raises(TopicNotFound):
                    each.extents("t")
                with pytest.raises(TopicNotFound):
                    each.append("t", records(["x"]), partition=0)
                with pytest.raises(TopicNotFound):
                    each.delete_topic("t")
        other.close()

    def test_a_topic_is_made_once(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(TopicExists, match="t: the topic is there already"):
            log.create_topic("t", partitions=2)
        assert log.topic("t") == Topic("t", 1)

    @pytest.mark.parametrize("name", ["a", "A.b_c-9", "..a", "-", "longest"])
    def test_the_names_kafka_allows_are_allowed(self, log: Log, name: str) -> None:
        name = name if name != "longest" else "x" * self.longest_name
        log.create_topic(name, partitions=1)
        log.append(name, records(["x"]), partition=0)
        assert values(log, Partition(name, 0)) == [b"x"]

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "a/b", "../a", "a b", "süß", "日本", "a\0b", "a\n", "~a", "x" * 250]
    )
    def test_other_names_are_refused(self, log: Log, name: str) -> None:
        with pytest.raises(InvalidTopic):
            log.create_topic(name)
        with pytest.raises(TopicNotFound):
            log.topic(name)
        assert log.topics() == []

    @pytest.mark.parametrize("partitions", [0, -1])
    def test_a_topic_has_at_least_one_partition(self, log: Log, partitions: int) -> None:
        with pytest.raises(InvalidTopic, match="partitions"):
            log.create_topic("t", partitions=partitions)

    def test_a_topic_that_is_not_there_is_an_error(self, log: Log) -> None:
        for call in (log.topic, log.extents, lambda name: log.append(name, records(["x"]))):
            with pytest.raises(TopicNotFound, match="missing"):
                call("missing")
