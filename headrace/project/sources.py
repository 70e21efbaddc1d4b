"""The files of a project that hold its definitions, and their texts.

Promises:
- `definition_files` is the one place that says which files are definitions: `*.sql` beside
  headrace.toml. Names that begin with `.` are not: editors keep locks and copies under such names.
- A file that cannot be read is a problem with its name, never an OSError.
"""

from pathlib import Path

from headrace.errors import Location, Problem
from headrace.project.config import FILE, not_readable, not_text

__all__ = ["definition_files", "read_sources"]


def definition_files(folder: Path) -> list[Path]:
    """Return the files that hold definitions, by name. They may be gone when they are read."""
    return sorted(file for file in folder.glob("*.sql") if not file.name.startswith("."))


def read_sources(folder: Path) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of the folder's `.sql` files, and the problems with reading them."""
    files = definition_files(folder)
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
        except OSError as error:
            problems.append(not_readable(file.name, error))
    return sources, problems
