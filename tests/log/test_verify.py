"""`verify` finds every damage that a read would refuse, in one look, and says where it is."""

import os
import random
from pathlib import Path

import pytest

from headrace.errors import LogDamaged
from headrace.log import EmbeddedLog, Partition, TopicSettings, records
from headrace.log.embedded.listing import list_segments, segment_path
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)


def fill(path: Path) -> list[Path]:
    """Write a log of some segments with three batches each, and return their files."""
    log = EmbeddedLog(path, sync=False, segment_bytes=2_000)
    log.create_topic("t", partitions=2)
    for n in range(10):
        log.append("t", records([f"{n}-{i}" * 20 for i in range(3)], keys=["k"] * 3), partition=0)
    log.close()
    folder = path / "t" / "0"
    return [segment_path(folder, base) for base in list_segments(folder)]


def damages(path: Path) -> list[str]:
    return [damage for segment in EmbeddedLog(path).verify("t") for damage in segment.damages]


def test_a_sound_log_has_no_damage_and_all_its_records(tmp_path: Path) -> None:
    files = fill(tmp_path)
    assert len(files) > 3
    found = list(EmbeddedLog(tmp_path).verify("t"))
    assert [segment.path for segment in found if segment.partition == PARTITION_0] == files
    assert sum(segment.records for segment in found) == 30
    assert not damages(tmp_path)


def test_any_flipped_byte_of_a_sealed_segment_is_found_here_and_by_a_read(tmp_path: Path) -> None:
    file = fill(tmp_path)[1]
    whole = file.read_bytes()
    chance = random.Random(1)
    for at in [*range(64), *chance.sample(range(64, len(whole)), 150)]:
        broken = bytearray(whole)
        broken[at] ^= 1 << chance.randrange(8)
        file.write_bytes(broken)
        found = damages(tmp_path)
        assert found, f"byte {at}"
        assert f"{file} is damaged at byte" in found[0]
        assert "record t/0@" in found[0]
        with pytest.raises(LogDamaged, match=str(file)):
            values(EmbeddedLog(tmp_path), PARTITION_0)


def test_all_damages_are_found_in_one_look(tmp_path: Path) -> None:
    files = fill(tmp_path)
    for file in files[:3]:
        data = bytearray(file.read_bytes())
        starts = [at for at in range(8, len(data), 8) if data[at : at + 4] == b"HRB\x01"]
        data[starts[0] + 100] ^= 1
        file.write_bytes(data)
    files[3].unlink()
    found = damages(tmp_path)
    assert [str(file) in damage for file, damage in zip(files, found, strict=False)] == [True] * 3
    # What the lost file held is missed at the end of the one before it.
    assert len(found) == 3
    readable = sum(segment.records for segment in EmbeddedLog(tmp_path).verify("t"))
    assert 0 < readable < 30 - 3 * 3


def test_a_file_that_is_too_short_or_gone_is_damage(tmp_path: Path) -> None:
    files = fill(tmp_path)
    size = files[1].stat().st_size
    data = bytearray(files[1].read_bytes())
    last = max(at for at in range(8, size, 8) if data[at : at + 4] == b"HRB\x01")
    os.truncate(files[1], last)
    (found,) = damages(tmp_path)
    assert "the file ends, but records up to offset" in found
    files[0].unlink()
    assert len(damages(tmp_path)) == 2


def test_what_retention_removed_is_no_damage(tmp_path: Path) -> None:
    fill(tmp_path)
    log = EmbeddedLog(tmp_path, sync=False)
    log.change_topic("t", settings=TopicSettings(retention_bytes=1))
    log.maintain()
    assert log.extents("t")[PARTITION_0].first_offset > 0
    assert not damages(tmp_path)
