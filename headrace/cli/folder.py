"""Which project a command is about: `--project`, or the nearest headrace.toml above."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.log import Log
    from headrace.project.config import Config

__all__ = ["ProjectOption", "find_config", "find_folder", "project_log"]

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="The project's folder; else the nearest one above."),
]


def find_folder(project: Path | None) -> Path:
    """Return the project's folder. UsageError: there is none."""
    from headrace.project.config import FILE
    from headrace.project.folder import find_project

    if project is None:
        return find_project(Path.cwd())
    folder = project.parent if project.name == FILE else project
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder}: no {FILE} here. Make a project: `headrace init {folder}`.")
    return folder.absolute()


def find_config(project: Path | None) -> "Config":
    """Return the project's settings; its definitions are not read. UsageError, DefinitionError."""
    from headrace.project.config import read_config

    return read_config(find_folder(project))


@contextmanager
def project_log(config: "Config") -> Iterator["Log"]:
    """Open the project's log. UsageError, Unreachable."""
    from headrace.log.opening import open_log

    with closing(open_log(config.log)) as log:
        yield log
