"""The DuckDB store keeps the contract of every store."""

from pathlib import Path

from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.contract import StoreContract


class TestDuckDBStore(StoreContract):
    def make_store(self, path: Path) -> Store:
        return DuckDBStore(path)
