"""What an `append` was asked to do, and the command that asks for the same again."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.log.runs import Task
from headrace.cli.log.sources import STDIN

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """What is to be appended, and how, as it was written."""

    topic: str
    file: str
    project: str | None = None
    key: str | None = None
    key_field: str | None = None
    no_key: bool = False
    format: str = "auto"
    resume: bool = False
    again: bool = False
    headers: tuple[str, ...] = ()
    partition: int | None = None
    deletes: bool = False

    @property
    def is_file(self) -> bool:
        """Whether the input can be found again under its name; what a pipe brings cannot."""
        return self.file != "-" and Path(self.file).is_file()

    @property
    def names_key(self) -> bool:
        """Whether it says by itself which keys records have."""
        return self.key is not None or self.key_field is not None or self.no_key

    @property
    def options(self) -> list[str]:
        """What decides how a line becomes a record: with other ones a run does not go on."""
        found = [] if self.key is None else ["--key", self.key]
        found += [] if self.key_field is None else ["--key-field", self.key_field]
        found += ["--no-key"] if self.no_key else []
        found += [] if self.format == "auto" else ["--format", self.format]
        found += [] if self.partition is None else ["--partition", str(self.partition)]
        found += ["--delete"] if self.deletes else []
        return found + [word for text in self.headers for word in ("--header", text)]

    def task(self, log: str) -> Task:
        """Return what a run of this request does."""
        origin = os.path.abspath(self.file) if self.is_file else STDIN
        return Task(log, self.topic, origin, shlex.join(self.options))

    def command(self, option: str, *, options: str | None = None) -> str:
        """Return the command to paste that appends the same input with one more option.

        `options` are those of an earlier run, as its task has them; None: those of this one.
        """
        file = self.file if self.is_file else "-"
        words = ["headrace", "append", self.topic, file]
        words += [] if self.project is None else ["--project", self.project]
        made = shlex.join(self.options) if options is None else options
        return " ".join(filter(None, (shlex.join(words), made, option)))
