"""Queries from outside: they share DuckDB's memory with transactions, which come first.

Promises:
- A transaction that lacks memory can end all of them, and keep others from beginning. The engine's
  own reads are not among them: they are short, and one that fails would end the engine.
- A query waits CLOSE_SECONDS at most for that, and not at all once its database is given up: it
  has to let go of it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

__all__ = ["CLOSE_SECONDS", "OutsideQueries"]

CLOSE_SECONDS = 5.0  # that queries under way get to notice that they were ended
END_SECONDS = 2.0  # the same, while a transaction waits for their memory
_AGAIN_SECONDS = 0.05


class OutsideQueries:
    """The queries from outside on one database. Safe for several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._held_off = 0  # how many transactions keep queries from beginning
        self._is_given_up = False

    @contextmanager
    def running(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Let a query run within, once no transaction holds it off."""
        with self._changed:
            self._changed.wait_for(self._may_begin, timeout=CLOSE_SECONDS)
            self._running.add(cursor)
        try:
            yield
        finally:
            with self._changed:
                self._running.discard(cursor)
                self._changed.notify_all()

    def _may_begin(self) -> bool:
        return not self._held_off or self._is_given_up

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Let no query begin within."""
        with self._changed:
            self._held_off += 1
        try:
            yield
        finally:
            with self._changed:
                self._held_off -= 1
                self._changed.notify_all()

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Let those that are held off go on within, so that they fail: the database is given up."""
        with self._changed:
            self._is_given_up = True
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_given_up = False

    def end(self) -> bool:
        """End every query, and wait END_SECONDS at most for that; return whether there was one."""
        with self._changed:
            were_running = bool(self._running)
            deadline = time.monotonic() + END_SECONDS
            while self._running and time.monotonic() < deadline:
                for cursor in self._running:  # again: one may have been between two statements
                    cursor.interrupt()
                self._changed.wait(timeout=_AGAIN_SECONDS)
            return were_running
