"""What the tests of the command line share: calls in this process and real processes."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.commands import HEADRACE, START_SECONDS, Answer, EngineProcess, Run
from headrace.cli.main import call


@pytest.fixture
def headrace(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command line in this process: for commands that start no Spark."""

    def run(*arguments: object) -> Answer:
        code = call([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def process() -> Run:
    """Call the command line as a process of its own."""

    def run(*arguments: object, cwd: Path | None = None, input: str = "") -> Answer:
        done = subprocess.run(
            [HEADRACE, *map(str, arguments)],
            cwd=cwd,
            input=input,
            capture_output=True,
            text=True,
            timeout=START_SECONDS + 60,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def start_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Start engines; those that a test left running are ended, by their pid."""
    started: list[EngineProcess] = []

    def start(folder: Path, *options: str) -> EngineProcess:
        errors = tmp_path_factory.mktemp("engine") / "stderr"
        started.append(EngineProcess(folder, errors, *options))
        return started[-1]

    yield start
    for engine in started:
        if engine.process.poll() is None:
            engine.signal(signal.SIGTERM)


@pytest.fixture
def project(tmp_path: Path, headrace: Run) -> Path:
    """Make a project with `headrace init`."""
    folder = tmp_path / "shop"
    assert headrace("init", folder).code == 0
    return folder


@pytest.fixture(autouse=True)
def niceness(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return by how much commands called here would give way to others: the tests go on as fast."""
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", lambda more: asked.append(more) or sum(asked))
    return asked


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    os.environ.pop("HEADRACE_FAULT", None)
