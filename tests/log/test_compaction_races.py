"""What others do, or the disk does, while the embedded log compacts: nothing is lost or mixed up.

Method: what others do at the worst moment is done from within a fault point.
"""

import errno
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from headrace import faults
from headrace.errors import DiskFull, LogDamaged
from headrace.log import (
    Append,
    EmbeddedLog,
    Partition,
    Producer,
    Range,
    records,
)
from headrace.log.embedded.ends import read_ends
from headrace.log.embedded.listing import list_files, list_replaced
from headrace.log.embedded.upkeep import rewriting
from headrace.testing.log.suite import rows, values
from log.compacted import (
    COMPACTED,
    PARTITION_0,
    Clock,
    make_log,
    names,
    pairs,
    put,
    sound,
)

pytestmark = pytest.mark.usefixtures("only_when_asked")


def test_what_others_do_in_the_middle_of_a_pass(tmp_path: Path, clock: Clock) -> None:
    for point in ("log_in_compaction", "log_before_swap"):
        log = make_log(tmp_path / point, clock)
        other = EmbeddedLog(tmp_path / point, clock=clock, segment_bytes=2_000)
        for n in range(60):
            put(log, str(n), f"k{n % 6}")
        before = rows(log, PARTITION_0)
        on_its_way = other.read(Range(PARTITION_0, 0, 60), max_batch_records=1)
        ahead = [next(on_its_way).to_pylist()[0]]
        (split,) = other.splits(Range(PARTITION_0, 3, 59), max_records=1000)

        def meddle(
            log: EmbeddedLog = log, other: EmbeddedLog = other, before: list[Any] = before
        ) -> None:
            for each in (log, other):
                put(each, "meanwhile", "k0")
                each.append_all([Append("t", records(["together"], keys=["k1"]), 0)])
                assert rows(each, PARTITION_0, 0, 60) == before
                each.compact("t")  # one compactor at a time: this one does nothing
                each.maintain()

        faults.arm(point, meddle)
        log.compact("t")
        log.compact("t")
        expected = [(b"k%d" % n, b"%d" % (54 + n)) for n in range(2, 6)]
        expected += [(b"k0", b"meanwhile"), (b"k1", b"together")]
        for each in (log, other, EmbeddedLog(tmp_path / point)):
            assert pairs(each) == expected
            assert sound(each)
        after = [row for row in rows(log, PARTITION_0) if row["offset"] < 60]
        read = [row for batch in split.read() for row in batch.to_pylist()]
        assert read == [row for row in after if 3 <= row["offset"] < 59]
        rest = [row for batch in on_its_way for row in batch.to_pylist()]
        assert [*ahead, *rest] in (before, [before[0], *after])


def test_a_reader_who_has_mapped_the_old_files_notices(tmp_path: Path, clock: Clock) -> None:
    log, other = make_log(tmp_path, clock), EmbeddedLog(tmp_path)
    for n in range(40):
        put(log, str(n), "k", f"only-{n}")
        assert len(rows(other, PARTITION_0)) == 2 * n + 2
    reader = other._reader(PARTITION_0)
    log.compact("t")
    assert len(rows(other, PARTITION_0)) == 41
    listed = {file.path for file in list_files(tmp_path / "t" / "0")}
    assert set(reader._segments) <= listed  # nothing keeps the bytes of removed files
    ends = read_ends(tmp_path / "t" / "0" / "ends")
    assert ends is not None
    assert ends.compactions > 0


