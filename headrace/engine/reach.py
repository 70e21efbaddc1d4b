"""Wait for a log that is out of reach: asked again after ever longer pauses, told once.

A broker that restarts, or a network that is away, stops no engine: what was being done is undone
or done again, and nothing is lost. Wrong credentials are another error, and stop it.
"""

import logging
import threading
import time

from headrace.errors import Unreachable

__all__ = ["Reach"]

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
# While it lasts, it is said again this often.
TELL_EVERY_S = 60.0

logger = logging.getLogger("headrace.engine")


class Reach:
    """Whether one thread's log is in reach; `stop` ends a pause at once."""

    def __init__(self, stop: threading.Event, *, patient: bool = True) -> None:
        self._stop = stop
        self._patient = patient
        self._pause_s = FIRST_PAUSE_S
        self._since_s: float | None = None
        self._told_s = 0.0

    @property
    def lost(self) -> bool:
        """Whether it was out of reach when last asked."""
        return self._since_s is not None

    def wait(self, error: Unreachable) -> None:
        """Pause after a failure, longer each time. Raises the error if not patient."""
        if not self._patient:
            raise error
        now = time.monotonic()
        if self._since_s is None:
            self._since_s = now
            self._told_s = now
            logger.warning("%s Nothing is lost; the engine waits and tries again.", error)
        elif now - self._told_s >= TELL_EVERY_S:
            self._told_s = now
            logger.warning("still waiting after %d s: %s", now - self._since_s, error)
        self._stop.wait(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def found(self) -> None:
        """Say that it answers, if it was out of reach before."""
        if self._since_s is not None:
            logger.warning("in reach again after %.1f s", time.monotonic() - self._since_s)
        self._since_s, self._pause_s = None, FIRST_PAUSE_S
