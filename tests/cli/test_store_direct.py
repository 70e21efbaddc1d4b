"""With no engine running the command line opens the store itself, under the same rules."""

import shutil
import subprocess
import sys
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
        "SHOW, or EXPLAIN of one of these); tables change through the log only: `headrace append`\n"
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
    "Stop the engine, move the store's files away (`mkdir damaged && mv .headrace/store.duckdb* "
    "damaged/`, unless headrace.toml names another place), and `headrace run` builds the tables "
    "again from the log. Rows made of records that the log's retention has removed cannot be built "
    "again.\n"
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


KILLED = """
import os, signal, sys
from headrace.store.duckdb.store import DuckDBStore
store = DuckDBStore(sys.argv[1])
store.begin_epoch()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, "-c", KILLED, str(folder / "store.duckdb")])
    return folder


@pytest.mark.parametrize(
    "how", ["changed", "changed at its end", "of another file", "cut", "garbage"]
)
@pytest.mark.parametrize("command", [("status",), ("sql", "SELECT count(*) FROM headrace.units")])
def test_a_damaged_write_ahead_log_is_told_with_its_cure(
    project: Path, killed: Path, headrace: Run, how: str, command: tuple[str, ...]
) -> None:
    """A store that was killed has its last commits there, here all of them."""
    file = project / ".headrace/store.duckdb"
    shutil.copytree(killed, file.parent)
    wal = file.with_name("store.duckdb.wal")
    whole = wal.read_bytes()
    damaged = {
        "changed": whole[:4_000] + b"x" * 50 + whole[4_050:],
        "changed at its end": whole[:-40] + b"x" * 20 + whole[-20:],
        "of another file": whole[:30] + bytes([whole[30] ^ 1]) + whole[31:],
        "cut": whole[: len(whole) // 2],
        "garbage": b"no log",
    }
    wal.write_bytes(damaged[how])
    answer = headrace(*command, "-p", project)
    assert answer.code == 3
    assert answer.err.startswith("error: the store is damaged: ")
    assert answer.err.endswith(CURE)
