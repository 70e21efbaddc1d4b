"""With no engine running the command line opens the store itself, under the same rules."""

from pathlib import Path

import pytest

from cli.commands import Run
from cli.refused import REFUSED
from headrace.store.duckdb.store import DuckDBStore


@pytest.fixture
def with_store(project: Path) -> Path:
    (project / ".headrace").mkdir()
    DuckDBStore(project / ".headrace/store.duckdb").close()
    return project


def test_a_query_is_answered_in_every_format(with_store: Path, headrace: Run) -> None:
    query = "SELECT 1 AS one, 'x,y' AS text, 2.50::DECIMAL(9,2) AS price"
    arguments = ("sql", query, "-p", with_store)
    assert headrace(*arguments, "--json").rows == [{"one": 1, "text": "x,y", "price": "2.50"}]
    assert headrace(*arguments, "--format", "csv").out == 'one,text,price\n1,"x,y",2.50\n'
    table = headrace(*arguments).out.split()
    assert table[:3] == ["one", "text", "price"]
    assert table[-3:] == ["1", "x,y", "2.50"]


@pytest.mark.parametrize("statement", REFUSED)
def test_only_reading_statements_are_answered(
    with_store: Path, headrace: Run, statement: str
) -> None:
    answer = headrace("sql", statement, "-p", with_store)
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert answer.out == ""


def test_the_refusal_says_how_tables_change(with_store: Path, headrace: Run) -> None:
    answer = headrace("sql", "DELETE FROM headrace.units", "-p", with_store)
    assert answer.err == (
        "error: only one reading statement is answered here (SELECT, FROM, WITH, VALUES, DESCRIBE, "
        "SHOW, EXPLAIN); tables change through the log only: `headrace append`\n"
    )


def test_status_is_told_without_an_engine(with_store: Path, headrace: Run) -> None:
    (found,) = headrace("status", "--json", "-p", with_store).rows
    assert (found["project"], found["outbox_records"]) == ("shop", 0)
    assert "outbox: 0 records waiting" in headrace("status", "-p", with_store).out
