"""The examples: the commands of every README run as they are written and print what it shows.

Method: each README is played in a copy of its folder, all of them in this process, with one Java
(real processes play the quickstart's); a `text` block is what the last command before it printed.
The blocks before the first command are data, which the files of the example have to hold.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from cli.commands import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = ["hashtags", "page-views", "sensors", "two-shops"]


def test_every_example_is_run() -> None:
    readmes = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
    assert readmes == sorted([*NAMES, "quickstart"])  # which has a test of its own


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_readmes_run_and_print_what_they_show(
    tmp_path: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".headrace"))
        monkeypatch.chdir(folder)
        printed: str | None = None
        for kind, text in BLOCK.findall((folder / "README.md").read_text()):
            if kind == "sh":
                for command in text.splitlines():
                    program, *arguments = shlex.split(command)
                    assert program == "headrace"
                    answer = headrace(*arguments)
                    assert answer.code == 0, answer.err
                    printed = answer.out
            elif printed is None:
                files = [path.read_text() for path in folder.glob("*.jsonl")]
                assert any(text in file for file in files), text
            else:
                assert printed.split() == text.split()
