"""No space left: the append raises DiskFull, nothing acknowledged is lost, and the log goes on."""

import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import DiskFull, LogError
from headrace.log import EmbeddedLog, Partition, Producer, records
from headrace.log.embedded.files import OpenFile
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)


def failing(calls: int, code: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return `real`, except that it fails at the given call; a write fails after half its bytes."""
    left = [calls]

    def call(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] != 0:
            return real(*arguments)
        if real is os.pwrite:
            descriptor, data, position = arguments
            real(descriptor, data[: len(data) // 2], position)
        raise OSError(code, os.strerror(code))

    return call


# How often one append writes and syncs: without a roll, and with one.
CALLS = {("pwrite", 1 << 20): 4, ("pwrite", 1): 7, ("fdatasync", 1 << 20): 1, ("fdatasync", 1): 3}


@pytest.mark.parametrize(
    ("function", "segment_bytes", "call"),
    [(*key, call) for key, calls in CALLS.items() for call in range(1, calls + 1)],
)
def test_wherever_the_disk_is_full_an_append_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, segment_bytes: int, call: int
) -> None:
    log = EmbeddedLog(tmp_path, segment_bytes=segment_bytes)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a", "b"]), partition=0, producer=Producer("p", 1, 0))
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(call, errno.ENOSPC, getattr(os, function)))
        with pytest.raises(DiskFull, match="no space left"):
            log.append("t", records(["c", "d"]), partition=0, producer=Producer("p", 1, 1))
    others = (EmbeddedLog(tmp_path), log)
    for reader in others:
        assert values(reader, PARTITION_0) in ([b"a", b"b"], [b"a", b"b", b"c", b"d"])
    for appender in others:
        appender.append("t", records(["c", "d"]), partition=0, producer=Producer("p", 1, 1))
        assert values(appender, PARTITION_0) == [b"a", b"b", b"c", b"d"]


def test_a_failed_sync_cuts_what_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    (segment,) = (tmp_path / "t" / "0").glob("*.log")
    before = segment.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing(1, errno.EIO, os.fdatasync))
        with pytest.raises(LogError, match="the system refused"):
            log.append("t", records(["b"]), partition=0)
    assert segment.read_bytes() == before
    log.append("t", records(["c"]), partition=0)
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"a", b"c"]


def test_who_waits_for_a_sync_that_another_log_failed_raises_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One log writes and waits to sync; another writes after it, and its sync fails."""
    waiting, failed = EmbeddedLog(tmp_path), EmbeddedLog(tmp_path)
    waiting.create_topic("t", partitions=1)
    has_written, may_sync = threading.Event(), threading.Event()
    real, errors = OpenFile.sync, []

    def sync(file: OpenFile) -> None:
        if threading.current_thread() is not thread:
            raise OSError(errno.EIO, "broken")
        has_written.set()
        assert may_sync.wait(5)
        real(file)

    def append() -> None:
        try:
            waiting.append("t", records(["a"]), partition=0)
        except LogError as error:
            errors.append(str(error))

    thread = threading.Thread(target=append)
    with monkeypatch.context() as patch:
        patch.setattr(OpenFile, "sync", sync)
        thread.start()
        assert has_written.wait(5)
        with pytest.raises(LogError):
            failed.append("t", records(["b"]), partition=0)
        may_sync.set()
        thread.join()
    assert len(errors) == 1
    assert "t/0@0: a sync failed" in errors[0]
    assert values(waiting, PARTITION_0) == []
    failed.append("t", records(["c"]), partition=0)
    waiting.append("t", records(["d"]), partition=0)
    assert values(EmbeddedLog(tmp_path), PARTITION_0) == [b"c", b"d"]


def test_a_cut_that_fails_after_a_failed_sync_stops_this_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing(1, errno.EIO, os.fdatasync))
        patch.setattr(os, "truncate", failing(1, errno.EIO, os.truncate))
        with pytest.raises(LogError):
            log.append("t", records(["a"]), partition=0)
    with pytest.raises(LogError, match="open the log anew"):
        log.append("t", records(["b"]), partition=0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    log = EmbeddedLog(small_disk / "log", segment_bytes=30_000)
    log.create_topic("t", partitions=1)
    acknowledged = 0

    def fill() -> None:
        nonlocal acknowledged
        while True:
            log.append("t", records([b"x" * 3000]), partition=0)
            acknowledged += 1

    (small_disk / "ballast").write_bytes(bytes(20_000))
    for _ in range(2):
        with pytest.raises(DiskFull, match="free some space, then go on"):
            fill()
        assert len(values(log, PARTITION_0)) == acknowledged > 10
        (small_disk / "ballast").unlink(missing_ok=True)
    with pytest.raises(DiskFull):
        log.create_topic("u", partitions=100)
    assert [topic.name for topic in log.topics()] == ["t"]
    assert not list((small_disk / "log").glob("~creating-*"))
    log.close()
