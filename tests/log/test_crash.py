"""Appenders are killed for real, at random times and at every fault point of the log.

Method: processes append numbered batches and print what was acknowledged; after the kill, every
acknowledged batch is there once, whole and in order, and the log goes on.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from soaking import SOAKING, seeded, times

from headrace.log import EmbeddedLog, Partition, records
from headrace.testing.log.suite import rows, values

PARTITION_0 = Partition("t", 0)
APPENDING = Path(__file__).with_name("appending.py")
BATCH_RECORDS = 3
LOG_FAULTS = ["log_torn", "log_before_sync", "log_before_acknowledge"]


def start(path: Path, name: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, APPENDING, path, name, *arguments]
    environment = {**os.environ, **environment}
    return subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def kill(process: subprocess.Popen[str]) -> list[int]:
    """Kill a process and return what it said was acknowledged after its first batch."""
    process.kill()
    assert process.stdin is not None
    assert process.stdout is not None
    # Not `communicate`: it would pass over what `readline` has read ahead.
    with process.stdin, process.stdout:
        said = process.stdout.read()
    process.wait()
    return [int(number) for number in said.split()]


def batches_of(path: Path) -> list[tuple[str, int]]:
    """Return (name, number) of the batches in the log, after checking that each is whole."""
    log = EmbeddedLog(path)
    seen = [str(value, "ascii").rsplit("-", 2) for value in values(log, PARTITION_0) if value]
    assert [row["offset"] for row in rows(log, PARTITION_0)] == list(range(len(seen)))
    log.close()
    whole = [seen[at : at + BATCH_RECORDS] for at in range(0, len(seen), BATCH_RECORDS)]
    for batch in whole:
        name, number, _ = batch[0]
        assert batch == [[name, number, str(n)] for n in range(BATCH_RECORDS)]
    return [(batch[0][0], int(batch[0][1])) for batch in whole]


@pytest.mark.soak
def test_processes_killed_at_random_lose_nothing_acknowledged(tmp_path: Path) -> None:
    EmbeddedLog(tmp_path).create_topic("t", partitions=1)
    chance = seeded(7)
    acknowledged: dict[str, list[int]] = {}
    count = 10 if SOAKING else 7
    # All are started first, since starting takes longer than all the rest.
    waiting = [(f"r{n}", start(tmp_path, f"r{n}", 100_000, 20_000)) for n in range(count)]
    running: list[tuple[str, subprocess.Popen[str]]] = []
    for name, process in waiting:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "0\n"
        running.append((name, process))
        # Two others go on, so that the living find what the dead left.
        if len(running) == 3:
            time.sleep(chance.uniform(0, 0.1))
            killed, victim = running.pop(chance.randrange(3))
            acknowledged[killed] = [0, *kill(victim)]
    for name, process in running:
        acknowledged[name] = [0, *kill(process)]
    stored = batches_of(tmp_path)
    assert len(set(stored)) == len(stored)
    for name, numbers in acknowledged.items():
        mine = [number for each, number in stored if each == name]
        # At most the batch that was on its way is there without having been acknowledged.
        assert numbers == mine[: len(numbers)] == list(range(len(numbers)))
        assert len(mine) <= len(numbers) + 1
    assert len(stored) > 40


@pytest.mark.soak
def test_rounds_of_three_killed_processes(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", partitions=3)
    script, count = Path(__file__).with_name("rounds.py"), times(20, soaked=50)
    rounds = [sys.executable, script, tmp_path, count, seeded(5).randrange(2**32)]
    subprocess.run(list(map(str, rounds)), check=True)
    stored: dict[tuple[int, int, int], list[int]] = {}
    sizes: dict[tuple[int, int, int], int] = {}
    for place in log.extents("t"):
        last: dict[tuple[int, int], tuple[int, int]] = {}
        for value in values(log, place):
            assert value is not None
            round, child, batch, size, number = map(int, value.split(b"-"))
            assert last.get((round, child), (-1, -1)) < (batch, number), "out of order"
            last[round, child] = (batch, number)
            stored.setdefault((round, child, batch), []).append(number)
            sizes[round, child, batch] = size
    for batch, numbers in stored.items():
        assert sorted(numbers) == list(range(sizes[batch])), f"{batch} is not whole"
    said = (tmp_path / "acknowledged").read_text().split()
    acknowledged = [(int(r), int(c), int(b)) for r, c, b in (line.split("-") for line in said)]
    # Nearly all of them; on a busy machine some are over before the first append is.
    assert len({round for round, _, _ in acknowledged}) > 0.6 * count
    assert set(acknowledged) <= set(stored)
    # Of each process at most the batch that was on its way is there without its word.
    extra = [batch[:2] for batch in set(stored) - set(acknowledged)]
    assert len(extra) == len(set(extra))
    assert not [segment for segment in log.verify("t") if segment.damages]


@pytest.mark.parametrize("point", LOG_FAULTS)
def test_a_process_killed_at_a_fault_point_leaves_whole_batches(tmp_path: Path, point: str) -> None:
    EmbeddedLog(tmp_path).create_topic("t", partitions=1)
    for crash, segment_bytes in enumerate((1, 1_000_000)):
        process = start(tmp_path, f"c{crash}", 9, segment_bytes, HEADRACE_FAULT=f"{point}:4")
        out, _ = process.communicate()
        assert process.returncode == -9
        assert out.split() == ["0", "1", "2"]
    stored = batches_of(tmp_path)
    kept = 3 if point == "log_torn" else 4
    assert stored == [(f"c{crash}", n) for crash in range(2) for n in range(kept)]
    assert {file.name for file in (tmp_path / "t" / "0").iterdir() if file.suffix != ".log"} == {
        "ends",
        "lock",
    }


@pytest.mark.parametrize("point", LOG_FAULTS)
def test_a_producer_that_retries_after_a_kill_is_stored_once(tmp_path: Path, point: str) -> None:
    EmbeddedLog(tmp_path).create_topic("t", partitions=1)
    killed = start(tmp_path, "p", 9, 2_000, 1, HEADRACE_FAULT=f"{point}:4")
    killed.communicate()
    assert killed.returncode == -9
    out, _ = start(tmp_path, "p", 9, 2_000, 2).communicate()
    assert out.split() == [str(n) for n in range(9)]
    assert batches_of(tmp_path) == [("p", n) for n in range(9)]


def test_a_torn_tail_is_never_served(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    assert values(log, PARTITION_0) == [b"a"]
    (segment,) = (tmp_path / "t" / "0").glob("*.log")
    whole = segment.read_bytes()
    for torn in (b"\0" * 100, whole[40:60], whole[40:-8], whole[40:], b"HRB\x01" * 30):
        segment.write_bytes(whole + torn)
        for reader in (log, EmbeddedLog(tmp_path)):
            assert values(reader, PARTITION_0) == [b"a"]
    segment.write_bytes(whole + whole[:-8])
    log.append("t", records(["b"]), partition=0)
    for reader in (log, EmbeddedLog(tmp_path)):
        assert values(reader, PARTITION_0) == [b"a", b"b"]
