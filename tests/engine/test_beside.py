"""Publishing beside turns: when, how far behind, and what a failure does. Without an engine.

Method: publishing is a function of the test that says what it was asked for, waits or fails.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headrace.engine import beside as beside_module
from headrace.engine.beside import MAX_TURNS_BEHIND, Beside
from headrace.engine.turn.emitting import Emitting
from headrace.errors import ProducerFenced, StoreError, Unreachable
from headrace.faults import Crash

SECONDS = 30.0


class Publishing:
    """What is published, and how."""

    def __init__(self) -> None:
        self.asked: list[tuple[bool, bool]] = []
        self.before: Callable[[], None] = lambda: None
        self.woken = threading.Event()
        self.ended: list[BaseException] = []
        self.behind: list[int] = []
        self.settled = threading.Event()
        self.beside = Beside(self, self.settled.set, Emitting((), {}, lambda: 0))

    def __call__(self, *, outbox: bool, written: bool, may_wait: bool = False) -> None:
        self.before()
        self.asked.append((outbox, written))
        self.behind.append(self.beside.turns_behind)

    @contextmanager
    def running(self) -> Iterator[Beside]:
        with self.beside.running(self.woken.set, self.ended.append):
            yield self.beside


@pytest.fixture
def publishing() -> Publishing:
    return Publishing()


def wait(event: threading.Event) -> None:
    assert event.wait(SECONDS), "it does not happen"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.001)


def test_without_a_thread_everything_is_published_at_once(publishing: Publishing) -> None:
    publishing.beside.after_turn(outbox=True, written=False)
    publishing.beside.soon(written=True)
    publishing.beside.now()
    assert publishing.asked == [(True, False), (False, True), (True, True)]


def test_a_turn_does_not_wait_for_what_it_committed(publishing: Publishing) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        wait(go_on)

    publishing.before = hold
    with publishing.running() as beside:
        beside.after_turn(outbox=True, written=False)
        wait(begun)
        beside.after_turn(outbox=False, written=True)
        assert publishing.asked == []
        assert beside.turns_behind == MAX_TURNS_BEHIND
        go_on.set()
    assert publishing.asked == [(True, False), (False, True)]
    assert beside.turns_behind == 0


def test_turns_wait_when_publishing_is_behind(publishing: Publishing) -> None:
    go_on, done = threading.Event(), threading.Event()
    publishing.before = lambda: wait(go_on)

    def take_turns() -> None:
        for _ in range(20):
            publishing.beside.after_turn(outbox=True, written=False)
        done.set()

    with publishing.running() as beside:
        turns = threading.Thread(target=take_turns)
        turns.start()
        until(lambda: beside.turns_behind > MAX_TURNS_BEHIND)
        assert not done.wait(0.05)
        assert beside.turns_behind == MAX_TURNS_BEHIND + 1
        go_on.set()
        wait(done)
        turns.join()
    # The last one waits for its own end, so one more than the bound is the most there ever is.
    assert max(publishing.behind) <= MAX_TURNS_BEHIND + 1
    assert beside.turns_behind == 0


def test_what_is_asked_for_meanwhile_is_published_together(publishing: Publishing) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        wait(go_on)

    publishing.before = hold
    with publishing.running() as beside:
        beside.soon()
        wait(begun)
        beside.soon(outbox=True)
        beside.soon(written=True)
        go_on.set()
    assert publishing.asked == [(False, False), (True, True)]


def test_a_turn_that_has_nothing_to_publish_does_not_ask(publishing: Publishing) -> None:
    with publishing.running() as beside:
        beside.after_turn(outbox=False, written=False)
    assert publishing.asked == []


def test_a_log_out_of_reach_is_told_until_publishing_succeeds(publishing: Publishing) -> None:
    def away() -> None:
        raise Unreachable("the log is out of reach")

    publishing.before = away
    with publishing.running() as beside:
        beside.soon(outbox=True)
        wait(publishing.woken)
        for _ in range(2):
            with pytest.raises(Unreachable):
                beside.check()
        with pytest.raises(Unreachable):
            beside.now()
        with pytest.raises(Unreachable):
            beside.after_turn(outbox=False, written=True)
        publishing.before = lambda: None
        beside.now()
        beside.check()
    assert publishing.asked[0] == (True, True)
    assert publishing.ended == []


def test_what_could_not_be_published_is_asked_for_again(publishing: Publishing) -> None:
    def away() -> None:
        publishing.before = lambda: None
        raise Unreachable("the log is out of reach")

    publishing.before = away
    with publishing.running() as beside:
        beside.soon(outbox=True)
        wait(publishing.woken)
        beside.soon()
    assert publishing.asked == [(True, False)]


@pytest.mark.parametrize("failure", [Crash("sink_before_append"), ProducerFenced("taken over")])
def test_any_other_failure_ends_the_engine(publishing: Publishing, failure: BaseException) -> None:
    def fail() -> None:
        raise failure

    publishing.before = fail
    with publishing.running() as beside:
        beside.soon(outbox=True)
        until(lambda: bool(publishing.ended))
        for ask in (
            beside.check,
            beside.now,
            lambda: beside.after_turn(outbox=True, written=False),
        ):
            with pytest.raises(type(failure)):
                ask()
    assert publishing.ended == [failure]
    assert publishing.asked == []


def test_an_engine_that_fails_publishes_no_more(publishing: Publishing) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        wait(go_on)

    def fail(beside: Beside) -> None:
        beside.soon(outbox=True)
        wait(begun)
        beside.soon(written=True)
        threading.Timer(0.05, go_on.set).start()
        raise Crash("after_fold")

    publishing.before = hold
    with pytest.raises(Crash), publishing.running() as beside:
        fail(beside)
    assert publishing.asked == [(True, False)]


def test_what_sinks_have_is_noted_in_a_pause_and_in_the_end(
    publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside_module, "SETTLE_SECONDS", 0.01)
    with publishing.running() as beside:
        assert not publishing.settled.wait(0.05), "there is nothing to note yet"
        beside.after_turn(outbox=True, written=False)
        wait(publishing.settled)
        monkeypatch.setattr(beside_module, "SETTLE_SECONDS", SECONDS)
        beside.after_turn(outbox=True, written=False)
        until(lambda: len(publishing.asked) == 2)
        publishing.settled.clear()
    assert publishing.settled.is_set()


def test_an_engine_that_failed_notes_nothing_more(publishing: Publishing) -> None:
    def fail() -> None:
        with publishing.running() as beside:
            beside.after_turn(outbox=True, written=False)
            until(lambda: len(publishing.asked) == 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not publishing.settled.is_set()


def test_what_cannot_be_noted_ends_the_engine(publishing: Publishing) -> None:
    def fail() -> None:
        raise StoreError("the store is damaged")

    publishing.beside._settle = fail
    with publishing.running() as beside:
        beside.after_turn(outbox=True, written=False)
    assert [str(each) for each in publishing.ended] == ["the store is damaged"]
