"""Publish what waits in the store to the log: every record once, whichever thread comes first.

What of it is in the log already is looked up before it is appended, so the two have to be one step
to every other thread: the threads of all units publish through one `Publisher`, one at a time.
Other processes are fenced by the epoch.
"""

import threading
from collections.abc import Collection

from headrace.log.base import Log
from headrace.sinks.changes import publish_changes
from headrace.sinks.outbox import publish
from headrace.sinks.written import publish_written
from headrace.store.base import Store

__all__ = ["Publisher"]


class Publisher:
    """The way from a store to its log's topics. Safe for several threads."""

    def __init__(self, log: Log, store: Store) -> None:
        self._log = log
        self._store = store
        self._mutex = threading.Lock()

    def publish(
        self,
        epoch: int,
        *,
        outbox: bool = True,
        sinks: Collection[str] | None = None,
        written: bool = True,
        may_wait: bool = False,
    ) -> set[str]:
        """Publish all that waits in the outbox, for sinks, and of streams that are written.

        `sinks` are topics; None: those of all sinks. Returns those of sinks that there was
        something for. With `may_wait`, what sinks have may be noted by `settle`, or by one of the
        next calls. Unreachable, ProducerFenced.
        """
        with self._mutex:
            if outbox:
                publish(self._log, self._store, epoch)
            told: set[str] = set()
            if sinks is None or sinks:
                told = publish_changes(self._log, self._store, epoch, sinks, may_wait=may_wait)
            if written:
                publish_written(self._log, self._store, epoch)
            return told

    def settle(self) -> None:
        """Note all that sinks have."""
        with self._mutex:
            self._store.told({})
