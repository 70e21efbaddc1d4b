"""What the embedded log promises beyond the contract: arrivals, folders, rolls, shared syncs."""

import os
import stat
import threading
from pathlib import Path

import pytest

from headrace.consume import consume_queue, join_group
from headrace.errors import TopicExists, UsageError
from headrace.log import Appended, EmbeddedLog, Partition, Producer, Range, Topic, records
from headrace.log.checks import MAX_PRODUCER_ID_BYTES
from headrace.log.embedded.files import OpenFile
from headrace.log.embedded.listing import segment_path
from headrace.log.embedded.segments import Segment
from headrace.testing.log.suite import rows, values

PARTITION_0 = Partition("t", 0)


def test_arrival_is_the_clocks_but_never_goes_back(tmp_path: Path) -> None:
    times = iter([50, 70, 10, 20, 80])
    expected = [50, 70, 70, 70, 80]
    for _ in range(5):  # each append in a log opened anew, in a segment of its own
        log = EmbeddedLog(tmp_path, clock=lambda: next(times), segment_bytes=1)
        if not log.topics():
            log.create_topic("t", partitions=1)
        log.append("t", records(["x", "y"]), partition=0)
        log.close()
    arrivals = [row["arrival"].microsecond for row in rows(EmbeddedLog(tmp_path), PARTITION_0)]
    assert arrivals == [us for us in expected for _ in "xy"]


def test_the_state_of_producers_is_found_in_the_last_segment_alone(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, segment_bytes=1)
    log.create_topic("t", partitions=1)
    for sequence in range(5):
        log.append("t", records(["x"]), partition=0, producer=Producer("ü", 1, sequence))
    log.append("t", records(["y"]), partition=0)
    log.close()
    segments = sorted((tmp_path / "t" / "0").glob("*.log"))
    assert [int(segment.stem) for segment in segments] == list(range(6))
    for segment in segments[:-1]:
        segment.write_bytes(b"unreadable")
    again = EmbeddedLog(tmp_path)
    retry = again.append("t", records(["x"]), partition=0, producer=Producer("ü", 1, 4))
    assert retry == Appended([], duplicate=True)
    assert again.last_sequence(PARTITION_0, "ü") == 4


def test_of_several_who_create_a_topic_at_once_one_does(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def create(partitions: int) -> None:
        try:
            EmbeddedLog(tmp_path, sync=False).create_topic("t", partitions=partitions)
            outcomes.append(f"made {partitions}")
        except TopicExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=create, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (topic,) = EmbeddedLog(tmp_path).topics()
    assert sorted(outcomes) == ["exists"] * 7 + [f"made {topic.partitions}"]


def test_what_a_creator_that_died_left_is_no_topic_and_is_removed(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("a", partitions=1)
    (tmp_path / "a").rename(tmp_path / "~creating-0123")
    assert log.topics() == []
    log.create_topic("b", partitions=1)
    assert log.topics() == [Topic("b", 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "~lock"]


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        log = EmbeddedLog(tmp_path / "log", segment_bytes=1)
        log.create_topic("t", partitions=1)
        for _ in range(2):
            log.append("t", records(["x"]), partition=0)
        member, consumer = join_group(log, "g", ["t"]), consume_queue(log, "q", "t")
        assert consumer.reject(consumer.poll()) == []
        assert member.poll()
        member.commit()
    finally:
        os.umask(before)
    assert {path.name for path in (tmp_path / "log").glob("~groups.sqlite*")} == {
        "~groups.sqlite",
        "~groups.sqlite-shm",
        "~groups.sqlite-wal",
    }
    for path in [tmp_path / "log", *(tmp_path / "log").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_threads_that_wait_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    log.append("t", records(["first"]), partition=0)
    in_sync, go_on = threading.Event(), threading.Event()
    syncs: list[Path] = []

    def sync(file: OpenFile) -> None:
        syncs.append(file.path)
        in_sync.set()
        assert go_on.wait(5)

    monkeypatch.setattr(OpenFile, "sync", sync)
    threads = [
        threading.Thread(target=lambda: log.append("t", records(["x"]), partition=0))
        for _ in range(6)
    ]
    threads[0].start()
    assert in_sync.wait(5)
    (segment,) = (tmp_path / "t" / "0").glob("*.log")
    size = segment.stat().st_size
    one = size // 2 - 40
    for thread in threads[1:]:
        thread.start()
    while segment.stat().st_size < size + 5 * one:
        assert any(thread.is_alive() for thread in threads)
    assert values(log, PARTITION_0) == [b"first"]  # written is not acknowledged
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(syncs) == 2
    assert values(log, PARTITION_0) == [b"first"] + [b"x"] * 6


def test_the_position_of_an_offset_is_remembered(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("t", partitions=1)
    for n in range(300):
        log.append("t", records([str(n) * 300]), partition=0)
    segment = Segment(segment_path(tmp_path / "t" / "0", 0), PARTITION_0, 0)
    walked = [segment.locate(offset, size=0)[0] for offset in range(300)]
    assert walked == sorted(set(walked))
    assert len(segment._index) > 2
    for offset in (299, 0, 150, 3, 298, 151):
        assert segment.locate(offset, size=0)[0] == walked[offset]
        assert (
            Segment(segment_path(tmp_path / "t" / "0", 0), PARTITION_0, 0).locate(offset, size=0)[0]
            == walked[offset]
        )


def test_batches_stay_valid_after_the_log_is_closed(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    log.append("t", records([str(n) for n in range(1000)]), partition=0)
    (batch,) = log.read(Range(PARTITION_0, 0, 1000))
    log.close()
    assert batch.column("value").to_pylist() == [str(n).encode() for n in range(1000)]
    for call in (log.topics, lambda: log.append("t", records(["x"]))):
        with pytest.raises(UsageError, match="this log is closed"):
            call()


def test_a_turn_of_records_without_keys_goes_on_in_another_process(tmp_path: Path) -> None:
    EmbeddedLog(tmp_path).create_topic("t", partitions=3)
    used = []
    for _ in range(6):
        (one,) = EmbeddedLog(tmp_path, sync=False).append("t", records(["x"])).ranges
        used.append(one.partition.number)
    assert used == [0, 1, 2, 0, 1, 2]


def test_wrong_calls_are_refused_with_what_to_do(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    log.append("t", records(["x"]), partition=0)
    for name in ("", "x" * (MAX_PRODUCER_ID_BYTES + 1)):
        with pytest.raises(UsageError, match="a producer id has 1 to"):
            log.append("t", records(["x"]), partition=0, producer=Producer(name, 1, 1))
    with pytest.raises(UsageError, match="ends before it begins"):
        log.read(Range(PARTITION_0, 1, 0))
    with pytest.raises(UsageError, match="at least 1"):
        log.read(Range(PARTITION_0, 0, 1), max_batch_records=0)
    with pytest.raises(UsageError, match="at least 1"):
        log.splits(Range(PARTITION_0, 0, 1), max_records=0)
    with pytest.raises(UsageError, match="t/7: no such partition"):
        log.read(Range(Partition("t", 7), 0, 1))
