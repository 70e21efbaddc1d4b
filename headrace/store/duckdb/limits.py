"""Time limits of queries: one thread for all, which ends what runs for too long.

A thread for each query would cost it more than a keyed read takes: it has to be scheduled before
the query begins, and again before it is done.
"""

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

__all__ = ["Limited", "limited"]

_AGAIN_SECONDS = 0.005


@dataclass(eq=False)
class Limited:
    """A query under way; `expired` says that it was ended for its time."""

    connection: duckdb.DuckDBPyConnection
    ends_at: float
    expired: bool = False


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queries: set[Limited] = set()
        self._wakes_at: float | None = None
        self._thread: threading.Thread | None = None
        self._stops = False

    def add(self, query: Limited) -> None:
        with self._changed:
            self._queries.add(query)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="query-limit", daemon=True)
                self._wakes_at = query.ends_at
                self._thread.start()
            elif self._wakes_at is None or query.ends_at < self._wakes_at:
                self._wakes_at = query.ends_at
                self._changed.notify()

    def remove(self, query: Limited) -> None:
        # Under the lock: a query is never ended when it is done, which would end the next one.
        with self._changed:
            self._queries.discard(query)

    def _run(self) -> None:
        with self._changed:
            while not self._stops:
                self._changed.wait(self._end_expired(time.monotonic()))

    def stop(self) -> None:
        """End the thread: DuckDB complains of one that is left when the process ends."""
        with self._changed:
            self._stops = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _end_expired(self, now: float) -> float | None:
        """End what ran for too long; return when to look again."""
        for query in self._queries:
            if query.ends_at <= now:
                query.expired = True
                # Again and again: an interrupt that comes between two steps of a query is
                # forgotten by the next step.
                query.connection.interrupt()
                query.ends_at = now + _AGAIN_SECONDS
        self._wakes_at = min((each.ends_at for each in self._queries), default=None)
        return None if self._wakes_at is None else self._wakes_at - now


_watchdog = _Watchdog()
atexit.register(_watchdog.stop)


@contextmanager
def limited(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[Limited]:
    """End what a connection runs within after some seconds; it raises then."""
    query = Limited(connection, time.monotonic() + seconds)
    _watchdog.add(query)
    try:
        yield query
    finally:
        _watchdog.remove(query)
