"""Damage is told from a torn tail: acknowledged bytes are never cut, lost ends are found again."""

import os
import random
import shutil
from pathlib import Path

import pytest

from headrace import faults
from headrace.errors import LogDamaged
from headrace.log import Appended, EmbeddedLog, Partition, Producer, Range, records
from headrace.log.embedded.ends import Ends, Mark, read_ends, write_ends
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)


def fill(path: Path, *, batches: int = 6, segment_bytes: int = 1 << 20) -> EmbeddedLog:
    log = EmbeddedLog(path, sync=False, segment_bytes=segment_bytes)
    log.create_topic("t", partitions=1)
    for n in range(batches):
        producer = Producer("p", 1, n)
        log.append("t", records([f"{n}-{i}" for i in range(3)]), partition=0, producer=producer)
    return log


def segments(path: Path) -> list[Path]:
    return sorted((path / "t" / "0").glob("*.log"))


EXPECTED = [f"{n}-{i}".encode() for n in range(6) for i in range(3)]


def test_any_flipped_byte_of_an_acknowledged_batch_is_found(tmp_path: Path) -> None:
    log = fill(tmp_path, batches=3)
    (segment,) = segments(tmp_path)
    whole = segment.read_bytes()
    starts = [at for at in range(0, len(whole), 8) if whole[at : at + 4] == b"HRB\x01"]
    size = starts[2] - starts[1]
    chance = random.Random(1)
    for at in [*range(72), *chance.sample(range(72, size), 60)]:
        broken = bytearray(whole)
        broken[starts[1] + at] ^= 1 << chance.randrange(8)
        segment.write_bytes(broken)
        for reader in (log, EmbeddedLog(tmp_path)):
            with pytest.raises(LogDamaged) as raised:
                values(reader, PARTITION_0)
            for part in (str(segment), f"byte {starts[1]}", "t/0@3"):
                assert part in str(raised.value)
            # What stands before the damage can still be read.
            list(reader.read(Range(PARTITION_0, 0, 3)))
    assert len(segment.read_bytes()) == len(whole)


def test_a_file_shorter_than_the_acknowledged_end_is_damaged(tmp_path: Path) -> None:
    fill(tmp_path).close()
    (segment,) = segments(tmp_path)
    os.truncate(segment, segment.stat().st_size - 8)
    log = EmbeddedLog(tmp_path)
    for call in (
        lambda: values(log, PARTITION_0),
        lambda: log.append("t", records(["x"]), partition=0),
    ):
        with pytest.raises(LogDamaged, match="the file ends within a batch"):
            call()


def test_a_damaged_segment_header_or_a_missing_segment_is_told(tmp_path: Path) -> None:
    fill(tmp_path, segment_bytes=1).close()
    last = segments(tmp_path)[-1]
    whole = last.read_bytes()
    for damage in (b"", whole[:20], whole[:20] + b"\xee" + whole[21:], b"\xee" + whole[1:]):
        last.write_bytes(damage)
        with pytest.raises(LogDamaged, match=last.name):
            EmbeddedLog(tmp_path).append("t", records(["x"]), partition=0)
    last.unlink()
    with pytest.raises(LogDamaged, match="the file is gone"):
        EmbeddedLog(tmp_path).extents("t")
    for segment in segments(tmp_path):
        segment.unlink()
    with pytest.raises(LogDamaged, match="has no segment"):
        EmbeddedLog(tmp_path).extents("t")


@pytest.mark.parametrize("segment_bytes", [1, 1200, 1 << 20])
@pytest.mark.parametrize("ends", [None, b"", b"\xaa" * 300])
def test_lost_ends_are_found_again(tmp_path: Path, segment_bytes: int, ends: bytes | None) -> None:
    old = fill(tmp_path, segment_bytes=segment_bytes)
    file = tmp_path / "t" / "0" / "ends"
    for round_number in range(2):
        file.unlink() if ends is None else file.write_bytes(ends)
        for log in (old, EmbeddedLog(tmp_path)):
            assert values(log, PARTITION_0) == EXPECTED + [b"x"] * round_number
        retry = old.append("t", records(["y"]), partition=0, producer=Producer("p", 1, 5))
        assert retry == Appended([], duplicate=True)
        old.append("t", records(["x"]), partition=0)


