"""Show what was found in definitions: place, message, and the source line with a caret under it."""

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import typer

from headrace.cli.text.output import note, printable
from headrace.errors import DefinitionError, Location, Problem
from headrace.wording import counted

__all__ = ["finding_text", "showing_places", "tell_refused", "text_width"]

_WIDTH = 100  # where there is no terminal
_CUT = "..."


def text_width(stream: object = None) -> int:
    """Return how wide text for people may be: the terminal, or 100 where there is none."""
    target = stream or sys.stdout
    if not getattr(target, "isatty", lambda: False)():
        return _WIDTH
    return max(40, shutil.get_terminal_size((_WIDTH, 24)).columns)


def finding_text(severity: str, problem: Problem, folder: Path | None, *, width: int) -> str:
    """Return a problem as lines; its source line is among them where the file has it."""
    lines = [f"{severity}: {printable(str(problem))}"]
    if folder is not None:
        lines += _excerpt(folder, problem.location, width)
    return "\n".join(lines)


def _excerpt(folder: Path, place: Location, width: int) -> Iterator[str]:
    source = _source_lines(folder / place.file)
    if place.line > len(source):
        return
    line = source[place.line - 1]
    number = f"  {place.line} | "
    room = width - len(number)
    begin = min(place.column - 1, len(line))
    left, right = _shown(line[max(0, begin - room) : begin]), _shown(line[begin : begin + room])
    if begin > room or _cells(left + right) > room:  # a long line: the part around the place
        left = left if _cells(left) < room // 2 else _CUT + left[len(left) - room // 2 :]
        if len(left) + len(right) > room:
            right = right[: room - len(left) - len(_CUT)] + _CUT
    text = left + right
    yield f"{number}{text}".rstrip()
    yield f"{' ' * (len(number) - 2)}| {' ' * _cells(left)}^"


@lru_cache(maxsize=64)
def _source_lines(file: Path) -> list[str]:
    try:
        return file.read_bytes().decode(errors="replace").split("\n")
    except OSError:
        return []  # not readable, which is the problem; or the definition came from elsewhere


def _shown(text: str) -> str:
    return printable(text.rstrip("\r").replace("\t", "    "))


def _cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def tell_refused(problems: Iterable[Problem], folder: Path | None) -> None:
    """Tell on stderr why definitions were refused."""
    count = 0
    for problem in problems:
        count += 1
        note(finding_text("error", problem, folder, width=text_width(sys.stderr)))
    note(f"{counted(count, 'problem')}; nothing was started")


@contextmanager
def showing_places(folder: Path) -> Iterator[None]:
    """Show the source line of every problem if definitions are refused within the block."""
    try:
        yield
    except DefinitionError as error:
        tell_refused(error.problems, folder)
        raise typer.Exit(error.exit_code) from error
