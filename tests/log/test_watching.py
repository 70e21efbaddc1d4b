"""How the embedded log tells who waits: by events of the system, or by looking where it has none.

The contract has what every log promises; here is what is the embedded log's own.
"""

import errno
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asyncinotify import Inotify

from headrace.log import EmbeddedLog, Partition, records
from headrace.log.embedded.topics import partition_folder
from headrace.log.embedded.watching import EmbeddedWatch

SOON_S = 5.0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=4)
    yield log
    log.close()


def ends(log: EmbeddedLog) -> dict[Partition, int]:
    return {place: extent.end_offset for place, extent in log.extents("t").items()}


def watch_of(tmp_path: Path, *, events: bool) -> EmbeddedWatch:
    return EmbeddedWatch(lambda place: partition_folder(tmp_path / "log", place), events=events)


def told_in_s(watch: EmbeddedWatch, log: EmbeddedLog) -> float:
    """Return how long after an append, a moment from now, one who waits is told."""
    appended: list[float] = []

    def append() -> None:
        log.append("t", records(["x"]), partition=2)
        appended.append(time.monotonic())

    timer = threading.Timer(0.2, append)
    timer.start()
    assert watch.wait(ends(log), timeout_s=30)
    told = time.monotonic()
    timer.join()
    return told - appended[0]


def test_without_events_the_files_are_looked_at(log: EmbeddedLog, tmp_path: Path) -> None:
    with closing(watch_of(tmp_path, events=False)) as watch:
        assert told_in_s(watch, log) < SOON_S
        assert not watch.wait(ends(log), timeout_s=0.05)
        threading.Timer(0.1, watch.wake).start()
        began = time.monotonic()
        assert watch.wait(ends(log), timeout_s=30)
        assert time.monotonic() - began < SOON_S


def test_when_the_system_has_no_more_watches_the_files_are_looked_at(
    log: EmbeddedLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Inotify, "add_watch", refuse)
    with (
        closing(watch_of(tmp_path, events=True)) as watch,
        caplog.at_level(logging.WARNING, "headrace.log"),
    ):
        assert told_in_s(watch, log) < SOON_S
        assert told_in_s(watch, log) < SOON_S
    [message] = caplog.messages
    assert "raise fs.inotify.max_user_watches" in message


def test_waiting_takes_no_time_of_the_processor(log: EmbeddedLog, tmp_path: Path) -> None:
    with closing(log.watch()) as watch:
        watch.wait(ends(log), timeout_s=0.01)  # loads what it needs
        positions = ends(log)
        used = time.thread_time()
        assert not watch.wait(positions, timeout_s=1)
        assert time.thread_time() - used < 0.01


def test_who_is_busy_finds_one_event_per_partition(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    sync_get = Inotify.sync_get

    def count(inotify: Inotify) -> object:
        nonlocal taken
        event = sync_get(inotify)
        taken += event is not None
        return event

    monkeypatch.setattr(Inotify, "sync_get", count)
    with closing(log.watch()) as watch:
        positions = ends(log)
        assert not watch.wait(positions, timeout_s=0.01)
        for number in range(200):
            log.append("t", records(["x"]), partition=number % 4)
        assert watch.wait(positions, timeout_s=30)
        assert not watch.wait(ends(log), timeout_s=0.01)
    assert 4 <= taken <= 4 * 2  # each event, and that its watch is over
