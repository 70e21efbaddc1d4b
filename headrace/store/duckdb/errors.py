"""Errors of DuckDB in the words of the house: none of its own leaves this room."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from headrace.errors import DiskFull, StoreError

__all__ = ["damage_of", "lacks_memory", "translate", "translated"]

# What the system says when nothing more can be written; DuckDB passes it on within its own text.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_MEMORY = "failed to allocate data"
# What DuckDB says of a file that is not as it wrote it.
_DAMAGED = (
    "Corrupt database file",
    "not a valid DuckDB database file",
    "Could not read enough bytes",
    "Serialization Error",
)


def damage_of(text: str) -> StoreError | None:
    """Return the error, with its cure, if what DuckDB said means that its file is damaged."""
    if not any(sign in text for sign in _DAMAGED):
        return None
    return StoreError(
        f"the store is damaged: {text}. Nothing is lost, since the log has every record: stop the "
        f"engine, move the store's files away (`mkdir damaged && mv .headrace/store.duckdb* "
        f"damaged/`, unless headrace.toml names another place), and `headrace run` builds them "
        f"anew from the log."
    )


def translate(error: duckdb.Error) -> StoreError | DiskFull:
    """Return what an error of DuckDB means to a caller of the store."""
    text = str(error)
    if any(sign in text for sign in _FULL):
        return DiskFull(
            f"the store's disk is full and nothing of this was committed: {text}. Free some space "
            f"and run again: the turn is read from the log once more."
        )
    return damage_of(text) or StoreError(f"the store failed: {text}")


@contextmanager
def translated() -> Iterator[None]:
    """Raise what DuckDB raises as one of our own errors."""
    try:
        yield
    except duckdb.Error as error:
        raise translate(error) from error


def lacks_memory(error: StoreError) -> bool:
    """Whether a translated error says that the store's memory does not suffice."""
    cause = error.__cause__
    # A COMMIT that lacks memory says so as a failure of the transaction.
    return isinstance(cause, duckdb.OutOfMemoryException) or _NO_MEMORY in str(cause)
