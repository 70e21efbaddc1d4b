"""Let units wait for what there is to do: records in the log, another unit's turn, or the time.

Promises:
- A unit that waits goes on as soon as there is a record that it may read, another unit has taken a
  turn or is gone, a marker or a sink is due, or the engine is told to stop.
- Whatever no one tells is found `poll_ms` later at most: the log is looked at that often anyway.
So an engine without records costs next to nothing (bench/idle.py).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.engine.turn.planning import Planner
from headrace.engine.unit import Unit
from headrace.log.base import Log, Watch

__all__ = ["Waiting"]

# What is due sooner is waited for so long all the same, so that no error of ours can spin.
_SHORTEST_S = 0.005


class Waiting:
    """The units that wait, each in its own thread. `stop` ends every wait."""

    def __init__(self, log: Log, planner: Planner, stop: threading.Event, *, poll_s: float) -> None:
        self._log = log
        self._planner = planner
        self._stop = stop
        self._poll_s = poll_s
        self._mutex = threading.Lock()
        self._watches: dict[str, Watch] = {}

    @contextmanager
    def heeding_stop(self) -> Iterator[None]:
        """End every wait when the engine is told to stop; the block ends with `stop` set."""

        def heed() -> None:
            self._stop.wait()
            self.wake_all()

        thread = threading.Thread(target=heed, name="stop")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    @contextmanager
    def waits_of(self, unit: Unit) -> Iterator[None]:
        """Let this thread wait for a unit; the others are told when it is done with it."""
        watch = self._log.watch()
        with self._mutex:
            self._watches[unit.name] = watch
        try:
            yield
        finally:
            with self._mutex:
                del self._watches[unit.name]
            watch.close()
            self.wake_others(unit)

    def wait(self, unit: Unit) -> None:
        """Return when there may be something to do for a unit."""
        if self._stop.is_set():
            return
        due_s = self._planner.due_in_us(unit) / 1_000_000
        timeout_s = max(_SHORTEST_S, min(self._poll_s, due_s))
        self._watches[unit.name].wait(self._planner.awaited(unit), timeout_s=timeout_s)

    def wake_others(self, unit: Unit) -> None:
        """Let the other units look at what this one has changed."""
        self._wake(lambda name: name != unit.name)

    def wake_all(self) -> None:
        """Let every unit look at what it is told."""
        self._wake(lambda _: True)

    def _wake(self, concerns: Callable[[str], bool]) -> None:
        with self._mutex:
            for name, watch in self._watches.items():
                if concerns(name):
                    watch.wake()
