"""`headrace log`: look after the log itself."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.output import JsonOption, show_json, show_progress, show_text
from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.log import EmbeddedLog

__all__ = ["log_app"]

log_app = typer.Typer(help="Look after the log itself.", no_args_is_help=True)


@log_app.callback()
def log() -> None:
    """Look after the log itself."""


@log_app.command()
def verify(
    topic: Annotated[str | None, typer.Argument(help="This topic only.")] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Check every stored byte against its checksum; exit 1, each damage named, if one is wrong."""
    config = find_config(project)
    from headrace.log import EmbeddedLog
    from headrace.log.opening import EmbeddedPlace

    if not isinstance(config.log, EmbeddedPlace):
        raise UsageError(
            f"{config.log}: its brokers check what they store. `headrace log verify` is for the "
            f"embedded log."
        )
    with closing(EmbeddedLog(config.log.path)) as opened:
        found = _verify(opened, topic)
    if json:
        show_json(found)
    else:
        for damage in found["damages"]:
            show_text(damage)
        show_text(
            f"{found['records']:,} records in {found['segments']:,} segments "
            f"({found['bytes']:,} bytes) checked; {len(found['damages']):,} damages"
        )
    if found["damages"]:
        raise typer.Exit(1)


def _verify(log: "EmbeddedLog", topic: str | None) -> dict[str, Any]:
    from headrace.log import Range

    names = [topic] if topic is not None else [each.name for each in log.topics()]
    segments = records = size = 0
    damages: list[str] = []
    ranges = [
        Range(place, *extent) for name in names for place, extent in log.extents(name).items()
    ]
    whole = sum(log.measure(range) for range in ranges)
    with show_progress("checking bytes") as progress:
        for name in names:
            for checked in log.verify(name):
                segments += 1
                records += checked.records
                size += checked.bytes
                damages += checked.damages
                progress(min(size, whole), whole)
    return {
        "topics": len(names),
        "segments": segments,
        "records": records,
        "bytes": size,
        "damages": damages,
    }
