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
    assert "outbox: 0 records waiting" in headrace("status", "--all", "-p", with_store).out
    assert headrace("status", "-p", with_store).out == (
        "shop: no engine runs; `headrace run` starts one\n"
        "definitions on disk differ (stream payments new, view spend_per_minute new): `headrace "
        "run` applies them\n\n"
        "no stream yet: the engine enters the definitions when it starts\n"
    )
    answer = headrace("status", "spend", "-p", with_store)
    assert (answer.code, answer.err) == (
        2,
        "error: there is no view or stream spend; there are: none\n",
    )


CURE = (
    "Nothing is lost, since the log has every record: stop the engine, move the store's files away "
    "(`mkdir damaged && mv .headrace/store.duckdb* damaged/`, unless headrace.toml names another "
    "place), and `headrace run` builds them anew from the log.\n"
)


@pytest.mark.parametrize("how", ["garbage", "cut", "header", "inside"])
@pytest.mark.parametrize("command", [("status",), ("sql", "SELECT count(*) FROM headrace.units")])
def test_a_damaged_store_is_told_with_its_cure(
    with_store: Path, headrace: Run, how: str, command: tuple[str, ...]
) -> None:
    file = with_store / ".headrace/store.duckdb"
    whole = file.read_bytes()
    damaged = {
        "garbage": b"no database",
        "cut": whole[:20_000],
        "header": whole[:4_200] + b"x" * 50 + whole[4_250:],
        "inside": whole[:12_288] + b"x" * (len(whole) - 12_288),
    }
    file.write_bytes(damaged[how])
    answer = headrace(*command, "-p", with_store)
    assert answer.code == 3
    assert answer.err.startswith("error: the store is damaged: ")
    assert answer.err.endswith(CURE)
