"""What the commands print: results on stdout, everything else on stderr.

Colour and moving lines only on a terminal, and NO_COLOR is obeyed. A table fits the terminal; on
anything else it is as wide as its content. Numbers in tables are as they are, so that they can be
copied; those in sentences have separators. A reader that stops reading (`| head`) ends the command
without a word.
"""

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.text.layout import GAP, Column, fit_widths

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "JsonOption",
    "OutputClosed",
    "Progress",
    "console",
    "make_answer",
    "make_records",
    "make_table",
    "moment",
    "note",
    "printable",
    "show_bytes",
    "show_json",
    "show_progress",
    "show_renderable",
    "show_text",
    "table_width",
    "terminal_width",
    "wrap",
]

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON: raw numbers, one object or one per line.")
]

NULL = "NULL"

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


def table_width() -> int:
    """Return how wide a table may be: the terminal, or without bound where there is none."""
    return terminal_width() if sys.stdout.isatty() else _UNBOUNDED


def terminal_width() -> int:
    """Return how many columns the terminal has; 80 if it does not say."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def console(*, stderr: bool = False, bounded: bool = True) -> "Console":
    """Return a console on stdout or stderr; one that is not bounded breaks no line by itself."""
    from rich.console import Console  # slow to load, and JSON does without

    stream = sys.stderr if stderr else sys.stdout
    wide = None if bounded and stream.isatty() else _UNBOUNDED
    return Console(file=stream, width=wide, highlight=False, markup=False, emoji=False)


def show_text(text: str) -> None:
    """Print lines of a result."""
    with _writing():
        sys.stdout.write(f"{text}\n")


def show_bytes(data: bytes) -> None:
    """Print a result that is not text."""
    with _writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def show_json(value: object) -> None:
    """Print one object on one line."""
    show_text(json.dumps(value, ensure_ascii=False))


def show_renderable(renderable: Any) -> None:
    """Print a table, or whatever else rich prints; its lines are as long as they are made."""
    target = console(bounded=False)
    with target.capture() as capture:
        target.print(renderable)
    with _writing():
        # Without the spaces that fill the last column.
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def make_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Sequence[bool] | None = None,
    rigid: Sequence[bool] | None = None,
    null: str = "",
    width: int | None = None,
) -> "Table":
    """Return a table that fits the terminal, or `width`, where its rigid columns do.

    Columns of numbers, or those that `right` says, are set to the right. Those and the columns that
    `rigid` says are never cut; long cells of others end with `…`. `null` is shown for None.
    """
    grid = _grid(columns, rows, right, rigid, null)
    wants = _wants(grid)
    widths = fit_widths(wants, width or table_width()) or [each.least for each in wants]
    return _draw(title, grid, widths)


def make_answer(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Sequence[bool],
    rigid: Sequence[bool],
    width: int | None = None,
) -> "Table | Text":
    """Return a table, or a line for every cell where the columns are too many for one."""
    room = width or table_width()
    grid = _grid(columns, rows, right, rigid, NULL)
    widths = fit_widths(_wants(grid), room)
    return _draw("", grid, widths) if widths else make_records(columns, rows, width=room)


def make_records(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None
) -> "Text":
    """Return a line for every cell, and more where one does not fit; nothing is cut."""
    from rich.cells import cell_len
    from rich.text import Text

    room = width or table_width()
    names = [printable(column) for column in columns]
    edge = max(map(cell_len, names), default=0) + GAP
    lines = Text()
    for number, row in enumerate(rows, 1):
        rule = f"── row {number} "
        lines.append(rule + "─" * (min(room, 40) - len(rule)) + "\n", style="dim")
        for name, value in zip(names, row, strict=True):
            folded = _folded(_cell(value, NULL), max(room - edge, 20))
            lines.append(name + " " * (edge - cell_len(name)), style="bold")
            lines.append(folded[0] + "\n", style="dim" if value is None else "")
            for part in folded[1:]:
                lines.append(" " * edge + part + "\n")
    lines.rstrip()
    return lines


def _folded(text: str, width: int) -> list[str]:
    from rich.cells import chop_cells

    return chop_cells(text, width) or [""]


@dataclass(frozen=True)
class _Grid:
    """The cells of a table as text."""

    names: list[str]
    cells: list[list[str]]
    nulls: list[list[bool]]
    right: list[bool]
    rigid: list[bool]


def _grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: Sequence[bool] | None,
    rigid: Sequence[bool] | None,
    null: str,
) -> _Grid:
    numbers = [
        len(rows) > 0 and all(isinstance(row[at], int | float | Decimal | None) for row in rows)
        for at in range(len(columns))
    ]
    to_right = numbers if right is None else list(right)
    kept = to_right if rigid is None else [a or b for a, b in zip(rigid, to_right, strict=True)]
    return _Grid(
        [printable(column) for column in columns],
        [[_cell(value, null) for value in row] for row in rows],
        [[value is None for value in row] for row in rows],
        to_right,
        kept,
    )


def _wants(grid: _Grid) -> list[Column]:
    from rich.cells import cell_len

    return [
        Column(cell_len(name), max((cell_len(row[at]) for row in grid.cells), default=0), rigid)
        for at, (name, rigid) in enumerate(zip(grid.names, grid.rigid, strict=True))
    ]


def _draw(title: str, grid: _Grid, widths: Sequence[int]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
    )
    for name, width, right in zip(grid.names, widths, grid.right, strict=True):
        table.add_column(
            Text(name),
            justify="right" if right else "left",
            width=width,
            no_wrap=True,
            overflow="ellipsis",
        )
    for cells, nulls in zip(grid.cells, grid.nulls, strict=True):
        pairs = zip(cells, nulls, strict=True)
        table.add_row(*(Text(cell, style="dim" if none else "") for cell, none in pairs))
    return table


def _cell(value: object, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(str(value))


def printable(text: str) -> str:
    """Return text that cannot move a terminal's cursor or change its colours."""
    return text.translate(_TERMINAL_SAFE)


def note(text: str) -> None:
    """Say something that is not the result, on stderr; on a terminal no word is broken."""
    if sys.stderr.isatty():
        text = wrap(text, terminal_width())
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def wrap(text: str, width: int) -> str:
    """Return text with long lines broken between words; lines that are drawn stay as they are."""
    lines = []
    for line in text.split("\n"):
        drawn = line.startswith((" ", "│", "╭", "╰")) or len(line) <= width
        lines += [line] if drawn else _fill(line, width)
    return "\n".join(lines)


def _fill(line: str, width: int) -> list[str]:
    return textwrap.wrap(
        line, width, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )


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

    def __init__(self, what: str, units: str = "records") -> None:
        self._what = what
        self._units = units
        self._said = time.monotonic()

    def __call__(self, done: int, all: int) -> None:
        """Tell that `done` of `all` units are through."""
        if time.monotonic() - self._said >= self.SECONDS:
            self._said = time.monotonic()
            note(f"{self._what}: {done:,} of {all:,} {self._units}")


@contextmanager
def show_progress(what: str, units: str = "records") -> Iterator[Any]:
    """Show progress on stderr while the block runs; yields what is to be told done and all."""
    if not sys.stderr.isatty():
        yield Progress(what, units)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
