"""What follows a commit waits until the next turn is at Spark; and never for long."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from headrace.engine import lull as lull_module
from headrace.engine.beside import Beside
from headrace.engine.lull import Lull
from headrace.engine.turn.emitting import Emitting

SECONDS = 30.0
SHORT_SECONDS = 0.05  # to see that something does not happen


@pytest.fixture
def lull(monkeypatch: pytest.MonkeyPatch) -> Lull:
    """Return one that waits for as long as it takes."""
    monkeypatch.setattr(lull_module, "MAX_SECONDS", SECONDS)
    monkeypatch.setattr(lull_module, "_BEGIN_SECONDS", SECONDS)
    return Lull()


@contextmanager
def waiter(lull: Lull) -> Iterator[threading.Event]:
    """Wait in a thread; give what is set when the wait is over, as it must be in the end."""
    over = threading.Event()

    def wait() -> None:
        lull.wait()
        over.set()

    thread = threading.Thread(target=wait)
    thread.start()
    yield over
    assert over.wait(SECONDS), "it waits for ever"
    thread.join()


def test_what_follows_a_commit_waits_for_the_next_turn_to_be_at_spark(lull: Lull) -> None:
    with ExitStack() as first:
        first.enter_context(lull.turning())
        with waiter(lull) as over:
            assert not over.wait(SHORT_SECONDS), "the turn that committed is not over"
            first.close()
            assert not over.wait(SHORT_SECONDS), "the next turn is about to begin"
            with lull.turning():
                assert not over.wait(SHORT_SECONDS), "the next turn runs Python"
                with lull.waiting():
                    assert over.wait(SECONDS)


def test_a_turn_that_fails_at_spark_is_no_longer_there(lull: Lull) -> None:
    with pytest.raises(RuntimeError), lull.turning(), lull.waiting():
        raise RuntimeError
    with waiter(lull) as over:
        assert not over.wait(SHORT_SECONDS)
        with lull.turning(), lull.waiting():
            assert over.wait(SECONDS)


def test_without_a_turn_nothing_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull_module, "MAX_SECONDS", SECONDS * 100)
    with waiter(Lull()):
        pass


def test_turns_without_a_pause_are_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull_module, "_BEGIN_SECONDS", SECONDS)
    lull = Lull()
    with lull.turning(), waiter(lull) as over, lull.turning():
        assert over.wait(SECONDS)


def test_publishing_waits_for_a_lull(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull_module, "MAX_SECONDS", SECONDS)
    published = threading.Event()
    beside = Beside(lambda **_: published.set(), lambda: None, Emitting((), {}, lambda: 0))
    with beside.running(lambda: None, lambda _: None), beside.lull.turning():
        beside.after_turn(outbox=True, written=False)
        assert not published.wait(SHORT_SECONDS)
        with beside.lull.waiting():
            assert published.wait(SECONDS)
