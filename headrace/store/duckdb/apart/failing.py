"""Failures of a process that answers queries, told apart from those of a query."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

__all__ = ["NOT_HANDED", "NotHandedOver", "OutOfMemory", "told_apart"]

#: What a column says that was not handed over.
NOT_HANDED = "headrace: this column was not handed over"
# Allocations fail in places that have other errors of their own.
_NO_MEMORY = ("Out of Memory Error", "memory allocation failed", "bad_alloc", "bad allocation")


class NotHandedOver(Exception):
    """A query reads a column that planning did not find."""


class OutOfMemory(Exception):
    """A query needed more memory than it has."""


@contextmanager
def told_apart() -> Iterator[None]:
    """Raise what is not the query's own fault. OutOfMemory, NotHandedOver."""
    try:
        yield
    except (duckdb.OutOfMemoryException, pa.ArrowMemoryError, MemoryError) as error:
        raise OutOfMemory from error
    # What fails after the first batch comes through Arrow, as OSError.
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        text = str(error)
        if NOT_HANDED in text:
            raise NotHandedOver from error
        if any(sign in text for sign in _NO_MEMORY):
            raise OutOfMemory from error
        raise
