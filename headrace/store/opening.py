"""Open stores, and what they export: the one place that knows which kinds there are.

So far there is one, DuckDB.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path

from headrace.plan.explain import StoreText
from headrace.plan.tables import Table
from headrace.store.base import Store
from headrace.store.duckdb import exported
from headrace.store.duckdb.exported import Exported, OpenExport
from headrace.store.duckdb.statements import (
    COLUMNS_QUERY,
    QUERY_WORDS,
    is_whole,
    split_statements,
)
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.duckdb.tables.describing import describe

__all__ = [
    "COLUMNS_QUERY",
    "QUERY_WORDS",
    "Exported",
    "OpenExport",
    "describe_table",
    "is_whole",
    "open_store",
    "opening_exports",
    "split_statements",
]


def open_store(path: str | os.PathLike[str], *, read_only: bool = False) -> Store:
    """Open the store that is kept at `path`.

    StoreBusy: another process has it open. StoreError: it is of another release. Unreachable: read
    only, and there is no store yet.
    """
    return DuckDBStore(path, read_only=read_only)


def describe_table(table: Table) -> StoreText:
    """Return what the store that a project uses makes of a table, as its own text."""
    return describe(table)


def opening_exports(folder: Path) -> AbstractContextManager[OpenExport]:
    """Give what opens exports of stores; what does not fit into memory goes to `folder`."""
    return exported.opening_exports(folder)
