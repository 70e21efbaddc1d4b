"""`headrace pause` and `resume`: a view, or a sink, of the running engine."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import JsonOption, show_json, show_text
from headrace.errors import Unreachable, UsageError

if TYPE_CHECKING:
    from headrace.serve.client import EngineClient

__all__ = ["pause", "resume"]

NameArgument = Annotated[str, typer.Argument(help="The name of a view or of a sink.")]


def pause(name: NameArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Let a view keep its rows as they are, or a sink be told nothing, also after a restart."""
    _control(name, "pause", project, json)


def resume(name: NameArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Let a paused view or sink go on; it catches up with what it missed, and loses nothing."""
    _control(name, "resume", project, json)


def _control(name: str, action: str, project: ProjectOption, json: bool) -> None:
    config = find_config(project)
    from headrace.serve.access import running_engine
    from headrace.serve.client import EngineClient

    address = running_engine(config)
    if address is None:
        raise Unreachable(
            f"{config.folder}: no engine runs, so there is nothing to {action}; start one with "
            f"`headrace run`"
        )
    client = EngineClient(address)
    try:
        found = client.control(_kind(client, name), name, action)
    finally:
        client.close()
    if json:
        show_json(found)
    else:
        show_text(f"{found['name']} is {found['state']}")


def _kind(client: "EngineClient", name: str) -> str:
    status = client.status()
    if any(sink["name"] == name for sink in status["sinks"]):
        return "sink"
    if any(stream["name"] == name for stream in status["streams"]):
        readers = ", ".join(view["name"] for view in status["views"] if name in view["inputs"])
        raise UsageError(
            f"{name} is a stream, which is read for the views over it; pause one of them: "
            f"{readers or 'there is none'}"
        )
    return "view"