def test_ends_from_before_a_compaction_still_read(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    for n in range(40):
        put(log, str(n), "k", f"only-{n}")
    other = EmbeddedLog(tmp_path, clock=clock)
    old = other._appender(PARTITION_0).ends()
    put(log, "new", "k")
    log.compact("t")
    reader = other._reader(PARTITION_0)
    whole = Range(PARTITION_0, 0, 80)
    read = [row for batch in reader.read(whole, old, max_batch_records=99) for row in batch["key"]]
    assert len(read) == 40  # the newest of "k" came later
    assert reader.measure(whole, old) > 0
    assert reader.offset_at(clock() + 1, old) == 80
    assert reader.offset_at(0, old) == 1
    (split,) = reader.splits(whole, old, max_records=1000)
    assert sum(batch.num_rows for batch in split.read()) == 40


def test_retention_goes_on_under_a_pass(tmp_path: Path, clock: Clock) -> None:
    for point in ("log_in_compaction", "log_before_swap"):
        log = make_log(tmp_path / point, clock)
        other = EmbeddedLog(tmp_path / point, clock=clock, segment_bytes=2_000)
        for n in range(60):
            clock.ms += 1
            put(log, str(n), f"k{n % 20}")

        def expire(other: EmbeddedLog = other) -> None:
            keep = COMPACTED._replace(retention_bytes=4_000)
            other.change_topic("t", settings=keep)
            other.maintain()
            other.change_topic("t", settings=COMPACTED)

        faults.arm(point, expire)
        log.compact("t")
        first, end = log.extents("t")[PARTITION_0]
        assert 0 < first < end == 60
        assert [row["offset"] for row in rows(log, PARTITION_0)] == list(range(first, 60))
        log.compact("t")
        assert [row["offset"] for row in rows(log, PARTITION_0)] == list(range(max(first, 40), 60))
        assert sound(log)
        assert list_replaced(tmp_path / point / "t" / "0") == []


def test_a_topic_made_anew_under_a_pass_is_not_touched_by_it(tmp_path: Path, clock: Clock) -> None:
    for point in ("log_in_compaction", "log_before_swap"):
        log = make_log(tmp_path / point, clock)
        other = EmbeddedLog(tmp_path / point, clock=clock, segment_bytes=2_000)
        for n in range(60):
            put(log, str(n), "k")

        def make_anew(other: EmbeddedLog = other) -> None:
            other.delete_topic("t")
            other.create_topic("t", partitions=1, settings=COMPACTED)
            for n in range(60):
                put(other, f"new-{n}", "k")

        faults.arm(point, make_anew)
        log.compact("t")
        for each in (log, other, EmbeddedLog(tmp_path / point)):
            assert values(each, PARTITION_0) == [b"new-%d" % n for n in range(60)]
            assert sound(each)
        log.compact("t")
        assert pairs(other) == [(b"k", b"new-59")]


def test_a_producer_is_stored_once_after_compaction(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    for n in range(40):
        put(log, str(n), "k", producer=Producer(f"p{n % 4}", 1, n))
    log.append_all([Append("t", records(["z"], keys=["k"]), 0, Producer("z", 1, 5))])
    for _ in range(3):
        log.compact("t")
        for each in (log, EmbeddedLog(tmp_path, segment_bytes=2_000)):
            assert [each.last_sequence(PARTITION_0, f"p{n}") for n in range(4)] == [36, 37, 38, 39]
            again = records(["again"], keys=["k"])
            for sent in (Producer("p0", 1, 0), Producer("p3", 1, 39), Producer("z", 1, 5)):
                assert each.append("t", again, partition=0, producer=sent).duplicate
        put(log, "more", "k")
    # Without ends all is found in the last segment, which compaction left alone.
    (tmp_path / "t" / "0" / "ends").unlink()
    again = EmbeddedLog(tmp_path)
    assert again.last_sequence(PARTITION_0, "p1") == 37
    assert again.extents("t")[PARTITION_0].first_offset == 0
    assert len(rows(again, PARTITION_0)) == len(rows(log, PARTITION_0))


@pytest.mark.parametrize("clean", [False, True])
def test_damage_stops_a_pass_and_nothing_goes(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    log = make_log(tmp_path, clock)
    for n in range(60):
        put(log, str(n), f"k{n % 25}", f"only-{n}")
    if clean:
        log.compact("t")
    for n in range(60):
        put(log, f"newer-{n}", f"k{n % 25}")
    folder = tmp_path / "t" / "0"
    victim = next(file for file in list_files(folder) if (file.end_offset is not None) == clean)
    data = bytearray(victim.path.read_bytes())
    data[-100] ^= 1
    victim.path.write_bytes(data)
    before = names(tmp_path)
    with pytest.raises(LogDamaged, match=f"{victim.path} is damaged at byte .* record t/0@"):
        log.compact("t")
    caplog.set_level(logging.WARNING, "headrace.log")
    log.maintain()
    assert "is damaged at byte" in caplog.text
    assert set(before) <= set(names(tmp_path))
    found = [damage for segment in log.verify("t") for damage in segment.damages]
    assert len(found) == 1
    assert str(victim.path) in found[0]


def test_a_full_disk_stops_a_pass_and_nothing_goes(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path, clock)
    for n in range(60):
        put(log, str(n), f"k{n % 25}")
    log._appender(PARTITION_0).seal()
    before, left = names(tmp_path), rows(log, PARTITION_0)

    def refuse(descriptor: int, data: bytes, position: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "write_whole", refuse)
        with pytest.raises(DiskFull, match="no space left"):
            log.compact("t")
        log.maintain()
    assert names(tmp_path) == before
    assert rows(log, PARTITION_0) == left
    log.compact("t")
    assert len(pairs(log)) == 25


def test_damage_in_one_partition_does_not_keep_others_from_it(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    log.change_topic("t", partitions=2)
    for n in range(40):
        for number in (0, 1):
            log.append("t", records([str(n)], keys=["k"]), partition=number)
    list_files(tmp_path / "t" / "0")[0].path.write_bytes(b"no header")
    log.maintain()
    assert len(rows(log, Partition("t", 1))) < 5


def test_any_flipped_byte_of_a_compacted_segment_is_found(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, segment_bytes=4_000)
    for n in range(90):
        put(log, None if n % 3 else str(n), f"k{n % 30}")
    log.compact("t")
    file = list_files(tmp_path / "t" / "0")[0].path
    whole = file.read_bytes()
    chance = random.Random(1)
    for at in [*range(160), *chance.sample(range(160, len(whole)), 150)]:
        broken = bytearray(whole)
        broken[at] ^= 1 << chance.randrange(8)
        file.write_bytes(broken)
        fresh = EmbeddedLog(tmp_path)
        found = [damage for segment in fresh.verify("t") for damage in segment.damages]
        assert found, f"byte {at}"
        with pytest.raises(LogDamaged, match=str(file)):
            values(fresh, PARTITION_0)


def test_a_lost_compacted_file_is_missed(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    for n in range(90):
        put(log, str(n), f"k{n}")
    log.compact("t")
    lost = list_files(tmp_path / "t" / "0")[1]
    lost.path.unlink()
    put(log, "x", "k1")
    fresh = EmbeddedLog(tmp_path, segment_bytes=2_000)
    with pytest.raises(LogDamaged, match=f"t/0@{lost.base_offset}: the file is gone"):
        values(fresh, PARTITION_0)
    with pytest.raises(LogDamaged, match=f"t/0@{lost.base_offset}: the file is gone"):
        fresh.compact("t")
    found = [damage for segment in fresh.verify("t") for damage in segment.damages]
    assert len(found) == 1
    assert f"t/0@{lost.base_offset}: the file is gone" in found[0]
