"""Errors of DuckDB in the words of the house: none of its own leaves this room."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from headrace.errors import DiskFull, StoreError

__all__ = ["damage_of", "damaged", "is_given_up", "lacks_memory", "translate", "translated"]

# What the system says when nothing more can be written; DuckDB passes it on within its own text.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
# What DuckDB says of its memory, whatever it cannot do without more: "(31.7 MiB/28.6 MiB used)".
_NO_MEMORY = re.compile(r"\([\d.]+ \w+/[\d.]+ \w+ used\)")
# What DuckDB says of a file that is not as it wrote it: the database, or its write-ahead log.
_DAMAGED = (
    "Corrupt database file",
    "not a valid DuckDB database file",
    "Could not read enough bytes",
    "Serialization Error",
    "Failure while replaying WAL file",
)


def damage_of(text: str) -> StoreError | None:
    """Return the error, with its cure, if what DuckDB said means that its file is damaged."""
    if _NO_MEMORY.search(text) or not any(sign in text for sign in _DAMAGED):
        return None
    return damaged(text)


def damaged(what: str) -> StoreError:
    """Return the error of a store that is damaged, with its cure."""
    return StoreError(
        f"the store is damaged: {what}. Stop the engine, move the store's files away (`mkdir "
        f"damaged && mv .headrace/store.duckdb* damaged/`, unless headrace.toml names another "
        f"place), and `headrace run` builds the tables again from the log. Rows made of records "
        f"that the log's retention has removed cannot be built again."
    )


def translate(error: duckdb.Error) -> StoreError | DiskFull:
    """Return what an error of DuckDB means to a caller of the store."""
    text = str(error)
    if any(sign in text for sign in _FULL):
        return DiskFull(
            f"the store's disk is full and nothing of this was committed: {text}. Free some space "
            f"and run again: the turn is read from the log once more."
        )
    if isinstance(error, duckdb.FatalException):
        return StoreError(
            f"DuckDB has given up the store's database: {text}. What was committed is not lost: "
            f"run again, and the engine goes on from there."
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
    said = _NO_MEMORY.search(str(cause)) is not None
    return isinstance(cause, duckdb.OutOfMemoryException) or said


def is_given_up(error: StoreError) -> bool:
    """Whether a translated error says that the database has to be opened anew."""
    return isinstance(error.__cause__, duckdb.FatalException)
