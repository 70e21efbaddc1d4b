"""Publish rows that wait in the store, page by page, and forget each page when it is in the log.

A crash between the two leaves the page waiting; whoever publishes it again leaves out what the log
has (`Waiting.append` looks that up).
"""

from typing import Protocol

import pyarrow as pa

from headrace.store.base import Snapshot, Store

__all__ = ["Waiting", "publish_pages"]

# What is held in memory at once, however many rows wait.
_PAGE_ROWS = 8_192
_PAGE_BYTES = 16 << 20


class Waiting(Protocol):
    """Rows of one kind that wait in the store, in the order of their numbers."""

    def read(self, snapshot: Snapshot, *, max_rows: int, max_bytes: int) -> pa.Table:
        """Return the first rows, none if none waits."""
        ...

    def append(self, rows: pa.Table) -> int:
        """Append rows to their topics, and return how many were not there. ProducerFenced."""
        ...

    def forget(self, rows: pa.Table) -> None:
        """Let the store drop rows that are in the log."""
        ...


def publish_pages(store: Store, waiting: Waiting) -> int:
    """Publish all rows that wait, and return how many were appended. ProducerFenced."""
    appended = 0
    while True:
        with store.open() as snapshot:
            found = waiting.read(snapshot, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES)
        if not found.num_rows:
            return appended
        rows = found.combine_chunks()
        appended += waiting.append(rows)
        waiting.forget(rows)
