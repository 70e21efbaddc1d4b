"""The log's contract: what a compacted topic keeps, and for how long.

A log may compact only what it has sealed, so `LogSuite.compact` may append records of its own with
the key FILLER_KEY; the tests look past them.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidTopic, UsageError
from headrace.log.base import RECORDS, Append, Log, Partition, Range, Topic, TopicSettings
from headrace.log.records import records
from headrace.testing.log.suite import FILLER_KEY, LogSuite, rows, values

__all__ = ["LifetimeTests"]

PLACE = Partition("t", 0)
HOUR_MS = 3_600_000
COMPACTED = TopicSettings(compact=True, tombstone_ms=HOUR_MS)
PATIENCE_S = 60
START = datetime.fromtimestamp(0, UTC)


def kept(log: Log, place: Partition = PLACE, start: int = 0, end: int | None = None) -> list[Any]:
    """Return the records of a range but for those that `compact` appended."""
    return [row for row in rows(log, place, start, end) if row["key"] != FILLER_KEY]


class LifetimeTests(LogSuite):
    """Compaction."""

    def test_a_topic_says_whether_it_is_compacted(self, log: Log, path: Path) -> None:
        assert log.create_topic("t", partitions=1, settings=COMPACTED) == Topic("t", 1, COMPACTED)
        other = self.make_log(path)
        assert other.topic("t").settings == COMPACTED
        both = TopicSettings(retention_ms=HOUR_MS, compact=True)
        log.change_topic("t", settings=both)
        self.settle()
        assert other.topic("t").settings == both
        with pytest.raises(InvalidTopic, match="t: tombstone_ms cannot be -1"):
            log.change_topic("t", settings=TopicSettings(compact=True, tombstone_ms=-1))
        other.close()

    def test_a_record_without_a_key_is_refused(self, log: Log) -> None:
        log.create_topic("t", partitions=2, settings=COMPACTED)
        log.create_topic("plain", partitions=1)
        wrong = records(["a", "b", "c"], keys=["k", None, "l"])
        with pytest.raises(UsageError, match=r"t: record 1 of this append has no key.*--no-comp"):
            log.append("t", wrong)
        with pytest.raises(UsageError, match="t: record 0 of this append has no key"):
            log.append("t", records(["a"]), partition=1)
        good = Append("plain", records(["x"]), 0)
        with pytest.raises(UsageError, match="has no key"):
            log.append_all([good, Append("t", wrong)])
        for topic in ("t", "plain"):
            assert [extent.end_offset for extent in log.extents(topic).values()].count(0) == len(
                log.extents(topic)
            )
        log.append("t", records(["a"], keys=[b""]), partition=0)  # an empty key is one
        assert values(log, PLACE) == [b"a"]

    def test_compaction_keeps_the_newest_record_of_each_key_in_order(
        self, log: Log, path: Path
    ) -> None:
        self.need("compaction")
        log.create_topic("t", partitions=1, settings=COMPACTED)
        chance = random.Random(3)
        newest: dict[bytes, bytes] = {}
        for batch in range(30):
            keys = [b"%d" % chance.randrange(20) for _ in range(chance.randrange(1, 12))]
            texts = [b"%d-%d" % (batch, n) for n in range(len(keys))]
            headers = [{"n": text} for text in texts]
            log.append("t", records(texts, keys=keys, headers=headers), partition=0)
            for key, text in zip(keys, texts, strict=True):
                newest.pop(key, None)  # so that it moves to the end
                newest[key] = text
        before = {row["offset"]: row for row in kept(log)}
        for _ in range(2):
            self.compact(path, "t")
            other = self.make_log(path)
            for each in (log, other):
                left = kept(each)
                assert [(row["key"], row["value"]) for row in left] == list(newest.items())
                # Offset, arrival and headers are what they were.
                assert left == [before[row["offset"]] for row in left]
            other.close()

    def test_a_compacted_range_reads_with_gaps_and_no_error(self, log: Log, path: Path) -> None:
        self.need("compaction")
        log.create_topic("t", partitions=1, settings=COMPACTED)
        for n in range(40):
            keys = ["always", f"only-{n}" if n % 10 == 0 else "always"]
            log.append("t", records([f"{n}-a", f"{n}-b"], keys=keys), partition=0)
        first, end = log.extents("t")[PLACE]
        self.compact(path, "t")
        assert log.extents("t")[PLACE].first_offset == first
        assert log.extents("t")[PLACE].end_offset >= end
        left = kept(log, end=end)
        assert [row["value"] for row in left] == [b"0-b", b"10-b", b"20-b", b"30-b", b"39-b"]
        for start in range(first, end):
            for stop in (start, start + 1, start + 7, end):
                if stop <= end:
                    inside = [row for row in left if start <= row["offset"] < stop]
                    assert kept(log, start=start, end=stop) == inside
        assert log.measure(Range(PLACE, first, end)) > 0
        for row in left:
            found = log.offset_at(PLACE, (row["arrival"] - START) // timedelta(microseconds=1))
            first_then = next(other for other in left if other["arrival"] >= row["arrival"])
            assert kept(log, start=found)[0] == first_then

    def test_a_split_outlives_compaction(self, log: Log, path: Path) -> None:
        self.need("compaction")
        self.need("splits")
        log.create_topic("t", partitions=1, settings=COMPACTED)
        for n in range(20):
            log.append("t", records([str(n)] * 3, keys=["a", "b", f"c{n}"]), partition=0)
        whole = Range(PLACE, *log.extents("t")[PLACE])
        splits = log.splits(whole, max_records=7)
        self.compact(path, "t")
        batches = [batch.select(RECORDS.names) for split in splits for batch in split.read()]
        read = [row for batch in batches for row in batch.to_pylist()]
        assert read == kept(log, end=whole.end)

    def test_a_tombstone_stays_for_its_time(self, log: Log, path: Path) -> None:
        self.need("compaction")
        log.create_topic("t", partitions=1, settings=COMPACTED)
        log.append("t", records(["v", "w"], keys=["gone", "here"]), partition=0)
        log.append("t", records([None], keys=["gone"]), partition=0)
        for _ in range(3):
            self.compact(path, "t")
            pairs = [(row["key"], row["value"]) for row in kept(log)]
            assert pairs == [(b"here", b"w"), (b"gone", None)]

    def test_a_tombstone_goes_after_its_time(self, log: Log, path: Path) -> None:
        self.need("compaction")
        short = TopicSettings(compact=True, tombstone_ms=1)
        log.create_topic("t", partitions=1, settings=short)
        log.append("t", records(["v", "w"], keys=["gone", "here"]), partition=0)
        log.append("t", records([None], keys=["gone"]), partition=0)
        end = log.extents("t")[PLACE].end_offset
        deadline = time.monotonic() + PATIENCE_S
        while [row["key"] for row in kept(log)] != [b"here"]:
            assert time.monotonic() < deadline
            self.compact(path, "t")
            time.sleep(0.01)
        assert [row["key"] for row in kept(log, end=end)] == [b"here"]
        log.append("t", records(["again"], keys=["gone"]), partition=0)
        self.compact(path, "t")
        assert [row["value"] for row in kept(log)] == [b"w", b"again"]

    def test_what_is_not_compacted_stays_whole(self, log: Log, path: Path) -> None:
        self.need("compaction")
        log.create_topic("t", partitions=1, settings=COMPACTED)
        log.create_topic("plain", partitions=1)
        for topic in ("t", "plain"):
            for n in range(10):
                log.append(topic, records([str(n)], keys=["k"]), partition=0)
        self.compact(path, "t")
        log.maintain()
        assert len(values(log, Partition("plain", 0))) == 10
        assert [row["value"] for row in kept(log)] == [b"9"]
