"""`headrace append`: records into the log."""

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.topics import TopicArgument
from headrace.cli.output import JsonOption, note, show_json, show_text
from headrace.errors import TopicExists, TopicNotFound, UsageError

if TYPE_CHECKING:
    from headrace.cli.log.appending import Keys, Tally
    from headrace.cli.log.runs import Slot, Task, Told
    from headrace.log import Log
    from headrace.model.definitions import Stream
    from headrace.project.config import Config

__all__ = ["append"]

FORMATS = ("auto", "lines", "csv")


def append(
    topic: TopicArgument,
    file: Annotated[
        str, typer.Argument(help="One record per line, or CSV with a header; - is stdin.")
    ] = "-",
    project: ProjectOption = None,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            help="The JSON field, or path such as $.a.b, to take each record's key from; without "
            "it, the one that the topic's streams declare."
        ),
    ] = None,
    no_key: Annotated[
        bool, typer.Option("--no-key", help="No keys, although a stream declares one.")
    ] = False,
    format: Annotated[
        str, typer.Option(help="lines, csv (each row a JSON object), or auto: by the name.")
    ] = "auto",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Append what an earlier append of FILE has not stored."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Append all of FILE, although an earlier one stored a part."),
    ] = False,
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
    """Append records to a topic, keyed as its streams declare. Empty lines are left out."""
    if sum((key is not None, key_field is not None, no_key)) > 1:
        raise UsageError("--key, --key-field and --no-key exclude each other; pass one of them")
    if tombstone and (key is None or file != "-"):
        raise UsageError("--tombstone deletes what a key stands for: pass --key, and no file")
    if resume and again:
        raise UsageError("--resume and --again exclude each other; pass one of them")
    if format not in FORMATS:
        raise UsageError(f"--format {format}: write one of {', '.join(FORMATS)}")
    request = Request(
        topic,
        file,
        None if project is None else str(project),
        key,
        key_field,
        no_key,
        format,
        resume,
        again,
        tuple(header or ()),
        partition,
    )
    headers = [_header(text) for text in request.headers]
    config = find_config(project)
    with project_log(config) as log:
        streams = _ensure_topic(log, config, request, create, partitions)
        if tombstone:
            found = _append_tombstone(log, topic, str(key), headers, partition)
        else:
            found = _append_source(log, config, request, streams, headers)
    if json:
        show_json({"topic": topic, **found})
        return
    places = ", ".join(
        f"{place['partition']}@{place['start']}..{place['end'] - 1}"
        for place in found["partitions"]
    )
    show_text(f"appended {found['records']:,} records to {topic}" + (places and f": {places}"))
    if found["stored_before"]:
        note(f"{found['stored_before']:,} records were stored before")
    if found["empty_lines"]:
        note(f"left out {found['empty_lines']:,} empty lines")
    if found["without_key"] and found["key"] is not None:
        note(
            f"{found['without_key']:,} of {found['records']:,} records have no {found['key']} to "
            f"be read as their key: they have no key, and went to any partition"
        )


@dataclass(frozen=True)
class Request:
    """What is to be appended, and how, as it was written."""

    topic: str
    file: str
    project: str | None
    key: str | None
    key_field: str | None
    no_key: bool
    format: str
    resume: bool
    again: bool
    headers: tuple[str, ...]
    partition: int | None

    @property
    def options(self) -> list[str]:
        """What decides how a line becomes a record: with other ones a run does not go on."""
        found = [] if self.key is None else ["--key", self.key]
        found += [] if self.key_field is None else ["--key-field", self.key_field]
        found += ["--no-key"] if self.no_key else []
        found += [] if self.format == "auto" else ["--format", self.format]
        found += [] if self.partition is None else ["--partition", str(self.partition)]
        return found + [word for text in self.headers for word in ("--header", text)]

    def command(self, option: str) -> str:
        """Return the command to paste that appends the same with one more option."""
        where = [] if self.project is None else ["--project", self.project]
        words = ["headrace", "append", self.topic, self.file, *where, *self.options, option]
        return " ".join(map(shlex.quote, words))


def _ensure_topic(
    log: "Log", config: "Config", request: Request, create: bool, partitions: int | None
) -> "tuple[Stream, ...]":
    """Make the topic if it is missing, and return the streams that read it.

    Definitions are read for the key and for the topic only, so those who say both do without.
    """
    from headrace.log import DEFAULT_PARTITIONS

    streams: tuple[Stream, ...] = ()
    if request.key is None and request.key_field is None and not request.no_key:
        streams = _streams(config)
    try:
        log.topic(request.topic)
    except TopicNotFound as error:
        streams = streams or (() if create else _streams(config))
        if not create and all(stream.topic != request.topic for stream in streams):
            known = ", ".join(sorted({stream.topic for stream in streams})) or "none"
            raise TopicNotFound(
                f"{request.topic}: no such topic, and no stream reads it (those of the project "
                f"read {known}). To make it, pass --create."
            ) from error
        with suppress(TopicExists):  # another process was faster
            log.create_topic(request.topic, partitions=partitions or DEFAULT_PARTITIONS)
    return tuple(stream for stream in streams if stream.topic == request.topic)


