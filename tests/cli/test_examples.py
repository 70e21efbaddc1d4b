"""The examples: the commands of every README run as they are written and print what it shows.

Method: each README is played in a copy of its folder, all of them in this process, with one Java
(real processes play the quickstart's); its Python asks an engine that runs. A `text` block is what
the last command before it printed.
The blocks before the first command are data, which the files of the example have to hold.
"""

import contextlib
import io
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands import EngineProcess, Run

EXAMPLES = Path(__file__).parents[2] / "examples"
BLOCK = re.compile(r"^```(sh|text|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = ["accounts", "hashtags", "page-views", "sensors", "two-shops"]


def test_every_example_is_run() -> None:
    readmes = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
    assert readmes == sorted([*NAMES, "quickstart"])  # which has a test of its own


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_readmes_run_and_print_what_they_show(
    tmp_path: Path,
    headrace: Run,
    monkeypatch: pytest.MonkeyPatch,
    start_engine: Callable[..., EngineProcess],
) -> None:
    for name in NAMES:
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".headrace"))
        monkeypatch.chdir(folder)
        printed: str | None = None
        started: EngineProcess | None = None
        for kind, text in BLOCK.findall((folder / "README.md").read_text()):
            if kind == "sh":
                for command in text.splitlines():
                    program, *arguments = shlex.split(command)
                    assert program == "headrace"
                    answer = headrace(*arguments)
                    assert answer.code == 0, answer.err
                    printed = answer.out
            elif kind == "python":
                started = started or start_engine(folder).wait_until("serving accounts on")
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(text, f"{name}/README.md", "exec"), {})
                printed = output.getvalue()
            elif printed is None:
                files = [path.read_text() for path in folder.glob("*.jsonl")]
                assert any(text in file for file in files), text
            else:
                assert printed.split() == text.split()
        if started is not None:
            assert started.signal(signal.SIGINT) == 130
