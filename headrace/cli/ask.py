"""`headrace audit` and `explain`: questions to the engine, or to the store without one."""

import os
from typing import Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import (
    JsonOption,
    note,
    show_json,
    show_progress,
    show_text,
)
from headrace.cli.text.problems import showing_places, text_width
from headrace.errors import HeadraceError, UsageError
from headrace.wording import counted

__all__ = ["audit", "explain"]

_NICENESS = 10


def audit(project: ProjectOption = None, json: JsonOption = False) -> None:
    """Recompute everything from the log and compare; exit 1 when anything differs.

    Exit 3 when not all of the log was read yet: nothing is proved of the rest.
    """
    config = find_config(project)
    from headrace.serve.access import running_engine
    from headrace.serve.auditing import audit_project

    if running_engine(config) is not None:
        os.nice(_NICENESS)  # Spark's Java too: live turns go first
    with show_progress("audit") as progress:
        found = audit_project(config, progress)
    if json:
        show_json(found.to_json())
    else:
        show_text(audit_line(found.to_json()))
        for text in found.notes:
            note(text)
    try:
        found.check()
    except HeadraceError as error:
        if json:
            raise typer.Exit(error.exit_code) from error
        raise


def audit_line(found: dict[str, Any]) -> str:
    """Return what an audit found as one line."""
    if found["differences"]:
        verdict = f"the promise is broken: {counted(len(found['differences']), 'difference')}"
    elif found["unread"] and not found["records"]:
        return "nothing is audited: no record was read yet"
    elif found["unread"]:
        verdict = (
            "no difference in the records read so far; some of the log is unread, so the audit is "
            "incomplete"
        )
    else:
        verdict = "the promise holds"
    return (
        f"{verdict} ({counted(found['records'], 'record')} read again, "
        f"{counted(found['rows'], 'row')} of {counted(found['tables'], 'table')} and "
        f"{counted(len(found['counters']), 'set')} of counters compared)"
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
            explain_view(
                pipeline, table, describe_table(table), prepared=config.prepares_plans
            ).to_json()
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
