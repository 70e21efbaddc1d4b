"""Retention of the embedded log: the oldest segments go, and nothing else does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from soaking import times

from headrace import faults
from headrace.errors import LogDamaged, PositionLost
from headrace.log import EmbeddedLog, Extent, Partition, Producer, Range, TopicSettings, records
from headrace.log.embedded.listing import list_segments, segment_path
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)


class Clock:
    """Time in milliseconds, as a test sets it."""

    ms = 1_000_000

    def __call__(self) -> int:
        return self.ms * 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_log(path: Path, clock: Clock, settings: TopicSettings) -> EmbeddedLog:
    """One record per segment; record n has the value n and arrives n seconds after the start."""
    log = EmbeddedLog(path, clock=clock, sync=False, segment_bytes=1)
    log.create_topic("t", partitions=1, settings=TopicSettings())
    for n in range(10):
        clock.ms = 1_000_000 + n * 1000
        log.append("t", records([str(n)]), partition=0)
    log.change_topic("t", settings=settings)
    return log


def test_what_arrived_too_long_ago_goes(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    log.maintain()
    assert log.extents("t")[PARTITION_0] == Extent(6, 10)
    assert values(log, PARTITION_0) == [b"6", b"7", b"8", b"9"]
    assert EmbeddedLog(tmp_path).extents("t")[PARTITION_0] == Extent(6, 10)
    assert list_segments(tmp_path / "t" / "0") == [6, 7, 8, 9]


def test_a_record_that_is_just_old_enough_stays(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    clock.ms += 999
    log.maintain()
    assert values(log, PARTITION_0)[0] == b"7"
    clock.ms += 1
    log.maintain()
    assert values(log, PARTITION_0)[0] == b"7"
    clock.ms += 1
    log.maintain()
    assert values(log, PARTITION_0)[0] == b"8"


def test_the_last_records_go_too_and_offsets_go_on(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    clock.ms += 60_000
    log.maintain()
    assert log.extents("t")[PARTITION_0] == Extent(10, 10)
    assert values(log, PARTITION_0) == []
    assert log.offset_at(PARTITION_0, 0) == 10
    assert log.append("t", records(["new"]), partition=0).ranges == [Range(PARTITION_0, 10, 11)]
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"new"]


def test_at_least_the_bytes_asked_for_are_kept(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings())
    folder = tmp_path / "t" / "0"
    size = max(segment_path(folder, base).stat().st_size for base in range(10))
    log.change_topic("t", settings=TopicSettings(retention_bytes=size * 3))
    log.maintain()
    kept = [segment_path(folder, base).stat().st_size for base in list_segments(folder)]
    assert sum(kept) >= size * 3
    assert sum(kept[1:]) < size * 3
    assert log.extents("t")[PARTITION_0] == Extent(10 - len(kept), 10)


def test_an_append_that_begins_a_segment_removes_old_ones(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    clock.ms += 1000
    log.append("t", records(["10"]), partition=0)
    assert log.extents("t")[PARTITION_0] == Extent(7, 11)


def test_without_settings_everything_stays(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings())
    clock.ms += 10**9
    log.maintain()
    assert log.extents("t")[PARTITION_0] == Extent(0, 10)


def test_a_reader_who_comes_too_late_is_told_where_the_log_begins(
    tmp_path: Path, clock: Clock
) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    other = EmbeddedLog(tmp_path)
    on_its_way = other.read(Range(PARTITION_0, 0, 10))
    (split,) = other.splits(Range(PARTITION_0, 2, 5), max_records=100)
    log.maintain()
    for attempt in (
        lambda: log.read(Range(PARTITION_0, 5, 10)),
        lambda: other.read(Range(PARTITION_0, 0, 10)),
        lambda: list(on_its_way),
        lambda: list(split.read()),
    ):
        with pytest.raises(PositionLost, match=r"t/0@\d.* begins at 6"):
            attempt()
    assert values(other, PARTITION_0) == [b"6", b"7", b"8", b"9"]


def test_a_first_segment_that_retention_did_not_remove_is_missed(
    tmp_path: Path, clock: Clock
) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    log.maintain()
    lost = segment_path(tmp_path / "t" / "0", 6)
    lost.unlink()
    for reader in (log, EmbeddedLog(tmp_path)):
        with pytest.raises(LogDamaged, match=f"{lost} is damaged .* t/0@6: the file is gone"):
            values(reader, PARTITION_0)


def test_batches_that_were_read_stay_valid(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    large = [str(n) * 100_000 for n in range(3)]  # not copied together, but read where mapped
    for value in large:
        log.append("t", records([value]), partition=0)
    batches = list(log.read(Range(PARTITION_0, 10, 13)))
    clock.ms += 60_000
    log.maintain()
    assert log.extents("t")[PARTITION_0] == Extent(13, 13)
    assert [batch["value"].to_pylist() for batch in batches] == [[v.encode()] for v in large]


def test_producers_are_remembered_past_the_records_they_sent(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    log.append("t", records(["p"]), partition=0, producer=Producer("p", 1, 7))
    clock.ms += 60_000
    log.maintain()
    again = EmbeddedLog(tmp_path)
    assert again.append("t", records(["p"]), partition=0, producer=Producer("p", 1, 7)).duplicate
    assert again.last_sequence(PARTITION_0, "p") == 7


def test_a_death_before_the_files_are_removed_leaves_nothing_to_read(
    tmp_path: Path, clock: Clock
) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    faults.arm("log_before_removal")
    with pytest.raises(faults.Crash):
        log.maintain()
    assert len(list_segments(tmp_path / "t" / "0")) == 10
    other = EmbeddedLog(tmp_path, clock=clock)
    assert other.extents("t")[PARTITION_0] == Extent(6, 10)
    other.maintain()
    assert list_segments(tmp_path / "t" / "0") == [6, 7, 8, 9]
    assert values(other, PARTITION_0)[0] == b"6"


def test_lost_ends_are_found_again_where_the_files_begin(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, TopicSettings(retention_ms=3_000))
    log.maintain()
    (tmp_path / "t" / "0" / "ends").unlink()
    other = EmbeddedLog(tmp_path)
    assert other.extents("t")[PARTITION_0] == Extent(6, 10)
    assert other.append("t", records(["x"]), partition=0).ranges == [Range(PARTITION_0, 10, 11)]


EXPIRE_ALL = """
import sys
from headrace.log import EmbeddedLog
log = EmbeddedLog(sys.argv[1], segment_bytes=1)
print("ready", flush=True)
while True:
    log.maintain()
"""


@pytest.mark.soak
def test_a_cleaner_killed_again_and_again_takes_nothing_it_should_not(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, segment_bytes=1)
    log.create_topic("t", partitions=1, settings=TopicSettings(retention_bytes=2_000))
    appended = 0
    for _ in range(times(4)):
        cleaner = subprocess.Popen(
            [sys.executable, "-c", EXPIRE_ALL, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert cleaner.stdout is not None
        cleaner.stdout.readline()
        for _ in range(20):
            log.append("t", records([str(appended)]), partition=0)
            appended += 1
        os.kill(cleaner.pid, signal.SIGKILL)
        cleaner.wait()
        cleaner.stdout.close()
        first, end = EmbeddedLog(tmp_path).extents("t")[PARTITION_0]
        assert end == appended
        assert 0 < first < end
        left = [b"%d" % n for n in range(first, end)]
        assert values(log, PARTITION_0) == values(EmbeddedLog(tmp_path), PARTITION_0) == left
