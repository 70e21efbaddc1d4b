"""`headrace lateness`: how late records come, and what each delay would lose and cost."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_folder, project_log
from headrace.cli.output import (
    JsonOption,
    make_table,
    show_json,
    show_progress,
    show_renderable,
    show_text,
)
from headrace.cli.quantities import duration_text
from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.observe.lateness import Lateness

__all__ = ["lateness"]

_BAR = 40


def lateness(
    stream: Annotated[str, typer.Argument(help="The stream whose records are looked at.")],
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Show how late a stream's records come, and what each watermark delay would lose and cost."""
    from headrace.model.names import closest
    from headrace.observe.lateness import measure_lateness
    from headrace.project.folder import open_project

    opened = open_project(find_folder(project))
    streams = {each.name: each for each in opened.definitions.streams}
    found = streams.get(stream)
    if found is None:
        raise UsageError(
            f"there is no stream {stream}{closest(stream, list(streams))}; there are: "
            f"{', '.join(streams) or 'none'}."
        )
    if found.event_time is None:
        raise UsageError(
            f"{stream} has no event time, so no record of it is ever late. Give it one: WATERMARK "
            f"FOR <column> AS <column> - INTERVAL 30 SECONDS."
        )
    with project_log(opened.config) as log, show_progress(f"reading {found.topic}") as progress:
        measured = measure_lateness(log, found, on_progress=progress)
    if json:
        show_json(measured.to_json())
    else:
        _show(measured)


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
    title = f"{measured.stream}: {measured.records:,} records, behind their partition's clock by"
    show_renderable(make_table(title, ["lateness", "records", "share", ""], rows))
    effects = [
        [
            duration_text(each.delay_us) + (" *" if each.delay_us == measured.delay_us else ""),
            each.behind,
            f"{each.behind_share:.4%}",
            duration_text(each.delay_us),
        ]
        for each in measured.delays
    ]
    columns = ["delay", "late at most", "share", "rows close later by"]
    show_renderable(make_table("what a delay would lose and cost (* holds now)", columns, effects))
    if measured.dead:
        show_text(f"{measured.dead:,} records are dead and were not counted")
    if measured.unguarded:
        show_text(
            f"{measured.unguarded:,} records have no arrival: a producer whose clock runs ahead "
            f"makes others look late"
        )
