"""A log out of reach is waited for, longer and longer, and told once."""

import logging
import threading
import time

import pytest

from headrace.engine import reach
from headrace.engine.reach import Reach
from headrace.errors import Unreachable

AWAY = Unreachable("127.0.0.1:1: no answer in 1 s.")


def test_it_is_told_once_and_the_pauses_grow(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "LONGEST_PAUSE_S", 3.0)
    pauses: list[float | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return False

    watched = Reach(Stop())
    assert not watched.lost
    with caplog.at_level(logging.WARNING, "headrace.engine"):
        for _ in range(5):
            watched.wait(AWAY)
            assert watched.lost
        watched.found()
        watched.found()
    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]
    first, last = [record.getMessage() for record in caplog.records]
    assert first == f"{AWAY} Nothing is lost; the engine waits and tries again."
    assert last.startswith("in reach again after")
    assert not watched.lost


def test_it_is_said_again_while_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "TELL_EVERY_S", 0.0)
    monkeypatch.setattr(reach, "FIRST_PAUSE_S", 0.0)
    watched = Reach(threading.Event())
    with caplog.at_level(logging.WARNING, "headrace.engine"):
        watched.wait(AWAY)
        watched.wait(AWAY)
    assert caplog.records[1].getMessage() == f"still waiting after 0 s: {AWAY}"


def test_a_stop_ends_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "FIRST_PAUSE_S", 600.0)
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    started = time.monotonic()
    Reach(stop).wait(AWAY)
    assert time.monotonic() - started < 60


def test_without_patience_it_is_raised() -> None:
    with pytest.raises(Unreachable, match="no answer"):
        Reach(threading.Event(), patient=False).wait(AWAY)
