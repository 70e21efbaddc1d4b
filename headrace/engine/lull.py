"""When to publish what was committed: while turns wait for Spark.

Python runs one thread at a time. Publishing that begins right after a commit holds up the Python of
the next turn: its plan, its read, its stamps. A little later that turn waits for Spark, and then
publishing takes none of its time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["MAX_SECONDS", "Lull"]

#: The longest wait: several units may take turns that leave no lull between them.
MAX_SECONDS = 0.025
# Within this time after a commit the next turn begins, if records wait for one.
_BEGIN_SECONDS = 0.002


class Lull:
    """Knows how many turns run Python. Safe for several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = 0
        self._begun = 0  # turns, ever

    @contextmanager
    def turning(self) -> Iterator[None]:
        """Take a turn within."""
        with self._changed:
            self._begun += 1
        with self._shifted(1):
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait within, for Spark or for another thread; inside of a turn."""
        with self._shifted(-1):
            yield

    @contextmanager
    def _shifted(self, by: int) -> Iterator[None]:
        self._shift(by)
        try:
            yield
        finally:
            self._shift(-by)

    def _shift(self, by: int) -> None:
        with self._changed:
            self._busy += by
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when no turn runs Python, and none is about to; or when it has been long."""
        end = time.monotonic() + MAX_SECONDS
        with self._changed:
            begun = self._begun
            # The turn that has committed ends, and the next one begins.
            self._wait_until(lambda: self._busy <= 0 or self._begun > begun, end)
            soon = min(end, time.monotonic() + _BEGIN_SECONDS)
            self._wait_until(lambda: self._begun > begun, soon)
            self._wait_until(lambda: self._busy <= 0, end)

    def _wait_until(self, test: Callable[[], bool], end: float) -> None:
        self._changed.wait_for(test, timeout=max(0.0, end - time.monotonic()))