def _streams(config: "Config") -> "tuple[Stream, ...]":
    from headrace.project.folder import read_definitions

    # A project may have a log and no definitions.
    return read_definitions(config.folder).streams if any(config.folder.glob("*.sql")) else ()


def _header(text: str) -> dict[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--header {text}: write name=value")
    return {"name": name, "value": value.encode()}


def _append_tombstone(
    log: "Log", topic: str, key: str, headers: list[dict[str, Any]], partition: int | None
) -> dict[str, Any]:
    import pyarrow as pa

    from headrace.cli.log.appending import Tally
    from headrace.log import APPENDS

    record = {"key": key.encode(), "value": None, "headers": headers or None}
    tally = Tally(records=1)
    table = pa.Table.from_pylist([record], APPENDS)
    tally.add(log.append(topic, table, partition=partition).ranges)
    return _found(tally, 0, None)


def _append_source(
    log: "Log",
    config: "Config",
    request: Request,
    streams: "tuple[Stream, ...]",
    headers: list[dict[str, Any]],
) -> dict[str, Any]:
    from headrace.cli.log.appending import Appending
    from headrace.cli.log.runs import Task, Told, take_slot
    from headrace.cli.log.sources import STDIN, open_source
    from headrace.schema.json_places import steps_of

    keys, place = _keys(streams, request)
    fields = {str(steps_of(column)[0]) for stream in streams for column in stream.columns}
    is_file = request.file != "-" and Path(request.file).is_file()  # no pipe, which has no name
    origin = os.path.abspath(request.file) if is_file else STDIN
    task = Task(str(config.log), request.topic, origin, shlex.join(request.options))
    with open_source(
        request.file, format=request.format, topic=request.topic, fields=fields
    ) as source:
        appending = Appending(
            log,
            request.topic,
            source,
            keys=keys,
            headers=headers,
            partition=request.partition,
            resume=request.command("--resume"),
            is_file=is_file,
        )
        alone = is_file and not request.again
        with take_slot(config.runtime / "appends", task, alone=alone) as slot:
            stored = _stored(log, slot, task, request)
            if stored is None:
                slot.begin(task)
                stored = Told()
            else:
                slot.go_on(stored)
            tally = appending.run(slot, stored)
    return _found(tally, stored.records, place)


def _stored(log: "Log", slot: "Slot", task: "Task", request: Request) -> "Told | None":
    """Return what to go on behind, None to begin anew. UsageError: which, has to be said."""
    from headrace.cli.log.sources import STDIN

    earlier = slot.run if slot.run is not None and slot.run.task.is_same_input(task) else None
    if request.resume:
        if earlier is None:
            raise UsageError(
                f"{request.file}: no earlier append of it to {request.topic} is known in this "
                f"project, so there is nothing to go on with. Append it without --resume."
            )
        if earlier.task.options != task.options:
            raise UsageError(
                f"{request.file}: the earlier append to {request.topic} had "
                f"{earlier.task.options or 'no options'}; go on with the same, so that every "
                f"record is made alike."
            )
        stored = earlier.stored(log)
        if stored.records < earlier.before.records:
            raise UsageError(
                f"{request.topic}: the topic no longer knows of the {earlier.before.records:,} "
                f"records that were appended: it was made anew. Append {request.file} without "
                f"--resume."
            )
        return stored
    if earlier is None or earlier.finished or request.again or task.source == STDIN:
        return None
    stored = earlier.stored(log)
    if stored.records == 0:
        return None
    raise UsageError(
        f"{request.file}: an earlier append to {request.topic} stopped after it had stored "
        f"{stored.records:,} records. To append the others: `{request.command('--resume')}`. To "
        f"append all of them once more: `{request.command('--again')}`."
    )


def _keys(streams: "tuple[Stream, ...]", request: Request) -> "tuple[Keys, str | None]":
    """Return what gives records their keys, and the place that these are read from."""
    import pyarrow as pa

    from headrace.project.keys import declared_key, field_key

    if request.key is not None:
        fixed = pa.scalar(request.key.encode(), pa.binary())
        return lambda values: pa.repeat(fixed, len(values)), None
    reader = None
    if request.key_field is not None:
        reader = field_key(request.key_field)
    elif not request.no_key:
        reader = declared_key(streams, request.topic)
    if reader is None:
        return lambda values: pa.nulls(len(values), pa.binary()), None
    return reader, reader.place


def _found(tally: "Tally", stored_before: int, key: str | None) -> dict[str, Any]:
    return {
        "records": tally.records,
        "stored_before": stored_before,
        "empty_lines": tally.empty,
        "key": key,
        "without_key": tally.without_key,
        "partitions": [tally.places[number] for number in sorted(tally.places)],
    }
