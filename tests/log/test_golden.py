"""The format on disk stays readable: a log written by version 1, kept as files, is read as it was.

`python tests/log/test_golden.py <folder>` wrote it; a released golden file is never written again.
"""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from headrace.log import Appended, EmbeddedLog, Partition, Producer, Range, records
from headrace.testing.log_suite import rows

GOLDEN = Path(__file__).parent / "golden" / "version-1"
START_US = 1_700_000_000_000_000


def write_golden(path: Path) -> None:
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


def test_a_log_of_version_1_is_read_and_goes_on(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "log")
    assert len(list((tmp_path / "log" / "golden" / "0").glob("*.log"))) == 2
    log = EmbeddedLog(tmp_path / "log")
    place = Partition("golden", 0)
    arrival = [datetime.fromtimestamp(START_US / 1e6, UTC).replace(microsecond=n) for n in range(3)]
    header = [{"name": "name", "value": b"value"}, {"name": "none", "value": None}]
    names = ("offset", "arrival", "key", "value", "headers")
    expected = [
        (0, arrival[0], b"k", b"one", None),
        (1, arrival[0], None, None, None),
        (2, arrival[1], None, b"three", header),
        (3, arrival[2], None, b"\x00\xff", None),
    ]
    assert rows(log, place) == [dict(zip(names, row, strict=True)) for row in expected]
    again = log.append("golden", records(["x"]), partition=0, producer=Producer("producer-ü", 2, 7))
    assert again == Appended([], duplicate=True)
    assert log.append("golden", records(["x"]), partition=0) == Appended([Range(place, 4, 5)])


if __name__ == "__main__":
    write_golden(Path(sys.argv[1]))
