"""`headrace status`: streams, views and the last turn; more of one of them, or of all."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import JsonOption, console, show_json, show_renderable
from headrace.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Group

    from headrace.project.config import Config

__all__ = ["status"]

WATCH_SECONDS = 1.0


def status(
    name: Annotated[
        str | None, typer.Argument(help="Everything about this view or stream.")
    ] = None,
    project: ProjectOption = None,
    all: Annotated[bool, typer.Option("--all", "-a", help="Everything about all of them.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again every second.")] = False,
    json: JsonOption = False,
) -> None:
    """Show how far streams and views are: lag, rows, late and dead records, the last turn."""
    config = find_config(project)
    if watch and not json and sys.stdout.isatty():
        _watch(config, name, all=all)
    while True:
        found = _take(config, name)
        if json:
            show_json(found)
        else:
            show_renderable(_picture(found, name, all=all))
        if not watch:
            return
        time.sleep(WATCH_SECONDS)


def _take(config: "Config", name: str | None) -> dict[str, Any]:
    return _look(config, name)[0]


def _look(config: "Config", name: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the status, and the last turns of an engine that runs."""
    from headrace.serve.access import open_desk

    # Opened each time: an engine may start or end between two looks.
    with open_desk(config) as desk:
        found, turns = desk.status(), desk.turns()
    return (found if name is None else _only(found, name)), turns


def _only(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a status says about the streams and views of one name. UsageError: none."""
    streams = [each for each in found["streams"] if each["name"] == name]
    views = [each for each in found["views"] if each["name"] == name]
    if not streams and not views:
        from headrace.model.names import closest

        known = dict.fromkeys(each["name"] for each in (*found["views"], *found["streams"]))
        raise UsageError(
            f"there is no view or stream {name}{closest(name, list(known))}; there are: "
            f"{', '.join(known) or 'none'}"
        )
    return {**found, "streams": streams, "views": views}


def _picture(found: dict[str, Any], name: str | None, *, all: bool) -> "Group":
    from headrace.cli.text.status import all_details, details, summary

    if all:
        return all_details(found)
    return summary(found) if name is None else details(found)


def _watch(config: "Config", name: str | None, *, all: bool) -> None:
    from rich.console import Group
    from rich.live import Live

    from headrace.cli.text.overview import overview

    def picture() -> Group:
        found, turns = _look(config, name)
        shown = _picture(found, name, all=all)
        return Group(overview(found, turns), "", shown) if turns else shown

    with Live(picture(), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(WATCH_SECONDS)
            live.update(picture(), refresh=True)
