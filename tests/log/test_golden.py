"""The format on disk stays readable: logs of every version, kept as files, are read as they were.

`python tests/log/test_golden.py <version> <folder>` wrote each, when that version was the newest; a
released golden file is never written again.
"""

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace.log import (
    Append,
    Appended,
    EmbeddedLog,
    Extent,
    Partition,
    Producer,
    Range,
    TopicSettings,
    records,
)
from headrace.log.embedded.upkeep import rewriting
from headrace.testing.log.suite import rows

GOLDEN = Path(__file__).parent / "golden"
PARTITION_0 = Partition("golden", 0)
START_US = 1_700_000_000_000_000
NAMES = ("offset", "arrival", "key", "value", "headers")


def arrival(us: int) -> datetime:
    return datetime.fromtimestamp(START_US // 1_000_000, UTC) + timedelta(microseconds=us)


def copy(version: int, path: Path) -> Path:
    return shutil.copytree(GOLDEN / f"version-{version}", path / "log")


def write_1(path: Path) -> None:
    times = iter(range(START_US, START_US + 100))
    log = EmbeddedLog(path, clock=lambda: next(times), segment_bytes=1400)
    log.create_topic("golden", partitions=1)
    log.append("golden", records(["one", None], keys=["k", None]), partition=0)
    log.append(
        "golden",
        records(["three"], headers=[[("name", b"value"), ("none", None)]]),
        partition=0,
        producer=Producer("producer-ü", 2, 7),
    )
    log.append("golden", records([b"\x00\xff"]), partition=0)
    log.close()


def write_2(path: Path) -> None:
    """Write settings, a first offset and a batch of a transaction."""
    log = EmbeddedLog(path, clock=lambda: START_US, segment_bytes=1)
    log.create_topic("golden", partitions=1, settings=TopicSettings(retention_bytes=900))
    for n in range(4):
        log.append("golden", records([str(n)]), partition=0)
    log.append_all([Append("golden", records(["together"]), 0)])
    log.close()


def write_3(path: Path) -> None:
    """Write a compacted segment, with gaps and a tombstone, and an ordinary one after it."""
    times = iter(range(START_US, START_US + 100))
    log = EmbeddedLog(path, clock=lambda: next(times), segment_bytes=1 << 20)
    settings = TopicSettings(compact=True, tombstone_ms=3_600_000)
    log.create_topic("golden", partitions=1, settings=settings)
    for n in range(3):
        table = records([str(n), f"only-{n}"], keys=["k", f"k{n}"], headers=[None, {"h": str(n)}])
        log.append("golden", table, partition=0, producer=Producer("p", 1, n))
    log.append("golden", records([None, b"x" * 2000], keys=["k0", "large"]), partition=0)
    rewriting.BATCH_BYTES = 1000
    log.compact("golden")
    log.append("golden", records(["after"], keys=["k"]), partition=0)
    log.close()


def test_a_log_of_version_1_is_read_and_goes_on(tmp_path: Path) -> None:
    path = copy(1, tmp_path)
    assert len(list((path / "golden" / "0").glob("*.log"))) == 2
    log = EmbeddedLog(path)
    header = [{"name": "name", "value": b"value"}, {"name": "none", "value": None}]
    expected = [
        (0, arrival(0), b"k", b"one", None),
        (1, arrival(0), None, None, None),
        (2, arrival(1), None, b"three", header),
        (3, arrival(2), None, b"\x00\xff", None),
    ]
    assert rows(log, PARTITION_0) == [dict(zip(NAMES, row, strict=True)) for row in expected]
    again = log.append("golden", records(["x"]), partition=0, producer=Producer("producer-ü", 2, 7))
    assert again == Appended([], duplicate=True)
    assert log.append("golden", records(["x"]), partition=0) == Appended([Range(PARTITION_0, 4, 5)])


def test_a_log_of_version_2_is_read_and_goes_on(tmp_path: Path) -> None:
    path = copy(2, tmp_path)
    assert (path / "golden" / "0" / "ends").read_bytes()[:4] == b"HRE\x02"
    log = EmbeddedLog(path)
    assert log.topic("golden").settings == TopicSettings(retention_bytes=900)
    first, end = log.extents("golden")[PARTITION_0]
    assert 0 < first < end == 5
    assert [row["value"] for row in rows(log, PARTITION_0)][-2:] == [b"3", b"together"]
    log.change_topic("golden", settings=TopicSettings(compact=True))
    log.append("golden", records(["x"], keys=["k"]), partition=0)
    log.compact("golden")
    assert log.extents("golden")[PARTITION_0] == Extent(first, 6)
    assert len(rows(log, PARTITION_0)) == 6 - first  # without a key, all but one


def test_a_compacted_log_of_version_3_is_read_and_goes_on(tmp_path: Path) -> None:
    path = copy(3, tmp_path)
    (compacted,) = (path / "golden" / "0").glob("*-*-1.log")
    assert compacted.read_bytes().count(b"HRB\x01") == 3
    log = EmbeddedLog(path)
    settings = TopicSettings(compact=True, tombstone_ms=3_600_000)
    assert log.topic("golden").settings == settings
    assert log.extents("golden")[PARTITION_0] == Extent(0, 9)
    header = [{"name": "h", "value": b"1"}]
    expected = [
        (3, arrival(1), b"k1", b"only-1", header),
        (4, arrival(2), b"k", b"2", None),
        (5, arrival(2), b"k2", b"only-2", [{"name": "h", "value": b"2"}]),
        (6, arrival(3), b"k0", None, None),
        (7, arrival(3), b"large", b"x" * 2000, None),
        (8, arrival(5), b"k", b"after", None),
    ]
    assert rows(log, PARTITION_0) == [dict(zip(NAMES, row, strict=True)) for row in expected]
    assert log.offset_at(PARTITION_0, START_US + 2) == 4
    assert not [segment for segment in log.verify("golden") if segment.damages]
    table = records(["x"], keys=["k"])
    assert log.append("golden", table, partition=0, producer=Producer("p", 1, 2)).duplicate
    log.compact("golden")  # the tombstone's hour was over long ago
    assert [row["offset"] for row in rows(log, PARTITION_0)] == [3, 5, 7, 8]


if __name__ == "__main__":
    {"1": write_1, "2": write_2, "3": write_3}[sys.argv[1]](Path(sys.argv[2]))
