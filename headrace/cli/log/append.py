"""`headrace append`: records into the log."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.topics import TopicArgument
from headrace.cli.output import JsonOption, note, show_json, show_text
from headrace.errors import TopicExists, TopicNotFound, UsageError

if TYPE_CHECKING:
    from headrace.cli.log.lines import Lines
    from headrace.log import Log
    from headrace.project.config import Config

__all__ = ["append"]


def append(
    topic: TopicArgument,
    file: Annotated[str, typer.Argument(help="One record per line; - is stdin.")] = "-",
    project: ProjectOption = None,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_field: Annotated[
        str | None, typer.Option(help="The JSON field to take each record's key from.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", help="name=value, of every record; may be repeated."),
    ] = None,
    tombstone: Annotated[
        bool,
        typer.Option("--tombstone", help="One record without a value for --key, nothing read."),
    ] = False,
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
    if tombstone and (key is None or file != "-"):
        raise UsageError("--tombstone deletes what a key stands for: pass --key, and no file")
    headers = [_header(text) for text in header or []]
    config = find_config(project)
    with project_log(config) as log, _tombstone() if tombstone else _lines(file) as lines:
        _ensure_topic(log, config, topic, create, partitions)
        found = _append_lines(log, topic, lines, key, key_field, headers, partition)
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


@contextmanager
def _lines(file: str) -> "Iterator[Iterable[Lines]]":
    from headrace.cli.log.lines import read_lines

    if file == "-":
        yield read_lines(sys.stdin.buffer, "stdin")
        return
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
        yield read_lines(stream, file)


@contextmanager
def _tombstone() -> "Iterator[Iterable[Lines]]":
    import pyarrow as pa

    from headrace.cli.log.lines import Lines

    yield [Lines(pa.nulls(1, pa.binary()), 0)]


def _ensure_topic(
    log: "Log", config: "Config", topic: str, create: bool, partitions: int | None
) -> None:
    from headrace.log import DEFAULT_PARTITIONS
    from headrace.project.folder import read_definitions

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


def _header(text: str) -> dict[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--header {text}: write name=value")
    return {"name": name, "value": value.encode()}


def _append_lines(
    log: "Log",
    topic: str,
    batches: "Iterable[Lines]",
    key: str | None,
    key_field: str | None,
    headers: list[dict[str, Any]],
    partition: int | None,
) -> dict[str, Any]:
    import pyarrow as pa

    from headrace.cli.log.lines import field_keys
    from headrace.log import APPENDS

    kind = APPENDS.field("headers").type
    of_each = pa.scalar(headers or None, kind)
    count = empty = 0
    places: dict[int, dict[str, int]] = {}
    for lines in batches:
        values = lines.values
        empty += lines.empty
        if key is not None:
            keys = pa.repeat(pa.scalar(key.encode(), pa.binary()), len(values))
        elif key_field is not None:
            keys = field_keys(values, key_field)
        else:
            keys = pa.nulls(len(values), pa.binary())
        table = pa.table([keys, values, pa.repeat(of_each, len(values))], schema=APPENDS)
        count += len(values)
        for range in log.append(topic, table, partition=partition).ranges:
            number = range.partition.number
            place = places.setdefault(
                number, {"partition": number, "records": 0, "start": range.start, "end": 0}
            )
            place["records"] += range.span
            place["end"] = range.end
    found = [places[number] for number in sorted(places)]
    return {"records": count, "empty_lines": empty, "partitions": found}
