"""`headrace tail`: records out of the log, for people or programs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.starts import START_HELP, check_start
from headrace.cli.log.topics import TopicArgument
from headrace.cli.text.output import JsonOption, show_json, show_text
from headrace.errors import TopicNotFound, UsageError

if TYPE_CHECKING:
    from headrace.cli.log.tailing import TailRecord

__all__ = ["tail"]


def tail(
    topic: TopicArgument,
    project: ProjectOption = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help=f"{START_HELP}; if not said, latest with --follow."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Read as a member of this group: what it has not shown yet."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the records of a topic, by arrival: partition, offset, arrival, key, value, headers."""
    if group is not None and start not in (None, "earliest", "latest"):
        raise UsageError(
            f"--from {start}: a group goes on where it was. Move it first: "
            f"`headrace groups reset {group} --to {start} --topic {topic}`."
        )
    start = start or ("latest" if follow and group is None else "earliest")
    check_start("--from", start)
    from headrace.cli.log.tailing import group_records, record_text, record_to_json, tail_records

    config = find_config(project)
    with project_log(config) as log:
        known = [each.name for each in log.topics()]
        if topic not in known:
            there = f"there are: {', '.join(known)}" if known else "the log is empty"
            raise TopicNotFound(f"{topic}: no such topic in {config.log}; {there}")
        records: Iterator[TailRecord]
        if group is None:
            records = tail_records(log, topic, start, follow=follow, limit=limit)
        else:
            records = group_records(log, topic, group, start, follow=follow, limit=limit)
        for record in records:
            if json:
                show_json(record_to_json(record))
            else:
                show_text(record_text(record))