def test_one_garbled_slot_of_the_ends_loses_nothing(tmp_path: Path) -> None:
    fill(tmp_path).close()
    file = tmp_path / "t" / "0" / "ends"
    whole = file.read_bytes()
    for slot in (0, 128):
        file.write_bytes(whole[: slot + 30] + b"\xee" + whole[slot + 31 :])
        assert values(EmbeddedLog(tmp_path), PARTITION_0) == EXPECTED


@pytest.mark.parametrize("segment_bytes", [1, 1200, 1 << 20])
def test_ends_older_than_the_segments_are_brought_up_to_date(
    tmp_path: Path, segment_bytes: int
) -> None:
    """As after a power loss that kept what was synced, and an old page of `ends`."""
    log = fill(tmp_path, batches=0, segment_bytes=segment_bytes)
    file = tmp_path / "t" / "0" / "ends"
    pages = []
    for n in range(6):
        log.append("t", records([f"{n}-{i}" for i in range(3)]), partition=0)
        pages.append(file.read_bytes())
    log.close()
    for number, page in enumerate(pages):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "t", copy / "t")
        (copy / "t" / "0" / "ends").write_bytes(page)
        again = EmbeddedLog(copy)
        assert values(again, PARTITION_0) == EXPECTED
        again.append("t", records(["x"]), partition=0)
        assert values(EmbeddedLog(copy), PARTITION_0) == [*EXPECTED, b"x"]


@pytest.mark.parametrize("made", [False, True])
def test_a_roll_that_died_half_way_is_finished(tmp_path: Path, made: bool) -> None:
    log = fill(tmp_path)
    file = tmp_path / "t" / "0" / "ends"
    announced = Mark(18, 18, 0)
    ends = read_ends(file)
    assert ends is not None
    if made:
        other = EmbeddedLog(tmp_path, segment_bytes=1, sync=False)
        faults.arm("log_torn")
        with pytest.raises(faults.Crash):
            other.append("t", records(["x"]), partition=0)
    write_ends(file, Ends(ends.generation + 9, ends.cuts, announced, announced))
    for reader in (log, EmbeddedLog(tmp_path)):
        assert values(reader, PARTITION_0) == EXPECTED
    retry = log.append("t", records(["y"]), partition=0, producer=Producer("p", 1, 5))
    assert retry == Appended([], duplicate=True)
    log.append("t", records(["x"]), partition=0)
    for reader in (log, EmbeddedLog(tmp_path)):
        assert values(reader, PARTITION_0) == [*EXPECTED, b"x"]
    assert [int(segment.stem) for segment in segments(tmp_path)] == [0, 18]


def test_damage_is_not_cut_when_the_ends_are_lost_too(tmp_path: Path) -> None:
    fill(tmp_path).close()
    (segment,) = segments(tmp_path)
    whole = bytearray(segment.read_bytes())
    whole[len(whole) // 2] ^= 1
    segment.write_bytes(whole)
    (tmp_path / "t" / "0" / "ends").unlink()
    with pytest.raises(LogDamaged, match="a whole batch follows"):
        EmbeddedLog(tmp_path).append("t", records(["x"]), partition=0)
    assert segment.read_bytes() == whole


@pytest.mark.parametrize("loss", ["shorter", "zeros", "flipped"])
def test_what_a_power_loss_took_past_the_acknowledged_end_is_cut(tmp_path: Path, loss: str) -> None:
    log = fill(tmp_path)
    (segment,) = segments(tmp_path)
    acknowledged = segment.stat().st_size
    synced = EmbeddedLog(tmp_path)
    faults.arm("log_before_sync")
    with pytest.raises(faults.Crash):
        synced.append("t", records(["lost"]), partition=0)
    data = bytearray(segment.read_bytes())
    if loss == "shorter":
        del data[-8:]
    elif loss == "zeros":
        data[acknowledged:] = bytes(len(data) - acknowledged)
    else:
        data[acknowledged + 100] ^= 1
    segment.write_bytes(data)
    for reader in (log, synced, EmbeddedLog(tmp_path)):
        assert values(reader, PARTITION_0) == EXPECTED
    for appender in (synced, log):
        appender.append("t", records(["x"]), partition=0)
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [*EXPECTED, b"x", b"x"]
