"""Open a project: a folder of `.sql` definitions with `headrace.toml`.

Promises:
- Every problem of headrace.toml and of all `.sql` files is reported at once; nothing is started.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import DefinitionError, UsageError
from headrace.project.checking import check_project
from headrace.project.config import FILE, Config
from headrace.project.sources import read_sources

if TYPE_CHECKING:
    from headrace.model.definitions import Project

__all__ = ["OpenProject", "find_project", "open_project", "read_definitions"]


@dataclass(frozen=True)
class OpenProject:
    """A project as it is on disk: settings and validated definitions."""

    config: Config
    definitions: "Project"


def find_project(start: Path) -> Path:
    """Return the folder with headrace.toml: `start` or the nearest above it. UsageError."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    raise UsageError(
        f"{start}: no {FILE} here or above. Make a project with `headrace init`, or name its "
        f"folder with --project."
    )


def open_project(folder: Path) -> OpenProject:
    """Read settings and definitions. DefinitionError: carries the problems of both."""
    checked = check_project(folder)
    if checked.config is None or checked.definitions is None:
        raise DefinitionError(checked.errors)
    return OpenProject(checked.config, checked.definitions)


def read_definitions(folder: Path) -> "Project":
    """Return what the folder's `.sql` files define. DefinitionError."""
    from headrace.sql import read_project  # loads sqlglot, which most commands do without

    sources, problems = read_sources(folder)
    reading = read_project(sources)
    if problems or reading.problems:
        raise DefinitionError([*problems, *reading.problems])
    return reading.project
