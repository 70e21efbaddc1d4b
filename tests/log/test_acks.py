"""What `acks=1` promises on the embedded log: written when it returns, synced and shown soon after.

Method: the sync is held up or made to fail, by replacing what the system offers; processes are
killed for real between the two.
"""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.errors import DiskFull, LogError
from headrace.log import EmbeddedLog, Partition, Range, records
from headrace.log.embedded import appender, background
from headrace.log.embedded.files import OpenFile
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)

APPEND_AND_DIE = """
import os, signal, sys, threading
from headrace.log import EmbeddedLog, records
from headrace.log.embedded.files import OpenFile
OpenFile.sync = lambda file: threading.Event().wait()  # a sync that never ends
log = EmbeddedLog(sys.argv[1])
done = log.append("t", records(["a", "b"]), partition=0, acks=1)
assert (done.ranges[0].start, done.ranges[0].end) == (1, 3)
os.kill(os.getpid(), signal.SIGKILL)
"""


def make_log(path: Path) -> EmbeddedLog:
    log = EmbeddedLog(path)
    log.create_topic("t", partitions=2)
    return log


def wait_for_values(log: EmbeddedLog, expected: list[bytes]) -> None:
    deadline = time.monotonic() + 5
    while values(log, PARTITION_0) != expected and time.monotonic() < deadline:
        time.sleep(0.005)
    assert values(log, PARTITION_0) == expected


def sync_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "headrace-sync"]


@contextmanager
def syncs_that_fail(monkeypatch: pytest.MonkeyPatch, code: int = errno.EIO) -> Iterator[None]:
    def fail(_: OpenFile) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(OpenFile, "sync", fail)
        yield


@contextmanager
def syncs_held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Hold up every sync until the end; the list has the files that were synced."""
    may_sync, synced, real = threading.Event(), [], OpenFile.sync

    def sync(file: OpenFile) -> None:
        assert may_sync.wait(5)
        synced.append(file.path)
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(OpenFile, "sync", sync)
        yield synced
        may_sync.set()


def test_what_is_not_synced_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appender, "PATIENCE_S", 60)
    log = make_log(tmp_path)
    log.append("t", records(["first"]), partition=0)
    with syncs_held_up(monkeypatch):
        for n, value in enumerate("abc", 1):
            done = log.append("t", records([value]), partition=0, acks=1)
            assert done.ranges == [Range(PARTITION_0, n, n + 1)]
        assert values(log, PARTITION_0) == [b"first"]
    log.append("t", records(["d"]), partition=0)
    assert values(log, PARTITION_0) == [b"first", b"a", b"b", b"c", b"d"]
    log.close()


def test_one_sync_serves_all_that_was_appended_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    with syncs_held_up(monkeypatch) as synced:
        for n in range(50):
            log.append("t", records([str(n)]), partition=0, acks=1)
    log.close()
    assert 1 <= len(synced) <= 2
    assert len(values(EmbeddedLog(tmp_path), PARTITION_0)) == 50


def test_closing_syncs_what_is_left_and_ends_the_thread(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    before = sync_threads()
    for n in range(20):
        log.append("t", records([str(n)]), partition=n % 2, acks=1)
    log.close()
    log.close()  # a second time does no harm
    assert sync_threads() == before
    other = EmbeddedLog(tmp_path)
    assert [len(values(other, Partition("t", number))) for number in (0, 1)] == [10, 10]


def test_an_idle_thread_ends_and_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "IDLE_S", 0.01)
    before = sync_threads()
    log = make_log(tmp_path)
    for n in range(3):
        log.append("t", records(["x"]), partition=0, acks=1)
        wait_for_values(log, [b"x"] * (n + 1))
        deadline = time.monotonic() + 5
        while sync_threads() != before and time.monotonic() < deadline:
            time.sleep(0.005)
        assert sync_threads() == before


@pytest.mark.parametrize(("code", "kind"), [(errno.EIO, LogError), (errno.ENOSPC, DiskFull)])
def test_the_next_append_raises_that_a_sync_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: int,
    kind: type[Exception],
) -> None:
    log = make_log(tmp_path)
    log.append("t", records(["a"]), partition=0)
    with syncs_that_fail(monkeypatch, code):
        log.append("t", records(["b"]), partition=0, acks=1)
        deadline = time.monotonic() + 5
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.005)
    assert "t/0: records before offset 2, appended with acks=1" in caplog.text
    log.append("t", records(["elsewhere"]), partition=1)
    with pytest.raises(kind, match=r"may be lost .* Nothing of this append was stored"):
        log.append("t", records(["c"]), partition=0)
    assert values(log, PARTITION_0) == [b"a"]
    log.append("t", records(["d"]), partition=0, acks=1)
    log.close()
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"a", b"d"]


def test_closing_raises_that_a_sync_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path)
    with syncs_that_fail(monkeypatch):
        for number in (0, 1):
            log.append("t", records(["a"]), partition=number, acks=1)
        with pytest.raises(LogError, match=r"t/[01]: .* may be lost .*and 1 more"):
            log.close()
    log.close()
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == []


def test_a_cut_that_another_log_made_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = make_log(tmp_path), EmbeddedLog(tmp_path)
    real, syncs, may_sync = OpenFile.sync, threading.Event(), threading.Event()

    def sync(file: OpenFile) -> None:
        if threading.current_thread().name == "headrace-sync":
            syncs.set()
            assert may_sync.wait(60)
        elif not may_sync.is_set():
            raise OSError(errno.EIO, "broken")
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(OpenFile, "sync", sync)
        log.append("t", records(["a"]), partition=0, acks=1)
        assert syncs.wait(60)  # else it might notice the cut before there is a third record
        with pytest.raises(LogError):
            other.append("t", records(["b"]), partition=0)
        log.append("t", records(["c"]), partition=0, acks=1)  # not lost, unlike the first
        may_sync.set()
        with pytest.raises(LogError, match="t/0: records before offset 1"):
            log.close()
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"c"]


def test_a_deleted_topic_fails_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, other = make_log(tmp_path), EmbeddedLog(tmp_path)
    with syncs_held_up(monkeypatch):
        log.append("t", records(["a"]), partition=0, acks=1)
        log.append("t", records(["a"]), partition=1, acks=1)
        other.delete_topic("t")
    log.close()


def test_a_killed_process_loses_nothing_that_was_written(tmp_path: Path) -> None:
    reader = make_log(tmp_path)
    reader.append("t", records(["first"]), partition=0)
    assert values(reader, PARTITION_0) == [b"first"]
    killed = subprocess.run([sys.executable, "-c", APPEND_AND_DIE, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    wait_for_values(reader, [b"first", b"a", b"b"])  # though nobody appends any more
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"first", b"a", b"b"]


def test_a_forked_child_uses_the_log_whatever_the_parent_was_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    holds, real = threading.Event(), OpenFile.sync
    parent, may_sync = os.getpid(), threading.Event()

    def sync(file: OpenFile) -> None:
        if os.getpid() == parent:
            holds.set()
            assert may_sync.wait(20)
        real(file)

    monkeypatch.setattr(OpenFile, "sync", sync)
    log.append("t", records(["parent"]), partition=0, acks=1)
    assert holds.wait(5)  # the thread has the partition's locks of this process now
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            log.append("t", records(["child"]), partition=0, acks=1)
            log.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    may_sync.set()
    log.close()
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"parent", b"child"]
