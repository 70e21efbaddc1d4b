"""`headrace sql`, `audit` and `explain`: questions to the engine, or to the store without one."""

import csv
import io
import json as json_module
from enum import StrEnum
from typing import Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.output import (
    JsonOption,
    make_table,
    note,
    show_json,
    show_progress,
    show_renderable,
    show_text,
)
from headrace.cli.problems import showing_places, text_width
from headrace.errors import AuditFailed, UsageError

__all__ = ["audit", "explain", "sql"]


_NUMBERS = ("int", "uint", "float", "double", "decimal")


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def sql(
    query: Annotated[str, typer.Argument(help="One reading statement over the views.")],
    project: ProjectOption = None,
    format: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.TABLE,
    max_rows: Annotated[int | None, typer.Option(min=1, help="Refuse a longer answer.")] = None,
    json: JsonOption = False,
) -> None:
    """Ask the views, all at one and the same position of the log. Reads only."""
    config = find_config(project)
    from headrace.serve.access import open_desk
    from headrace.store.base import MAX_ROWS

    with open_desk(config) as desk:
        answer = desk.sql(query, max_rows=max_rows or MAX_ROWS)
    names = [column["name"] for column in answer["columns"]]
    if json or format is Format.JSON:
        for row in answer["rows"]:
            show_json(dict(zip(names, row, strict=True)))
    elif format is Format.CSV:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_csv_cell(value) for value in row] for row in answer["rows"])
        show_text(text.getvalue().removesuffix("\n"))
    else:
        numbers = [column["type"].startswith(_NUMBERS) for column in answer["columns"]]
        show_renderable(make_table("", names, answer["rows"], right=numbers))


def _csv_cell(value: object) -> object:
    return json_module.dumps(value) if isinstance(value, dict | list | bool) else value


def audit(project: ProjectOption = None, json: JsonOption = False) -> None:
    """Recompute everything from the log and compare; exit 1 when anything differs."""
    config = find_config(project)
    from headrace.serve.access import open_desk

    with open_desk(config) as desk, show_progress("audit") as progress:
        found = desk.audit(progress)
    if json:
        show_json(found)
    else:
        show_text(audit_line(found))
    if not found["ok"]:
        if json:
            raise typer.Exit(AuditFailed.exit_code)
        raise AuditFailed(found["differences"])


def audit_line(found: dict[str, Any]) -> str:
    """Return what an audit found as one line."""
    verdict = "holds" if found["ok"] else f"is broken: {len(found['differences'])} differences"
    return (
        f"the promise {verdict} ({found['records']:,} records read again, "
        f"{found['rows']:,} rows and {len(found['counters'])} sets of counters compared)"
    )


def explain(
    view: Annotated[str | None, typer.Argument(help="Of this view alone.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Print the plan that will run: what is read, folded, merged and shown."""
    config = find_config(project)
    from headrace.plan.explain import explain_view
    from headrace.plan.explain_text import explanation_text
    from headrace.plan.stages import tables_of
    from headrace.serve.access import plan_on_disk, running_engine
    from headrace.store.opening import describe_table

    if address := running_engine(config):
        from headrace.serve.client import EngineClient

        client = EngineClient(address)
        try:
            plans = client.explain()
        finally:
            client.close()
    else:
        note("no engine runs: starting Spark to check the definitions")
        with showing_places(config.folder):
            pipeline = plan_on_disk(config)
        plans = [
            explain_view(pipeline, table, describe_table(table)).to_json()
            for table in tables_of(pipeline.folds)
        ]
    chosen = [plan for plan in plans if view is None or plan["view"] == view]
    if view is not None and not chosen:
        known = ", ".join(sorted({plan["view"] for plan in plans})) or "none"
        raise UsageError(f"{view}: no such view; there are: {known}")
    if json:
        for plan in chosen:
            show_json(plan)
    else:
        width = text_width()
        show_text("\n\n".join(explanation_text(plan, width) for plan in chosen))
