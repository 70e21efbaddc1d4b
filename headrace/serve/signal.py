"""Tell that something happened: any thread notes it, those who serve readers wait for it.

To note costs one addition while nothing waits.
"""

import asyncio
import threading

__all__ = ["Signal"]


class Signal:
    """Counts how often something happened. `note` is safe in any thread."""

    def __init__(self) -> None:
        self.count = 0
        self._mutex = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def note(self) -> None:
        """Say that it happened."""
        with self._mutex:
            self.count += 1
            waiting, self._waiting = self._waiting, set()
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def after(self, count: int, *, timeout_s: float | None = None) -> int:
        """Return the count when it is more than `count`, or after so long as it is."""
        mine = asyncio.get_running_loop(), asyncio.Event()
        with self._mutex:
            if self.count > count:
                return self.count
            self._waiting.add(mine)
        try:
            async with asyncio.timeout(timeout_s):
                await mine[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._mutex:
                self._waiting.discard(mine)
        return self.count
