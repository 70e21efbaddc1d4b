"""Waiting for records of an embedded log, whichever process appends them.

Every append ends with a write to the partition's file `ends`, and the system tells of that write
(inotify, on Linux). A watch is armed for one event per file: a reader that is busy while thousands
of batches come finds one event for each of its partitions.

Promises, besides those of `base.Watch`:
- The ends are read after a file's watch is armed, so nothing falls between the two.
- Where the system has no such events, or no more of them to give, files are looked at every
  MAX_PAUSE_S, sooner after something came.
Not promised: events of appends on another machine that shares the folder.
"""

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import UsageError
from headrace.log.base import Partition
from headrace.log.embedded.ends import read_ends

if TYPE_CHECKING:
    from asyncinotify import Inotify

__all__ = ["EmbeddedWatch"]

logger = logging.getLogger("headrace.log")

# Between looks, without events. A look at 40 partitions takes 0.3 ms: 1.5 % of a core.
MIN_PAUSE_S = 0.001
MAX_PAUSE_S = 0.02
_NO_END = -1


class EmbeddedWatch:
    """A `Watch` over the folders that `folder` tells. `events=False`: looks only, for tests."""

    def __init__(self, folder: Callable[[Partition], Path], *, events: bool = True) -> None:
        self._folder = folder
        self._bell, self._ringer = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ringer, False)
        self._mutex = threading.Lock()
        self._closed = False
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        self._inotify = _open_inotify() if events else None
        if self._inotify is not None:
            self._poll.register(self._inotify.fd, select.POLLIN)
        self._armed: dict[int, Partition] = {}
        self._ends: dict[Partition, int] = {}  # of those that are armed: what the file said last

    def wait(self, positions: Mapping[Partition, int], *, timeout_s: float) -> bool:
        """Wait until a partition may hold a record at its position or later."""
        deadline = time.monotonic() + timeout_s
        pause_s = MIN_PAUSE_S
        while True:
            if self._closed:
                raise UsageError("this watch is closed; open another one.")
            told = self._arm(positions)
            if any(self._end(place) > offset for place, offset in positions.items()):
                self._heard()
                return True
            left_s = max(0.0, deadline - time.monotonic())
            if not told:
                left_s, pause_s = min(left_s, pause_s), min(2 * pause_s, MAX_PAUSE_S)
            self._poll.poll(left_s * 1000)
            if self._heard():
                return True
            if time.monotonic() >= deadline:
                # What came just now is found by the look that follows.
                return False

    def _arm(self, positions: Mapping[Partition, int]) -> bool:
        """Watch every file, and say whether the system will tell of all of them."""
        if self._inotify is None:
            return False
        from asyncinotify import Mask

        mask = Mask.MODIFY | Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.ONESHOT
        watched = set(self._armed.values())
        for place in positions:
            if place not in watched:
                try:
                    watch = self._inotify.add_watch(self._folder(place) / "ends", mask)
                except FileNotFoundError:
                    continue  # the topic is gone, or about to be: who looks at the log is told
                except OSError as error:
                    self._do_without_events(error)
                    return False
                self._armed[watch.wd] = place
                self._ends[place] = self._read(place)
        return True

    def _do_without_events(self, error: OSError) -> None:
        logger.warning(
            "%s: the system does not tell of changes here (%s), so files are looked at every %d "
            "ms. To wait without looking, raise fs.inotify.max_user_watches.",
            self._folder(Partition("*", 0)).parent.parent, error.strerror, MAX_PAUSE_S * 1000,
        )  # fmt: skip
        assert self._inotify is not None
        self._poll.unregister(self._inotify.fd)
        self._inotify.close()
        self._inotify = None
        self._armed.clear()
        self._ends.clear()

    def _end(self, place: Partition) -> int:
        known = self._ends.get(place)
        return self._read(place) if known is None else known

    def _read(self, place: Partition) -> int:
        ends = read_ends(self._folder(place) / "ends")
        return _NO_END if ends is None else ends.acknowledged.offset

    def _heard(self) -> bool:
        """Take the events that have come; say whether one of them is a call of `wake`."""
        if self._inotify is not None:
            while (event := self._inotify.sync_get()) is not None:
                place = self._armed.pop(event.watch.wd, None) if event.watch else None
                if place is not None:
                    self._ends.pop(place, None)
        try:
            return bool(os.read(self._bell, 4096))
        except BlockingIOError:
            return False

    def wake(self) -> None:
        """Let the wait under way, or else the next one, return at once."""
        with self._mutex:
            if not self._closed:
                try:
                    os.write(self._ringer, b"!")
                except BlockingIOError:
                    return  # the pipe is full of calls that were not heard yet

    def close(self) -> None:
        """Release the descriptors."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            if self._inotify is not None:
                self._inotify.close()
            os.close(self._bell)
            os.close(self._ringer)


def _open_inotify() -> "Inotify | None":
    """Return a queue of events, None where the system has none left, or none at all."""
    try:
        from asyncinotify import Inotify  # takes 20 ms to load: it looks for the C library

        return Inotify(sync_timeout=0)
    except (ImportError, OSError, RuntimeError) as error:
        logger.info("no events of the file system, so files are looked at: %s", error)
        return None
