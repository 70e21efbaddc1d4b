"""An append to several partitions is there whole or not at all, whoever dies when."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from soaking import SOAKING, seeded

from headrace import faults
from headrace.log import Append, EmbeddedLog, Partition, records
from headrace.log.embedded.transactions import decisions
from headrace.log.embedded.upkeep.housekeeping import KEPT_DECISIONS
from headrace.testing.log.suite import values

PLACES = [Partition("t", 0), Partition("t", 1), Partition("u", 0)]
# Where an append may die, and whether it is there afterwards.
POINTS = {
    "log_in_transaction": False,
    "log_before_decision": False,
    "log_after_decision": True,
    "log_in_acknowledgement": True,
}


def make_log(path: Path, segment_bytes: int = 1 << 20) -> EmbeddedLog:
    log = EmbeddedLog(path, segment_bytes=segment_bytes)
    log.create_topic("t", partitions=2)
    log.create_topic("u", partitions=1)
    return log


def append(log: EmbeddedLog, text: str) -> None:
    table = records([text])
    log.append_all([Append(place.topic, table, place.number) for place in PLACES])


def stored(log: EmbeddedLog) -> list[list[bytes | None]]:
    return [values(log, place) for place in PLACES]


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("goes_on", ["same log", "other log", "plain append"])
def test_a_death_leaves_all_or_nothing(
    tmp_path: Path, point: str, segment_bytes: int, goes_on: str
) -> None:
    log = make_log(tmp_path, segment_bytes)
    append(log, "before")
    faults.arm(point)
    with pytest.raises(faults.Crash):
        append(log, "dies")
    log = log if goes_on == "same log" else EmbeddedLog(tmp_path, segment_bytes=segment_bytes)
    expected = [b"before", b"dies"] if POINTS[point] else [b"before"]
    if goes_on == "plain append":
        for place in PLACES:
            log.append(place.topic, records(["after"]), partition=place.number)
    else:
        if goes_on == "other log":
            assert stored(log) == [expected] * 3
        append(log, "after")
    assert stored(log) == [[*expected, b"after"]] * 3
    assert stored(EmbeddedLog(tmp_path)) == [[*expected, b"after"]] * 3
    for topic in ("t", "u"):
        assert not [segment for segment in log.verify(topic) if segment.damages]


KILLED = """
import sys
from headrace.log import EmbeddedLog, records
log = EmbeddedLog(sys.argv[1], segment_bytes=5_000)
keys = [str(n) for n in range(40)]
number = int(sys.argv[2])
sys.stdin.readline()
while True:
    log.append("t", records([str(number)] * 40, keys=keys))
    print(number, flush=True)
    number += 1
"""


@pytest.mark.soak
def test_processes_killed_at_random_leave_whole_appends(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=4)
    chance = seeded(3)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), str(n * 1_000_000)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8 if SOAKING else 5)
    ]
    acknowledged: set[int] = set()
    for process in processes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        acknowledged.add(int(process.stdout.readline()))
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        with process.stdin, process.stdout:
            acknowledged |= {int(line) for line in process.stdout.read().split()}
        process.wait()
    places = list(log.extents("t"))
    counts: dict[bytes | None, int] = {}
    for place in places:
        for value in values(EmbeddedLog(tmp_path), place):
            counts[value] = counts.get(value, 0) + 1
    assert set(counts.values()) == {40}
    found = {int(value) for value in counts if value}
    assert acknowledged <= found
    # Of each process at most the append that was on its way is there without its word.
    assert len(found) <= len(acknowledged) + len(processes)
    log.maintain()
    assert decisions(tmp_path) == []
    assert not [segment for segment in log.verify("t") if segment.damages]


def test_decisions_are_forgotten_when_nobody_needs_them(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for n in range(2 * KEPT_DECISIONS + 3):
        append(log, str(n))
        assert len(decisions(tmp_path)) < KEPT_DECISIONS
    assert len(decisions(tmp_path)) == 3
    log.delete_topic("u")
    log.maintain()
    assert decisions(tmp_path) == []
    assert len(values(log, PLACES[0])) == 2 * KEPT_DECISIONS + 3


def test_a_decision_is_kept_until_the_ends_are_safe(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, "one")
    log.maintain()
    ends = [tmp_path / place.topic / str(place.number) / "ends" for place in PLACES]
    for file in ends:
        shutil.copy(file, file.with_name("before"))
    append(log, "two")
    (decision,) = decisions(tmp_path)
    assert json.loads(decision.read_text()) == [["t", 0], ["t", 1], ["u", 0]]
    for file in ends:  # as a power loss may leave them
        os.replace(file.with_name("before"), file)
    assert stored(EmbeddedLog(tmp_path)) == [[b"one", b"two"]] * 3


def test_a_failed_sync_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.errors import LogError
    from headrace.log.embedded import files

    log = make_log(tmp_path)
    append(log, "one")
    calls = iter([None, OSError(5, "Input/output error")])

    def sync(_: int) -> None:
        if (error := next(calls, None)) is not None:
            raise error

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_descriptor", sync)
        with pytest.raises(LogError, match="the system refused"):
            append(log, "two")
    assert stored(log) == stored(EmbeddedLog(tmp_path)) == [[b"one"]] * 3
    append(log, "three")
    assert stored(log) == [[b"one", b"three"]] * 3


def test_a_reader_sees_all_of_what_a_dead_process_showed_in_part(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, "one")
    reader = EmbeddedLog(tmp_path)
    assert stored(reader) == [[b"one"]] * 3
    faults.arm("log_in_acknowledgement")
    with pytest.raises(faults.Crash):
        append(log, "two")
    assert stored(reader) == [[b"one", b"two"], [b"one"], [b"one"]]
    deadline = time.monotonic() + 10
    while stored(reader) != [[b"one", b"two"]] * 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
