"""Hear Ctrl-C and SIGTERM without being torn out of the work: they set an event.

The second one ends the process at once. That loses nothing either: what is not committed is read
from the log again.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["INTERRUPTED", "Interrupts", "heed_interrupts"]

INTERRUPTED = 130


class Interrupts:
    """`stop` is set by the first signal; `exit_code` is what the process then returns."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._signal: int | None = None

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C; 0 otherwise, for SIGTERM is how services are asked to end."""
        return INTERRUPTED if self._signal == signal.SIGINT else 0

    @property
    def came(self) -> bool:
        """Whether a signal came."""
        return self._signal is not None

    def hear(self, number: int, _: FrameType | None) -> None:
        """Take note of a signal."""
        if self._signal is not None:
            os._exit(INTERRUPTED)
        self._signal = number
        self.stop.set()
        # Not through sys.stderr: the signal may have come in the middle of writing to it.
        os.write(2, b"\nending after what is under way; once more ends at once\n")


@contextmanager
def heed_interrupts() -> Iterator[Interrupts]:
    """Take the two signals over while the block runs."""
    interrupts = Interrupts()
    before = {
        number: signal.signal(number, interrupts.hear) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
