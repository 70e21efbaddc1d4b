"""What README and docs say is true: their Python runs, its output is as printed, links lead home.

Method: every fenced block is found and run or checked by its language; a block of a language that
nobody checks is an error.
"""

import contextlib
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_and_prints_what_follows(page: Path) -> None:
    printed = None
    for language, text in blocks(page):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, str(page), "exec"), {})
            printed = output.getvalue()
        elif language == "text" and printed is not None:
            assert printed == text
            printed = None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_language_that_is_checked(page: Path) -> None:
    assert {language for language, _ in blocks(page)} <= {
        "python",
        "text",
        "sql",
        "toml",
        "console",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_sql_of_a_page_is_accepted(page: Path) -> None:
    from headrace.sql import parse_project

    for language, text in blocks(page):
        if language == "sql":
            parse_project({page.name: text})


def test_the_settings_of_the_manual_are_the_defaults(tmp_path: Path) -> None:
    from headrace.project.config import read_config
    from headrace.project.settings import Settings

    page = ROOT / "docs" / "operations.md"
    (text,) = [text for language, text in blocks(page) if language == "toml"]
    (tmp_path / "headrace.toml").write_text(text)
    assert read_config(tmp_path).settings == Settings()


def test_the_settings_for_other_machines_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.project.config import read_config
    from headrace.project.serving import ServeSettings

    page = ROOT / "docs" / "serving.md"
    (text,) = [text for language, text in blocks(page) if language == "toml"]
    for name in ("headrace.toml", "server.pem", "server.key"):
        (tmp_path / name).write_text(text)
    for name in ("SHOP_TOKEN", "REPORTS_TOKEN"):
        monkeypatch.setenv(name, f"a long enough {name}")
    found = read_config(tmp_path).serve
    assert [(each.name, each.role) for each in found.tokens] == [
        ("shop_app", "ingest"),
        ("reports", "read"),
    ]
    assert replace(found, host="", port=0, tls_certificate=None, tls_key=None, tokens=()) == (
        ServeSettings(host="")
    )


def test_the_settings_for_kafka_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.engine.spark.secrecy import check_secrecy
    from headrace.log.opening import KafkaPlace, open_log
    from headrace.project.config import read_config

    page = ROOT / "docs" / "kafka.md"
    client, spark = [text for language, text in blocks(page) if language == "toml"]
    (tmp_path / "headrace.toml").write_text(client + spark)
    monkeypatch.setenv("SHOP_KAFKA_PASSWORD", "secret")
    config = read_config(tmp_path)
    assert isinstance(config.log, KafkaPlace)
    assert config.log.client["sasl.password"] == "secret"
    log = open_log(replace(config.log, client={**config.log.client, "sasl.password": "literal"}))
    assert log.carried_secrets() == ["sasl.password"]
    check_secrecy(log, {"spark.master": config.spark_master, **config.spark_settings}.get)
    log.close()


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("examples/*/README.md"))], ids=str)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text())
    assert commands
    assert set(commands) <= set(targets)


#: What the right column of "Two dialects" gives, in the order of its rows, over one row of values.
DUCKDB_SIDE = [10, None, "12:00", "2026-01", 2, 3, "DOUBLE", "a", "name", [1]]


def test_what_the_first_page_says_of_duckdb_is_so() -> None:
    import duckdb

    text = (ROOT / "README.md").read_text().split("## Two dialects")[1].split("\n\n")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert len(rows) == len(DUCKDB_SIDE)
    right = [re.findall(r"`([^`]+)`", row[2]) for row in rows]
    values = "(SELECT [10, 20] AS list, TIMESTAMP '2026-01-01 12:00:30' AS ts, 1 AS x, 'name' AS a)"
    asked = [
        right[0][0],
        f"(SELECT x FROM (VALUES (1), (NULL)) v(x) {right[1][0]} LIMIT 1)",
        f"strftime({right[2][0]}, '%H:%M')",
        right[3][0],
        right[4][0],
        right[5][0],
        "typeof(1::DECIMAL(5,2) / 3::DECIMAL(5,2))",
        "concat('a', NULL)",
        '"a"',
        right[9][0],
    ]
    assert (rows[1][2], rows[6][2], rows[7][2], right[8]) == (
        "comes last; `ORDER BY x NULLS FIRST`",
        "a DOUBLE",
        "NULL is left out",
        ["'a'"],
    )
    for question, answer in zip(asked, DUCKDB_SIDE, strict=True):
        ((found,),) = duckdb.sql(f"SELECT {question} FROM {values}").fetchall()
        assert found == answer, question
    ordered = duckdb.sql("SELECT x FROM (VALUES (NULL), (1)) v(x) ORDER BY x").fetchall()
    assert ordered == [(1,), (None,)]
