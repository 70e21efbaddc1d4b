"""`headrace dashboard`: the link that opens the running engine's dashboard."""

import os
import sys
from typing import Annotated

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import JsonOption, note, show_json, show_text
from headrace.errors import Unreachable

__all__ = ["dashboard", "open_in_browser"]


def dashboard(
    project: ProjectOption = None,
    browse: Annotated[
        bool, typer.Option("--open", help="Open it in this machine's browser.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the link to the dashboard; it lets whoever has it in, so keep it to yourself."""
    config = find_config(project)
    from headrace.serve.access import dashboard_link, running_engine

    address = running_engine(config)
    if address is None:
        raise Unreachable(f"{config.folder}: no engine runs; start one with `headrace run`")
    link = dashboard_link(address.url, address.token)
    if json:
        show_json({"link": link})
    else:
        show_text(link)
    if browse and not open_in_browser(link):
        note("this machine has no browser that could be started; open the link elsewhere")


def open_in_browser(link: str) -> bool:
    """Open a link in a browser with windows, where this machine has one; return whether it has.

    One that shows pages in the terminal would take it from what is shown there.
    """
    has_windows = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not has_windows:
        return False
    import webbrowser

    return webbrowser.open(link)
