"""`headrace lateness`: how late records come, and what each view would lose with each delay."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_folder, project_log
from headrace.cli.text.output import (
    JsonOption,
    make_table,
    show_json,
    show_progress,
    show_renderable,
    show_text,
)
from headrace.cli.text.quantities import duration_text
from headrace.errors import UsageError
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.model.definitions import NamedQuery, Project, View
    from headrace.observe.lateness import Lateness

__all__ = ["lateness"]

_BAR = 40


def lateness(
    stream: Annotated[str, typer.Argument(help="The stream whose records are looked at.")],
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show how late a stream's records come, and what each view would lose with other delays."""
    from headrace.model.names import closest
    from headrace.observe.lateness import measure_lateness
    from headrace.project.folder import open_project

    opened = open_project(find_folder(project))
    streams = {each.name: each for each in opened.definitions.streams}
    found = streams.get(stream)
    if found is None:
        raise UsageError(
            _made_of(opened.definitions, stream)
            or f"there is no stream {stream}{closest(stream, list(streams))}; there are: "
            f"{', '.join(streams) or 'none'}."
        )
    if found.event_time is None:
        raise UsageError(
            f"{stream} has no event time, so no record of it is ever late. Give it one: WATERMARK "
            f"FOR <column> AS <column> - INTERVAL 30 SECONDS."
        )
    with project_log(opened.config) as log, show_progress(f"reading {found.topic}") as progress:
        measured = measure_lateness(log, found, opened.definitions.views, on_progress=progress)
    if json:
        show_json(measured.to_json())
    else:
        _show(measured)


def _made_of(definitions: "Project", name: str) -> str | None:
    """Return what to ask about instead of a definition that is a query; None: there is none."""
    from headrace.model.graph import streams_of

    known: list[NamedQuery | View] = [*definitions.queries, *definitions.views]
    made = next((each for each in known if each.name == name), None)
    if made is None:
        return None
    sources = streams_of(made.query)
    commands = " or ".join(f"`headrace lateness {source}`" for source in sources)
    return (
        f"{name} is a {made.kind} that a query makes of {' and '.join(sources)}: its records are "
        f"as late as theirs. Ask about {'it' if len(sources) == 1 else 'one of them'}: {commands}."
    )


def _show(measured: "Lateness") -> None:
    from headrace.observe.lateness import ranges_of

    ranges = ranges_of(measured) if measured.records else []
    most = max((each.records for each in ranges), default=0)
    rows = [
        [
            "in time" if each.to_us == 0 else f"to {duration_text(each.to_us)}",
            each.records,
            f"{each.records / measured.records:.3%}",
            "█" * -(-_BAR * each.records // most),
        ]
        for each in ranges
    ]
    records = counted(measured.records, "record")
    title = f"{measured.stream}: {records}, behind their partition's clock by"
    show_renderable(make_table(title, ["lateness", "records", "share", ""], rows))
    _show_losses(measured)
    if measured.dead:
        are = "is dead and was" if measured.dead == 1 else "are dead and were"
        show_text(f"{counted(measured.dead, 'record')} {are} not counted")
    if measured.unguarded:
        has = "has" if measured.unguarded == 1 else "have"
        show_text(
            f"{counted(measured.unguarded, 'record')} {has} no arrival: a producer whose clock "
            f"runs ahead makes others look late"
        )


def _show_losses(measured: "Lateness") -> None:
    for view in measured.not_known:
        show_text(
            f"view {view}: what it loses is not known, because its window is over an expression"
        )
    if not measured.views and not measured.not_known:
        show_text(f"no view over {measured.stream} has windows, so none of its records is late")
    if not measured.views:
        return
    names = [f"{loss.view} ≤" if loss.at_most else loss.view for loss in measured.views]
    rows: list[list[object]] = []
    before: list[int] | None = None
    for at, each in enumerate(measured.views[0].delays):
        now = each.delay_us == measured.delay_us
        # With the delay that holds, what was really late: it may have been another one before.
        late = [loss.late if now else loss.delays[at].late for loss in measured.views]
        if now or late != before:  # others lose the same as a shorter one
            rows.append([duration_text(each.delay_us) + (" *" if now else ""), *late])
        before = late
    right = [False, *(True for _ in names)]
    show_text("\nlate pairs of record and window in each view, by delay (* holds now)")
    show_renderable(make_table("", ["delay", *names], rows, right=right))
    show_text("A longer delay loses less, and rows close that much later.")
    if any(loss.at_most for loss in measured.views):
        show_text("≤: counted before WHERE and before duplicates are dropped.")
