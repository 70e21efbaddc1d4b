"""How commands are called: exit codes, init, and output for programs."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands import HEADRACE, Run
from headrace.observe.audit import Audit


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bogus"], "No such command"),
        (["append"], "Missing argument"),
        (["tail"], "Missing argument"),
        (["topics", "--colour"], "No such option"),
        (["tail", "t", "--from", "soon"], "write earliest, latest, an offset"),
        (["append", "t", "--key", "a", "--key-field", "b"], "exclude each other"),
        (["demo", "--for", "a while"], "write a time such as 30s"),
        (["demo", "--rate", "0"], "Invalid value"),
    ],
)
def test_a_wrong_call_is_told_and_ends_with_2(
    headrace: Run, arguments: list[str], told: str
) -> None:
    answer = headrace(*arguments)
    assert answer.code == 2
    assert told in answer.err
    assert answer.out == ""


def test_without_a_command_the_help_is_shown(headrace: Run) -> None:
    answer = headrace()
    assert answer.code == 2
    assert "Usage: headrace" in answer.out + answer.err


def test_outside_a_project_commands_say_how_to_make_one(
    headrace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["topics"], ["status"], ["run"], ["sql", "SELECT 1"], ["audit"]):
        answer = headrace(*command)
        assert answer.code == 2
        assert "headrace init" in answer.err


def test_init_makes_a_project_that_validates(project: Path) -> None:
    from headrace.project.folder import open_project

    opened = open_project(project)
    assert [view.name for view in opened.definitions.views] == ["spend_per_minute"]
    assert opened.config.name == "shop"


def test_init_never_overwrites(project: Path, headrace: Run) -> None:
    (project / ".gitignore").unlink()
    (project / "payments.sql").write_text("-- mine")
    answer = headrace("init", project)
    assert answer.code == 2
    assert "headrace.toml, payments.sql, payments.jsonl are there already" in answer.err
    assert (project / "payments.sql").read_text() == "-- mine"
    assert not (project / ".gitignore").exists()


def test_before_the_first_run_there_is_no_store_to_ask(project: Path, headrace: Run) -> None:
    for command in (["status"], ["sql", "SELECT 1"], ["audit"]):
        answer = headrace(*command, "-p", project)
        assert answer.code == 3
        assert "no store yet: run `headrace run`" in answer.err


def test_a_broken_promise_is_told_in_full_and_ends_with_1(
    project: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = ("view v: the table lacks a row", "stream s: read is 1")
    found = Audit(1, 2, 1, {}, differences, unread=("unit main: 3 records are not read yet",))

    def auditing(_: object, on_progress: Callable[[int, int], None]) -> Audit:
        on_progress(1, 1)
        return found

    monkeypatch.setattr("headrace.serve.auditing.audit_project", auditing)
    answer = headrace("audit", "-p", project)
    assert answer.code == 1
    assert answer.out == (
        "the promise is broken: 2 differences (1 record read again, 2 rows of 1 table and 0 sets "
        "of counters compared)\n"
    )
    assert answer.err == "error: view v: the table lacks a row\nstream s: read is 1\n"
    answer = headrace("audit", "--json", "-p", project)
    assert (answer.code, len(answer.rows[0]["differences"])) == (1, 2)


def test_an_audit_of_less_than_the_log_holds_ends_with_3(
    project: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Audit(1, 2, 1, {}, (), unread=("unit main: 3 records are not read yet",))
    monkeypatch.setattr("headrace.serve.auditing.audit_project", lambda *_: found)
    answer = headrace("audit", "-p", project)
    assert (answer.code, answer.err) == (3, "error: unit main: 3 records are not read yet\n")
    assert answer.out.startswith("no difference in the records read so far; some of the log is ")
    answer = headrace("audit", "--json", "-p", project)
    (told,) = answer.rows
    assert (answer.code, told["ok"], told["unread"]) == (3, False, list(found.unread))


def test_an_audit_of_nothing_does_not_say_that_anything_holds(
    project: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Audit(0, 0, 0, {}, (), unread=("nothing is committed yet",))
    monkeypatch.setattr("headrace.serve.auditing.audit_project", lambda *_: found)
    answer = headrace("audit", "-p", project)
    assert (answer.code, answer.out, answer.err) == (
        3,
        "nothing is audited: no record was read yet\n",
        "error: nothing is committed yet\n",
    )


def test_version_for_programs(headrace: Run) -> None:
    assert list(headrace("version", "--json").rows[0]) == ["version"]


def test_small_commands_load_neither_spark_nor_the_sql_parser(project: Path) -> None:
    code = (
        "import sys; from headrace.cli.main import call; call(['topics']); "
        "print([m for m in ('pyspark', 'sqlglot', 'duckdb', 'httpx') if m in sys.modules])"
    )
    python = Path(HEADRACE).with_name("python")
    done = subprocess.run(
        [python, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_ends_a_command_without_a_word(project: Path, headrace: Run) -> None:
    lines = project / "lines"
    lines.write_text("x" * 100 + "\n" + ("y" * 100 + "\n") * 20_000)
    assert headrace("append", "payments", lines, "-p", project).code == 0
    reading, writing = os.pipe()
    tail = subprocess.Popen(
        [HEADRACE, "tail", "payments", "-p", project], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert b"xxx" in os.read(reading, 1000)
    os.close(reading)
    _, errors = tail.communicate(timeout=60)
    assert (tail.returncode, errors) == (0, b"")


def test_the_version_is_told_in_both_ways(headrace: Run) -> None:
    assert headrace("--version").out == headrace("version").out
    assert headrace("--version").out.startswith("headrace 0.")
    assert headrace("--version").code == 0
