"""Compactors are killed for real, and run beside appenders and readers.

Method: a process compacts with a fault point armed, or is killed at random; afterwards every key
has its newest acknowledged record, the next compactor leaves nothing behind, and all bytes verify.
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from soaking import seeded, times

from headrace.log import EmbeddedLog, Partition, Range, TopicSettings, records
from headrace.log.embedded.listing import list_replaced
from headrace.testing.log.suite import rows
from log.compacting import KEYS, SEGMENT_BYTES

PARTITION_0 = Partition("t", 0)
COMPACTING = Path(__file__).with_name("compacting.py")
COMPACTED = TopicSettings(compact=True)
SECONDS = times(2)
FAULTS = ["log_in_compaction", "log_before_swap", "log_in_swap"]


def make_log(path: Path) -> EmbeddedLog:
    log = EmbeddedLog(path, segment_bytes=SEGMENT_BYTES)
    log.create_topic("t", partitions=1, settings=COMPACTED)
    return log


def start(path: Path, name: str, rounds: int, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, COMPACTING, path, name, rounds]
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def newest(log: EmbeddedLog) -> dict[bytes, bytes]:
    return {row["key"]: row["value"] for row in rows(log, PARTITION_0)}


def files(path: Path) -> set[str]:
    return {file.name for file in (path / "t" / "0").iterdir()}


@pytest.mark.parametrize("point", FAULTS)
def test_a_compactor_killed_at_a_fault_point_leaves_old_or_new(tmp_path: Path, point: str) -> None:
    log = make_log(tmp_path)
    log.append("t", records(["kept"], keys=["once"]), partition=0)
    read_before = EmbeddedLog(tmp_path, segment_bytes=SEGMENT_BYTES)
    for crash in range(3):
        process = start(tmp_path, f"c{crash}", 9, HEADRACE_FAULT=f"{point}:{crash + 3}")
        said, _ = process.communicate()
        assert process.returncode == -9
        last = said.split()[-1]
        left = files(tmp_path)
        if point == "log_in_swap":
            assert list_replaced(tmp_path / "t" / "0")
        else:
            assert any(name.endswith(".compacting") for name in left)
        expected = {key.encode(): f"c{crash}-{last}".encode() for key in KEYS}
        for each in (log, read_before, EmbeddedLog(tmp_path)):
            assert newest(each) == {b"once": b"kept", **expected}
            assert not [segment for segment in each.verify("t") if segment.damages]
    log.compact("t")
    assert list_replaced(tmp_path / "t" / "0") == []
    assert {name for name in files(tmp_path) if not name.endswith(".log")} == {
        "compacting",
        "ends",
        "lock",
    }
    for each in (log, read_before, EmbeddedLog(tmp_path)):
        assert len(rows(each, PARTITION_0)) == len(KEYS) + 1
        assert newest(each) == {b"once": b"kept", **expected}


@pytest.mark.soak
def test_compactors_killed_at_random_lose_nothing(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.append("t", records(["kept"], keys=["once"]), partition=0)
    chance = seeded(5)
    for crash in range(times(4)):
        process = start(tmp_path, f"c{crash}", 10_000)
        assert process.stdout is not None
        with process.stdout as out:
            assert out.readline() == "0\n"
            time.sleep(chance.uniform(0, 0.2))
            process.kill()
            rounds = [0, *map(int, out.read().split())]
        process.wait()
        found = newest(EmbeddedLog(tmp_path))
        assert found == newest(log)
        assert found.pop(b"once") == b"kept"
        assert len(found) == len(KEYS)
        # The round that was on its way may be there without having been acknowledged.
        (value,) = set(found.values())
        assert value in (b"c%d-%d" % (crash, rounds[-1]), b"c%d-%d" % (crash, rounds[-1] + 1))
        assert not [segment for segment in log.verify("t") if segment.damages]
    log.compact("t")
    assert len(rows(log, PARTITION_0)) == len(KEYS) + 1


@pytest.mark.soak
def test_appends_reads_and_splits_go_on_while_it_compacts(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False, segment_bytes=20_000)
    log.create_topic("t", partitions=1, settings=COMPACTED)
    stop = threading.Event()
    failures: list[BaseException] = []
    done = Counter[str]()

    def append(log: EmbeddedLog) -> None:
        n = done["append"]
        keys = [f"only-{n}", *(f"k{i}" for i in range(20))]
        log.append("t", records([str(n)] * 21, keys=keys), partition=0)

    def compact(log: EmbeddedLog) -> None:
        log.compact("t") if done["compact"] % 2 else log.maintain()
        time.sleep(0.005)

    def read(log: EmbeddedLog) -> None:
        appended = done["append"]
        check(rows(log, PARTITION_0), appended)

    def read_splits(log: EmbeddedLog) -> None:
        appended = done["append"]
        whole = Range(PARTITION_0, *log.extents("t")[PARTITION_0])
        splits = log.splits(whole, max_records=700)
        time.sleep(0.02)  # so that it is compacted meanwhile
        check([row for s in splits for batch in s.read() for row in batch.to_pylist()], appended)
        log.offset_at(PARTITION_0, time.time_ns() // 1000)
        log.measure(whole)

    def check(found: list[Any], appended: int) -> None:
        offsets = [row["offset"] for row in found]
        assert offsets == sorted(set(offsets))
        # What has no newer record is always there.
        once = [row["key"] for row in found if row["key"].startswith(b"only-")]
        assert once[:appended] == [b"only-%d" % n for n in range(appended)]

    def repeat(action: Callable[[EmbeddedLog], None]) -> None:
        own = EmbeddedLog(tmp_path, sync=False, segment_bytes=20_000)
        try:
            while not stop.is_set():
                action(own)
                done[action.__name__] += 1
        except BaseException as error:  # noqa: BLE001 (the test tells it)
            failures.append(error)
            stop.set()

    actions = (append, compact, read, read_splits)
    threads = [threading.Thread(target=repeat, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert min(done[action.__name__] for action in actions) > 5
    log.compact("t")
    assert len(rows(log, PARTITION_0)) == done["append"] + 20
    assert not [segment for segment in log.verify("t") if segment.damages]
