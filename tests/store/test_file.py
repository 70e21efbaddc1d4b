"""A store keeps what its statements need again, within bounds: versions come and go for years.

Method: tables of many schemas are registered and read, through a bound that a few of them reach.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.store.duckdb import file
from headrace.store.duckdb.file import DuckDBFile

MAX = 5


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DuckDBFile]:
    monkeypatch.setattr(file, "MAX_FEEDS", MAX)
    opened = DuckDBFile(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def registered_names(opened: DuckDBFile) -> list[str]:
    found = opened.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal")
    return [name for (name,) in found]


def test_names_of_tables_are_given_again_once_there_are_many(opened: DuckDBFile) -> None:
    for number in [*range(4 * MAX), *range(MAX)]:
        with opened.transaction(), opened.registered("__delta", pa.table({f"c{number}": [7]})) as a:
            assert opened.rows(f"SELECT c{number} FROM {a}") == [(7,)]
    assert len(registered_names(opened)) <= MAX


def test_a_table_in_use_is_read_although_its_name_is_forgotten(opened: DuckDBFile) -> None:
    for number in range(3 * MAX):
        outer, inner = pa.table({f"a{number}": [1]}), pa.table({f"b{number}": [2]})
        with (
            opened.transaction(),
            opened.registered("__rows", outer) as rows,
            opened.registered("__floors", inner) as floors,
        ):
            assert opened.rows(f"FROM {rows}, {floors}") == [(1, 2)]


def test_a_registered_name_is_used_again_for_the_same_schema(opened: DuckDBFile) -> None:
    names = set()
    for number in range(3):
        with opened.transaction(), opened.registered("__delta", pa.table({"n": [number]})) as name:
            assert opened.rows(f"FROM {name}") == [(number,)]
            names.add(name)
    assert len(names) == 1
