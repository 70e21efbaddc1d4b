"""Syncing, soon after, what was appended with `acks=1`: steps 5 and 6 of appender.py.

One thread per log does it, started when there is something to do; it ends when there was nothing
for IDLE_S, so a log that nobody closes leaves none behind.

Promises:
- The sync begins at once, or when those before it are done; one serves all that was appended to
  its partition by then. So at most one entry per partition waits, and since a new segment begins
  with a sync of the old one, at most one segment of each partition is not synced.
- A sync that fails is logged, and raised by the next append to the partition, or by `close`.
- `close` returns when everything is synced, or has failed, and the thread is gone.
Not promised: that a process that ends without `close` has synced everything. What it wrote is in
the system's hands, and is shown by whoever looks next.
"""

import logging
import threading
from collections.abc import Iterable
from typing import NamedTuple

from headrace.errors import DiskFull, LogError
from headrace.log.base import Partition
from headrace.log.embedded.appender import Appender, Written

__all__ = ["BackgroundSync"]

IDLE_S = 1.0

logger = logging.getLogger("headrace.log")


class _Waiting(NamedTuple):
    partition: Partition
    appender: Appender
    written: Written


class BackgroundSync:
    """What a log has yet to sync, and the thread that does. Safe for several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()  # whose lock may be taken again within
        # By `cuts` too: an entry from before a cut must not vanish behind one from after it.
        self._waiting: dict[tuple[Appender, int], _Waiting] = {}
        self._syncing = 0
        self._failures: dict[Appender, DiskFull | LogError] = {}
        self._works = False
        self._closed = False

    def hand_over(self, partition: Partition, appender: Appender, written: Written) -> None:
        """Sync, soon, what was written; at once if `close` was faster. LogError, DiskFull."""
        with self._changed:
            closed = self._closed
            if not closed:
                # The thread says itself that it works, so that an interrupt here leaves no doubt.
                if not self._works:
                    threading.Thread(target=self._work, name="headrace-sync", daemon=True).start()
                before = self._waiting.get((appender, written.cuts))
                if before is None or before.written.end < written.end:
                    entry = _Waiting(partition, appender, written)
                    self._waiting[appender, written.cuts] = entry
                self._changed.notify_all()
        if closed:
            appender.make_durable(written)

    def check(self, appenders: Iterable[Appender]) -> None:
        """Raise, once, what failed for one of these. DiskFull, LogError."""
        if not self._failures:  # no lock where nothing ever failed
            return
        with self._changed:
            for appender in appenders:
                if (failure := self._failures.pop(appender, None)) is not None:
                    raise type(failure)(
                        f"{failure} Nothing of this append was stored."
                    ) from failure.__cause__

    def forget(self, appender: Appender) -> None:
        """Drop what concerns a topic that was deleted: nobody misses its records."""
        with self._changed:
            self._failures.pop(appender, None)
            for key in [key for key in self._waiting if key[0] is appender]:
                del self._waiting[key]

    def close(self) -> None:
        """Sync what is left, here if the thread has not begun it. DiskFull, LogError: once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        while (entry := self._take()) is not None:
            self._sync(entry)
        with self._changed:
            self._changed.wait_for(lambda: not self._syncing and not self._works)
            failures, self._failures = list(self._failures.values()), {}
        if failures:
            more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            raise type(failures[0])(f"{failures[0]}{more}") from failures[0].__cause__

    def _work(self) -> None:
        with self._changed:
            if self._works:
                return
            self._works = True
        while (entry := self._wait_and_take()) is not None:
            self._sync(entry)

    def _wait_and_take(self) -> _Waiting | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, IDLE_S)
            if not self._waiting:
                # Said under the same lock, or what is handed over now would find nobody.
                self._works = False
                self._changed.notify_all()
            return self._take()

    def _take(self) -> _Waiting | None:
        with self._changed:
            if not self._waiting:
                return None
            self._syncing += 1
            return self._waiting.pop(next(iter(self._waiting)))

    def _sync(self, entry: _Waiting) -> None:
        partition, appender, written = entry
        failure: DiskFull | LogError | None = None
        try:
            appender.make_durable(written)
        except BaseException as error:  # noqa: BLE001 - whoever appends next must hear of it
            kind = DiskFull if isinstance(error, DiskFull) else LogError
            failure = kind(
                f"{partition}: records before offset {written.end.offset}, appended with acks=1, "
                f"could not be synced and may be lost ({error.__cause__ or error}). Append them "
                f"again, with acks='all' if they must not get lost."
            )
            failure.__cause__ = error
        if failure is not None and not appender.exists():
            failure = None  # the topic was deleted, and these records with it
        with self._changed:
            self._syncing -= 1
            if failure is not None:
                self._failures[appender] = failure
            self._changed.notify_all()
        if failure is not None:
            logger.error("%s", failure)
