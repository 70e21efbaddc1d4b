"""Check a project without Spark: every problem of its files that needs no types.

Promises:
- Problems of headrace.toml and of all `.sql` files are found at once, and those that the planner
  has with a view without knowing its types. A view that is refused already is not planned.
- Whether a definition is read at all is said only where all of them could be read.
Not found here: what only Spark can say, which are the types and the arguments of functions.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import DefinitionError, Problem
from headrace.project.config import Config, read_config
from headrace.project.sources import read_sources

if TYPE_CHECKING:
    from headrace.model.definitions import Project

__all__ = ["Checked", "Finding", "Severity", "check_project"]


class Severity(StrEnum):
    """What a finding means: errors are refused, warnings may surprise, notes do no harm."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """A problem, and how much it matters."""

    severity: Severity
    problem: Problem


@dataclass(frozen=True)
class Checked:
    """What a check found; settings and definitions are None where they were refused."""

    config: Config | None
    definitions: "Project | None"
    findings: tuple[Finding, ...]  # in file order
    statements: int  # how many there are, refused ones included

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems for which the project is refused."""
        return tuple(each.problem for each in self.findings if each.severity is Severity.ERROR)


def check_project(folder: Path) -> Checked:
    """Return what is to be said about a project. UsageError: there is none."""
    from headrace.model.validate.warnings import unread_notes, written_topic_warnings
    from headrace.plan.shape import shapes_of
    from headrace.sql import read_project  # loads sqlglot, which most commands do without

    problems: list[Problem] = []
    config: Config | None = None
    try:
        config = read_config(folder)
    except DefinitionError as error:
        problems += error.problems
    sources, unreadable = read_sources(folder)
    reading = read_project(sources)
    refused = [*unreadable, *reading.problems]
    for view in reading.sound:
        try:
            shapes_of(view)
        except DefinitionError as error:
            refused += error.problems
    found = [Finding(Severity.ERROR, each) for each in (*problems, *refused)]
    found += [Finding(Severity.WARNING, each) for each in written_topic_warnings(reading.project)]
    found += [Finding(Severity.WARNING, each) for each in reading.warnings]
    if not refused:
        found += [Finding(Severity.NOTE, each) for each in reading.hints]
        found += [Finding(Severity.NOTE, each) for each in unread_notes(reading.project)]
    return Checked(
        config,
        None if refused else reading.project,
        tuple(sorted(found, key=lambda each: each.problem)),
        reading.statements,
    )
