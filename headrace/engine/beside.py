"""Publish beside turns: what a turn committed goes to the log while the next one reads and folds.

A commit holds all that is to be published, so publishing can follow it in a thread of its own. What
is published, and in which order, is the store's and the publisher's business; here is only when:
as soon as the next turn waits for Spark.

Promises:
- While no thread runs, everything is published before the call returns. So do runs that end by
  themselves, audits, and tests that take turns one by one.
- At most `MAX_TURNS_BEHIND` turns are committed and not published. A turn that would be one more
  waits, so what waits in the store stays as small as the changes of a few turns.
- A log out of reach is told to every thread that takes turns, until publishing succeeds again: they
  wait for it and try again. Any other failure ends the engine.
- The thread ends when all is published that it was asked for, unless the engine failed.
- What sinks have been told is noted in the store now and then, after SETTLE_SECONDS without a turn
  and when the thread ends: to note it after every turn would hold up the commit of the next.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from headrace.engine.lull import Lull
from headrace.engine.turn.emitting import NEVER_US, Emitting
from headrace.errors import Unreachable

__all__ = ["MAX_TURNS_BEHIND", "Beside"]

MAX_TURNS_BEHIND = 2
SETTLE_SECONDS = 1.0


class Publish(Protocol):
    """Publishes what waits, and to the sinks that are due."""

    def __call__(self, *, outbox: bool, written: bool, may_wait: bool = False) -> None:
        """Publish entries of the outbox and rows of written streams, where there are some.

        With `may_wait` what sinks have may be noted later. Unreachable, ProducerFenced.
        """


class _Asked(NamedTuple):
    """What is to be published besides sinks, and how many turns asked for it so far."""

    outbox: bool
    written: bool
    turns: int


class Beside:
    """Publishes in line or, while `running`, in a thread. Safe for several threads.

    `settle` notes all that sinks have; `emitting` tells which of them are due.
    """

    def __init__(self, publish: Publish, settle: Callable[[], None], emitting: Emitting) -> None:
        self._publish = publish
        self._settle = settle
        self._emitting = emitting
        self._changed = threading.Condition()
        self._is_running = False
        self._is_stopping = False
        self._is_failed = False
        self._is_asked = False
        self._outbox = self._written = False  # what is asked for besides sinks
        self._turns_asked = self._turns_done = 0
        self._begun = self._ended = 0  # tries to publish all that was asked for
        self._failure: BaseException | None = None  # of the last try
        self.lull = Lull()

    def due_in_us(self) -> int:
        """Return in how long a sink is to be told by a thread that takes turns."""
        # What is under way is followed by what is due: no other thread has to come for it.
        busy = self._is_running and (self._is_asked or self._begun > self._ended)
        return NEVER_US if busy else self._emitting.due_in_us()

    @property
    def turns_behind(self) -> int:
        """How many turns are committed whose publishing has not ended."""
        return self._turns_asked - self._turns_done

    def after_turn(self, *, outbox: bool, written: bool) -> None:
        """Publish what a turn committed, now or soon. Unreachable, ProducerFenced."""
        if not self._is_running:
            self._publish(outbox=outbox, written=written)
            return
        if not (outbox or written or self._emitting.due()):
            return
        with self._changed:
            self._turns_asked += 1
            self._ask(outbox=outbox, written=written)
            if not self._is_level():
                with self.lull.waiting():
                    self._changed.wait_for(self._is_level)
            self._raise_failure()

    def _is_level(self) -> bool:
        return self.turns_behind <= MAX_TURNS_BEHIND or self._failure is not None

    def soon(self, *, outbox: bool = False, written: bool = False) -> None:
        """Publish what waits, now or soon, whatever is under way. Unreachable, ProducerFenced."""
        if not self._is_running:
            self._publish(outbox=outbox, written=written)
            return
        with self._changed:
            self._ask(outbox=outbox, written=written)

    def now(self) -> None:
        """Publish all that waits, and return when it is done. Unreachable, ProducerFenced."""
        if not self._is_running:
            self._publish(outbox=True, written=True)
            return
        with self._changed:
            if isinstance(self._failure, Unreachable):
                self._failure = None  # this is the next try
            self._raise_failure()
            wanted = self._begun + 1
            self._ask(outbox=True, written=True)
            self._changed.wait_for(lambda: self._ended >= wanted)
            self._raise_failure()

    def check(self) -> None:
        """Raise what publishing failed with, unless it has succeeded since."""
        with self._changed:
            self._raise_failure()

    def _ask(self, *, outbox: bool, written: bool) -> None:
        self._outbox |= outbox
        self._written |= written
        self._is_asked = True
        self._changed.notify_all()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def running(
        self, wake: Callable[[], None], end: Callable[[BaseException], None]
    ) -> Iterator[None]:
        """Publish in a thread within; all that it was asked for is published afterwards.

        Every other thread that takes turns has to end within. `wake` is called when threads that
        wait should look again, `end` with what ends the engine. Where the block fails, or the log
        is out of reach, the rest is published at the next start.
        """
        thread = threading.Thread(target=self._run, args=(wake, end), name="publishing")
        self._is_running = True
        thread.start()
        try:
            yield
        except BaseException:
            with self._changed:
                self._is_asked, self._is_failed = False, True
            raise
        finally:
            with self._changed:
                self._is_stopping = True
                self._changed.notify_all()
            thread.join()
            self._is_running = self._is_stopping = self._is_asked = self._is_failed = False
            self._turns_done, self._failure = self._turns_asked, None

    def _run(self, wake: Callable[[], None], end: Callable[[BaseException], None]) -> None:
        is_settled = True
        while True:
            asked = self._take(timeout_s=None if is_settled else SETTLE_SECONDS)
            try:
                if asked is not None:
                    self._publish_asked(asked, wake)
                elif not is_settled and not self._is_failed:
                    self._settle()
            except BaseException as error:  # noqa: BLE001 - the threads that take turns raise it
                end(error)
                return
            is_settled = asked is None
            with self._changed:
                if is_settled and self._is_stopping and not self._is_asked:
                    return

    def _take(self, *, timeout_s: float | None) -> _Asked | None:
        """Return what is to be published; None: the time has passed, or the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_asked or self._is_stopping, timeout=timeout_s)
            if not self._is_asked:
                return None
            asked = _Asked(self._outbox, self._written, self._turns_asked)
            self._is_asked = self._outbox = self._written = False
            self._begun += 1
            return asked

    def _publish_asked(self, asked: _Asked, wake: Callable[[], None]) -> None:
        """Publish, and tell all threads how that ended. Raises all but Unreachable."""
        failure: BaseException | None = None
        try:
            if self.turns_behind < MAX_TURNS_BEHIND:  # else the next turn may wait for this
                self.lull.wait()
            self._publish(outbox=asked.outbox, written=asked.written, may_wait=True)
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        with self._changed:
            self._ended += 1
            self._failure = failure
            if failure is None:
                self._turns_done = asked.turns
            else:
                self._outbox |= asked.outbox
                self._written |= asked.written
            self._changed.notify_all()
        if failure is not None and not isinstance(failure, Unreachable):
            raise failure
        if failure is not None or self._emitting.due_in_us() < NEVER_US:
            wake()
