"""What README and docs say is true: their Python runs, its output is as printed, links lead home.

Method: every fenced block is found and run or checked by its language; a block of a language that
nobody checks is an error.
"""

import contextlib
import io
import re
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


def test_the_settings_for_kafka_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.log.opening import KafkaPlace
    from headrace.project.config import read_config

    page = ROOT / "docs" / "kafka.md"
    (text,) = [text for language, text in blocks(page) if language == "toml"]
    (tmp_path / "headrace.toml").write_text(text)
    monkeypatch.setenv("SHOP_KAFKA_PASSWORD", "secret")
    place = read_config(tmp_path).log
    assert isinstance(place, KafkaPlace)
    assert place.client["sasl.password"] == "secret"


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("examples/*/README.md"))], ids=str)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text())
    assert commands
    assert set(commands) <= set(targets)
