"""Errors of DuckDB in the words of the house: none of its own leaves this room."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from headrace.errors import DiskFull, StoreError

__all__ = ["translate", "translated"]

# What the system says when nothing more can be written; DuckDB passes it on within its own text.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


def translate(error: duckdb.Error) -> StoreError | DiskFull:
    """Return what an error of DuckDB means to a caller of the store."""
    text = str(error)
    if any(sign in text for sign in _FULL):
        return DiskFull(
            f"the store's disk is full and nothing of this was committed: {text}. Free some space "
            f"and run again: the turn is read from the log once more."
        )
    return StoreError(f"the store failed: {text}")


@contextmanager
def translated() -> Iterator[None]:
    """Raise what DuckDB raises as one of our own errors."""
    try:
        yield
    except duckdb.Error as error:
        raise translate(error) from error
