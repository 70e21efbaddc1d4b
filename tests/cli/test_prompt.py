"""The prompt of `headrace sql`: statements over lines, history, completion; errors do not end it.

Method: keys go through a pipe into the real prompt, which asks a real store.
"""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headrace.cli.prompt import Prompt, ViewCompleter, is_ready, make_session
from headrace.project.config import read_config
from headrace.store.duckdb.store import DuckDBStore

ENTER, CTRL_C, CTRL_D, UP = "\r", "\x03", "\x04", "\x1b[A"


@pytest.fixture
def prompt(project: Path) -> Prompt:
    (project / ".headrace").mkdir()
    DuckDBStore(project / ".headrace/store.duckdb").close()
    return Prompt(read_config(project), expanded=False, max_rows=None)


def play(prompt: Prompt, history: Path, keys: str) -> None:
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        prompt.run(make_session(history, prompt.completer, input=pipe, output=DummyOutput()), "> ")


def test_statements_are_answered_until_the_end(
    prompt: Prompt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history"
    keys = f"SELECT 1 AS a,{ENTER}'x;' AS b;{ENTER}\\x{ENTER}SELECT 2 AS c;{ENTER}"
    play(prompt, history, keys + f"FROM nothing;{ENTER}half of a{CTRL_C}\\?{ENTER}{CTRL_D}")
    captured = capsys.readouterr()
    rule = "── row 1 ───────────────────────────────"
    assert captured.out.startswith(f"a  b\n─────\n1  x;\n{rule}\nc  2\nEnd a statement with ;")
    told = captured.err.splitlines()
    assert [line.split(" in ")[0] for line in told] == [
        "1 row",
        "a line for every cell",
        "1 row",
        "error: there is no table nothing; there are: none yet",
    ]
    # What was asked is there the next time, and only its owner can read it.
    assert history.stat().st_mode & 0o777 == 0o600
    play(prompt, history, f"{UP}{UP}{ENTER}\\q{ENTER}")
    assert "there is no table nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- really", True),
        ("SELECT ';", False),
        ("SELECT 1 -- ;", False),
        ("SELECT $$a;", False),
        ("SELECT 'é' ;", True),
        ("\\d", True),
    ],
)
def test_enter_answers_a_whole_statement(text: str, ready: bool) -> None:
    assert is_ready(text) is ready


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SELECT co", ["country", "count"]),
        ("FROM pay", ["payments"]),
        ("SELECT p.| FROM payments p", ["amount", "country"]),
        ("SELECT hits.c| FROM payments, hits", ["country", "count"]),
        ("FROM payments WHERE country = 'DE' AND am", ["amount"]),
        ("SELECT payments.", ["amount", "country"]),
        ("FROM hits WHERE a", ["AS", "AND"]),
        ("", []),
    ],
)
def test_names_are_completed(text: str, offered: list[str]) -> None:
    completer = ViewCompleter()
    completer.views = {
        "payments": {"amount": "DECIMAL(12,2)", "country": "VARCHAR"},
        "hits": {"count": "BIGINT"},
    }
    before, _, after = text.partition("|")  # where the cursor is
    document = Document(before + after, len(before))
    found = completer.get_completions(document, CompleteEvent())
    assert [each.text for each in found] == offered
