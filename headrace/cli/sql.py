"""`headrace sql`: one statement, a file of them, standard input, or a prompt."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import (
    JsonOption,
    make_answer,
    make_records,
    show_bytes,
    show_json,
    show_renderable,
    show_text,
    table_width,
)
from headrace.cli.text.plans import ask_for_tree, plan_text
from headrace.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.project.config import Config

__all__ = ["Format", "check_parquet", "show_answer", "sql"]

_NUMBERS = ("int", "uint", "float", "double", "decimal")
# An interval and a boolean are short too, and half of one says nothing.
_RIGID = ("timestamp", "date", "time", "bool", "duration", "month_day_nano")
_EXPLAIN = ["explain_key", "explain_value"]


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="One reading statement over the views. Without it, and on a terminal: a prompt."
        ),
    ] = None,
    project: ProjectOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Answer the statements of a file; `-`: standard input."),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.TABLE,
    expanded: Annotated[
        bool, typer.Option("--expanded", "-x", help="A line for every cell; nothing is cut.")
    ] = False,
    max_rows: Annotated[int | None, typer.Option(min=1, help="Refuse a longer answer.")] = None,
    json: JsonOption = False,
) -> None:
    """Ask the views, all at one and the same position of the log. Reads only, in DuckDB's SQL."""
    if query is not None and file is not None:
        raise UsageError("give one of the two: a query, or --file")
    config = find_config(project)
    form = Format.JSON if json else format
    if query is None and file is None and sys.stdin.isatty():
        if form is not Format.TABLE:
            raise UsageError(f"--format {form}: give a query, or --file; the prompt shows tables")
        from headrace.cli.prompt import run_prompt  # loads prompt_toolkit: other ways do without

        run_prompt(config, expanded=expanded, max_rows=max_rows)
        return
    if form is Format.PARQUET and sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal; write it to a file: > answer.parquet")
    statements = [query] if query is not None else _read_statements(file, form)
    for number, statement in enumerate(statements):
        if number and form is Format.TABLE:
            show_text("")
        _answer(config, statement, form, expanded, max_rows)


def _read_statements(file: Path | None, form: Format) -> list[str]:
    from headrace.store.opening import split_statements

    standard_input = file is None or str(file) == "-"
    name = "standard input" if standard_input else str(file)
    try:
        data = sys.stdin.buffer.read() if file is None or standard_input else file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: byte {error.start} is not UTF-8: save it as UTF-8") from error
    statements = split_statements(text)
    if not statements:
        raise UsageError(f'{name}: there is no statement; write one: "SHOW TABLES"')
    if len(statements) > 1 and form in (Format.CSV, Format.PARQUET):
        raise UsageError(
            f"{name}: {len(statements)} statements, and --format {form} takes one: their columns "
            f"differ. Ask one at a time, or use --format json."
        )
    return statements


def _answer(
    config: "Config", statement: str, form: Format, expanded: bool, max_rows: int | None
) -> None:
    from headrace.cli.question import ask_desk
    from headrace.store.base import MAX_ROWS

    most = max_rows or MAX_ROWS
    if form is Format.PARQUET:
        show_bytes(_parquet(ask_desk(config, lambda desk: desk.table(statement, max_rows=most))))
        return
    if form is Format.TABLE:
        statement = ask_for_tree(statement)
    answer = ask_desk(config, lambda desk: desk.sql(statement, max_rows=most))
    if form is Format.JSON:
        names = [column["name"] for column in answer["columns"]]
        _check_names(names)
        for row in answer["rows"]:
            show_json(dict(zip(names, row, strict=True)))
    elif form is Format.CSV:
        show_text(_csv(answer))
    else:
        show_answer(answer, expanded=expanded)


def show_answer(answer: dict[str, Any], *, expanded: bool, width: int | None = None) -> None:
    """Print an answer as a table, or a line for every cell."""
    names = [column["name"] for column in answer["columns"]]
    types = [column["type"] for column in answer["columns"]]
    rows = answer["rows"]
    if names == _EXPLAIN:
        show_text("\n".join(plan_text(text, width or table_width()) for _, text in rows))
    elif expanded:
        if rows:
            show_renderable(make_records(names, rows, width=width))
    else:
        numbers = [each.startswith(_NUMBERS) for each in types]
        rigid = [each.startswith(_RIGID) for each in types]
        show_renderable(make_answer(names, rows, right=numbers, rigid=rigid, width=width))
    if not rows:
        show_text("no rows")


def _check_names(names: list[str]) -> None:
    """Refuse an answer two columns of which would become one. UsageError."""
    for at, name in enumerate(names):
        if name in names[:at]:
            raise UsageError(f"two columns are named {name}; name them with AS")


def _csv(answer: dict[str, Any]) -> str:
    from headrace.serve.queries.forms import csv_line

    rows = [[column["name"] for column in answer["columns"]], *answer["rows"]]
    return "\n".join(map(csv_line, rows))


def _parquet(table: "pa.Table") -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    check_parquet(table.schema)
    sink = pa.BufferOutputStream()
    try:
        parquet.write_table(table, sink)
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(f"the answer cannot be written as Parquet: {error}") from error
    return bytes(sink.getvalue())


def check_parquet(schema: "pa.Schema") -> None:
    """Refuse what cannot be written as Parquet. UsageError."""
    import pyarrow as pa

    _check_names(schema.names)
    for field in schema:
        if pa.types.is_interval(field.type):
            raise UsageError(
                f"{field.name}: Parquet has no intervals here; write CAST({field.name} AS VARCHAR),"
                f" or its seconds: epoch({field.name})"
            )
