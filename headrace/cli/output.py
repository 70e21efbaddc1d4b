"""What the commands print: results on stdout, everything else on stderr.

Colour and moving lines only on a terminal, and NO_COLOR is obeyed. A table on anything else is as
wide as its content. A reader that stops reading (`| head`) ends the command without a word.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "JsonOption",
    "OutputClosed",
    "Progress",
    "console",
    "make_table",
    "moment",
    "note",
    "printable",
    "show_json",
    "show_progress",
    "show_renderable",
    "show_text",
]

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON: raw numbers, one object or one per line.")
]

_UNBOUNDED = 100_000
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_TERMINAL_SAFE = {**_CONTROL, ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r"}


class OutputClosed(Exception):
    """Nobody reads stdout any more."""


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error


def console(*, stderr: bool = False) -> "Console":
    """Return a console on stdout or stderr."""
    from rich.console import Console  # slow to load, and JSON does without

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() else _UNBOUNDED
    return Console(file=stream, width=wide, highlight=False, markup=False, emoji=False)


def show_text(text: str) -> None:
    """Print lines of a result."""
    with _writing():
        sys.stdout.write(f"{text}\n")


def show_json(value: object) -> None:
    """Print one object on one line."""
    show_text(json.dumps(value, ensure_ascii=False))


def show_renderable(renderable: Any) -> None:
    """Print a table, or whatever else rich prints."""
    target = console()
    with target.capture() as capture:
        target.print(renderable)
    with _writing():
        sys.stdout.write(capture.get())


def make_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Sequence[bool] | None = None,
) -> "Table":
    """Return a table; columns of numbers, or those that `right` says, are set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numbers = all(isinstance(row[index], int | float | Decimal | None) for row in rows)
        to_right = numbers and len(rows) > 0 if right is None else right[index]
        table.add_column(
            Text(printable(column)),
            justify="right" if to_right else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Decimal):
        return f"{value:,}"
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(str(value))


def printable(text: str) -> str:
    """Return text that cannot move a terminal's cursor or change its colours."""
    return text.translate(_TERMINAL_SAFE)


def note(text: str) -> None:
    """Say something that is not the result, on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def moment(microseconds: int | None) -> str:
    """Return a time in UTC to the millisecond, "-" for none."""
    if microseconds is None:
        return "-"
    try:
        found = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, ValueError):
        return f"{microseconds} us"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Progress:
    """Tells how far something is: a bar on a terminal, elsewhere a line now and then."""

    SECONDS = 2.0

    def __init__(self, what: str) -> None:
        self._what = what
        self._said = time.monotonic()

    def __call__(self, done: int, all: int) -> None:
        """Tell that `done` of `all` records are through."""
        if time.monotonic() - self._said >= self.SECONDS:
            self._said = time.monotonic()
            note(f"{self._what}: {done:,} of {all:,} records")


@contextmanager
def show_progress(what: str) -> Iterator[Any]:
    """Show progress on stderr while the block runs; yields what is to be told done and all."""
    if not sys.stderr.isatty():
        yield Progress(what)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
