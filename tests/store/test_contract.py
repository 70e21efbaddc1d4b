"""The DuckDB store keeps the contract of every store."""

from pathlib import Path

import pytest
from soaking import SEED, times

from headrace.store.base import Store
from headrace.store.duckdb import commit
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import PLACEMENTS
from headrace.testing.store.contract import StoreContract
from headrace.testing.store.laws import LawContract
from headrace.testing.store.reading import ReadingContract
from headrace.testing.store.samples import counts, delta, planned, read, turn_of


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


class TestLargeTables(LawContract, ReadingContract):
    """The same of tables in which rows are replaced instead of updated."""

    def make_store(self, path: Path) -> Store:
        return DuckDBStore(path)

    @pytest.fixture(autouse=True)
    def every_table_is_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(commit, "REPLACE_ROWS", 0)


def test_a_replaced_row_may_be_one_of_the_same_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deltas of one turn: the second finds what the first one wrote, and what was there."""
    monkeypatch.setattr(commit, "REPLACE_ROWS", 0)
    suite, store = TestLargeTables(), DuckDBStore(tmp_path / "store.duckdb")
    table = counts()
    epoch = suite.begin(store, table)
    first = delta(table, ("a", 1, 1, 1, 1), (None, 1, 2, 2, 2))
    second = delta(table, (None, 1, 3, 3, 3), ("c", 1, 4, 4, 4))
    for turn in (1, 2):
        made = turn_of(planned(epoch, turn), {table: (first, second)})
        store.journal(made.planned)
        store.commit(made)
    assert read(store, table) == [("a", 2, 2, 1, 1), ("c", 2, 8, 4, 4), (None, 4, 10, 2, 3)]
    store.close()
