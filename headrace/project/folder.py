"""Open a project: a folder of `.sql` definitions with `headrace.toml`.

Promises:
- Every problem of headrace.toml and of all `.sql` files is reported at once; nothing is started.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import DefinitionError, Location, Problem, UsageError
from headrace.project.config import FILE, Config, not_text, read_config

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
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    config = definitions = None
    try:
        config = read_config(folder)
    except DefinitionError as error:
        problems += error.problems
    try:
        definitions = read_definitions(folder)
    except DefinitionError as error:
        problems += error.problems
        texts |= error.texts
    if config is None or definitions is None:
        raise DefinitionError(problems, texts)
    return OpenProject(config, definitions)


def read_definitions(folder: Path) -> "Project":
    """Return what the folder's `.sql` files define. DefinitionError."""
    from headrace.sql import parse_project  # loads sqlglot, which most commands do without

    files = sorted(folder.glob("*.sql"))
    problems: list[Problem] = []
    if not files:
        advice = "the project has no .sql file; define a stream and a view in one, as after init"
        problems.append(Problem(Location(FILE, 1, 1), advice))
    sources: dict[str, str] = {}
    for file in files:
        try:
            sources[file.name] = file.read_bytes().decode()
        except UnicodeDecodeError as error:
            problems.append(not_text(file.name, error))
    try:
        project = parse_project(sources)
    except DefinitionError as error:
        raise DefinitionError([*problems, *error.problems], error.texts) from error
    if problems:
        raise DefinitionError(problems)
    return project
