"""The DuckDB store keeps the contract of every store."""

from pathlib import Path

import pytest
from soaking import SEED, times

from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import PLACEMENTS
from headrace.testing.store.contract import StoreContract


class TestDuckDBStore(StoreContract):
    def make_store(self, path: Path) -> Store:
        return DuckDBStore(path)

    histories = times(1, soaked=2)

    @pytest.fixture
    def change_seed(self) -> int:
        return SEED

    @pytest.mark.soak
    @pytest.mark.parametrize("kind", PLACEMENTS)
    def test_changes_fold_to_the_view_at_every_commit(
        self, path: Path, kind: str, change_seed: int
    ) -> None:
        super().test_changes_fold_to_the_view_at_every_commit(path, kind, change_seed)
