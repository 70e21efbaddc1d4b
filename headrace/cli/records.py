"""`headrace append` and `tail`: records into the log and out of it."""

import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.output import JsonOption, note, show_json, show_text
from headrace.cli.topics import TopicArgument
from headrace.errors import TopicExists, TopicNotFound, UsageError

if TYPE_CHECKING:
    from headrace.engine.project import Config
    from headrace.log import EmbeddedLog

__all__ = ["append", "tail"]


def append(
    topic: TopicArgument,
    file: Annotated[str, typer.Argument(help="One record per line; - is stdin.")] = "-",
    project: ProjectOption = None,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_field: Annotated[
        str | None, typer.Option(help="The JSON field to take each record's key from.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Append to this one.")] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the topic if it is missing (a stream's is).")
    ] = False,
    partitions: Annotated[int | None, typer.Option(min=1, help="Of a new topic.")] = None,
    json: JsonOption = False,
) -> None:
    """Append records to a topic: one per line, bytes as they are. Empty lines are left out."""
    if key is not None and key_field is not None:
        raise UsageError("--key and --key-field exclude each other; pass one of them")
    config = find_config(project)
    from headrace.log import EmbeddedLog

    with closing(EmbeddedLog(config.log_path)) as log, _input(file) as stream:
        _ensure_topic(log, config, topic, create, partitions)
        found = _append_lines(log, topic, stream, file, key, key_field, partition)
    if json:
        show_json({"topic": topic, **found})
        return
    places = ", ".join(
        f"{place['partition']}@{place['start']}..{place['end'] - 1}"
        for place in found["partitions"]
    )
    show_text(f"appended {found['records']:,} records to {topic}" + (places and f": {places}"))
    if found["empty_lines"]:
        note(f"left out {found['empty_lines']:,} empty lines")


def _input(file: str) -> Any:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error


def _ensure_topic(
    log: "EmbeddedLog", config: "Config", topic: str, create: bool, partitions: int | None
) -> None:
    from headrace.engine.project import read_definitions
    from headrace.log import DEFAULT_PARTITIONS

    try:
        log.topic(topic)
    except TopicNotFound as error:
        if not create:
            streams = read_definitions(config.folder).streams
            if all(stream.topic != topic for stream in streams):
                known = sorted({stream.topic for stream in streams})
                raise TopicNotFound(
                    f"{topic}: no such topic, and no stream reads it (those of the project read "
                    f"{', '.join(known)}). To make it, pass --create."
                ) from error
    else:
        return
    try:
        log.create_topic(topic, partitions=partitions or DEFAULT_PARTITIONS)
    except TopicExists:
        return  # another process was faster


def _append_lines(
    log: "EmbeddedLog",
    topic: str,
    stream: BinaryIO,
    name: str,
    key: str | None,
    key_field: str | None,
    partition: int | None,
) -> dict[str, Any]:
    import pyarrow as pa

    from headrace.cli.lines import field_keys, read_lines
    from headrace.log import APPENDS

    count = empty = 0
    places: dict[int, dict[str, int]] = {}
    for lines in read_lines(stream, "stdin" if name == "-" else name):
        values = lines.values
        empty += lines.empty
        if key is not None:
            keys = pa.repeat(pa.scalar(key.encode(), pa.binary()), len(values))
        elif key_field is not None:
            keys = field_keys(values, key_field)
        else:
            keys = pa.nulls(len(values), pa.binary())
        headers = pa.nulls(len(values), APPENDS.field("headers").type)
        table = pa.table([keys, values, headers], schema=APPENDS)
        for range in log.append(topic, table, partition=partition).ranges:
            number = range.partition.number
            place = places.setdefault(
                number, {"partition": number, "records": 0, "start": range.start, "end": 0}
            )
            place["records"] += range.span
            place["end"] = range.end
            count += range.span
    found = [places[number] for number in sorted(places)]
    return {"records": count, "empty_lines": empty, "partitions": found}


def tail(
    topic: TopicArgument,
    project: ProjectOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="earliest (the default), latest (that of --follow), an offset, or a time in ISO "
            "8601, UTC unless it says otherwise.",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the records of a topic, by arrival: partition, offset, arrival, key, value, headers."""
    from headrace.cli.tailing import parse_time, record_text, record_to_json, tail_records

    start = start or ("latest" if follow else "earliest")
    if start not in ("earliest", "latest") and not start.isdecimal() and not parse_time(start):
        raise UsageError(
            f"--from {start}: write earliest, latest, an offset of 0 or more, or a time such as "
            f"2026-01-31T12:00:00Z"
        )
    config = find_config(project)
    from headrace.log import EmbeddedLog

    with closing(EmbeddedLog(config.log_path)) as log:
        known = [each.name for each in log.topics()]
        if topic not in known:
            there = f"there are: {', '.join(known)}" if known else "the log is empty"
            raise TopicNotFound(f"{topic}: no such topic in {config.log_path}; {there}")
        for record in tail_records(log, topic, start, follow=follow, limit=limit):
            if json:
                show_json(record_to_json(record))
            else:
                show_text(record_text(record))
