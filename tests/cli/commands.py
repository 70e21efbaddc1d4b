"""Commands and engines as the tests meet them: what was printed, what was returned."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEADRACE = str(Path(sys.executable).with_name("headrace"))
START_SECONDS = 120  # Spark, on a machine with other things to do


class Answer:
    """What a command printed and returned."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Answer]


def in_terminal(*arguments: object, cwd: Path, columns: int = 80) -> list[str]:
    """Return the lines that a command shows on a terminal of so many columns, without colours."""
    terminal, stdout = pty.openpty()
    fcntl.ioctl(stdout, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    command = [HEADRACE, *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=stdout, stdout=stdout, stderr=stdout
    ):
        os.close(stdout)
        shown = b""
        while True:
            try:
                shown += os.read(terminal, 65_536)
            except OSError:  # the other end is closed
                break
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()


class EngineProcess:
    """A `headrace run` in the background."""

    def __init__(self, folder: Path, errors: Path, *options: str) -> None:
        self.folder = folder
        self._errors = errors
        command = [HEADRACE, "run", *options]
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(command, cwd=folder, stderr=stderr)

    @property
    def err(self) -> str:
        return self._errors.read_text()

    def wait_until(self, told: str) -> "EngineProcess":
        deadline = time.monotonic() + START_SECONDS
        while told not in self.err:
            assert self.process.poll() is None, self.err
            assert time.monotonic() < deadline, self.err
            time.sleep(0.05)
        return self

    def signal(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    @property
    def address(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / ".headrace" / "engine.json").read_bytes()))
