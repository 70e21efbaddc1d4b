"""`headrace check`: every problem of the definitions, for people and for editors."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_folder
from headrace.cli.text.output import JsonOption, note, show_json, show_text
from headrace.cli.text.problems import finding_text, text_width
from headrace.errors import DefinitionError
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.project.checking import Checked, Finding

__all__ = ["check"]


def check(
    project: ProjectOption = None,
    types: Annotated[
        bool,
        typer.Option("--types", help="Start Spark, and check types and functions as well."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Report every problem of the definitions; nothing is started or changed. Exit 1: errors."""
    folder = find_folder(project)
    from headrace.project.checking import check_project

    checked = check_project(folder)
    findings = list(checked.findings)
    asked = types and not checked.errors
    if asked:
        findings = sorted([*findings, *_of_types(checked)], key=lambda each: each.problem)
    if json:
        show_json(_as_json(findings, checked.statements, types=asked))
    else:
        _show(findings, checked.statements, folder)
        if types and not asked:
            note("types were not checked: correct these errors first")
        elif not types and not checked.errors:
            note("types were not checked: `headrace check --types` starts Spark for it")
    if _count(findings)["error"]:
        raise typer.Exit(DefinitionError.exit_code)


def _of_types(checked: "Checked") -> "list[Finding]":
    from headrace.project.checking import Finding, Severity
    from headrace.serve.access import plan_definitions

    assert checked.config is not None
    assert checked.definitions is not None
    note("starting Spark to check the types")
    try:
        plan_definitions(checked.config, checked.definitions)
    except DefinitionError as error:
        return [Finding(Severity.ERROR, each) for each in error.problems]
    return []


def _count(findings: "list[Finding]") -> Counter[str]:
    return Counter(each.severity.value for each in findings)


def _as_json(findings: "list[Finding]", statements: int, *, types: bool) -> dict[str, Any]:
    count = _count(findings)
    return {
        "ok": not count["error"],
        "types": types,
        "definitions": statements,
        "errors": count["error"],
        "warnings": count["warning"],
        "notes": count["note"],
        "findings": [
            {
                "file": each.problem.location.file,
                "line": each.problem.location.line,
                "column": each.problem.location.column,
                "severity": each.severity.value,
                "message": each.problem.message,
            }
            for each in findings
        ],
    }


def _show(findings: "list[Finding]", statements: int, folder: Path) -> None:
    width = text_width()
    for each in findings:
        show_text(finding_text(each.severity.value, each.problem, folder, width=width))
    count = _count(findings)
    words = [counted(statements, "definition"), counted(count["error"], "error")]
    words += [counted(count[kind], kind) for kind in ("warning", "note") if count[kind]]
    show_text(", ".join(words))
