"""The thread that shows a member's signs of life, however long the work between polls takes."""

import threading
from collections.abc import Callable

__all__ = ["Heartbeat"]


class Heartbeat:
    """Calls `beat` again and again until it says False or `stop` is called.

    What `beat` raises is kept for `take_failure`, and tried again: the disk may have room again
    before the session ends.
    """

    def __init__(self, beat: Callable[[], bool], *, interval_s: float, name: str) -> None:
        self._beat = beat
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                if not self._beat():
                    return
            except Exception as error:  # noqa: BLE001 - shown at the member's next poll
                self._failure = error

    def take_failure(self) -> Exception | None:
        """Return what the last failed beat raised, once."""
        failure, self._failure = self._failure, None
        return failure

    def stop(self) -> None:
        """End the thread; returns when it has ended."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
