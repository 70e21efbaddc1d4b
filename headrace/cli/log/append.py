"""`headrace append`: records into the log."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.topics import TopicArgument
from headrace.cli.text.output import JsonOption, note, show_json, show_text
from headrace.errors import UsageError
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.cli.log.appending import Keys, Tally
    from headrace.cli.log.request import Request
    from headrace.cli.log.runs import Run, Slot, Task, Told
    from headrace.log import Log
    from headrace.model.definitions import Stream
    from headrace.project.config import Config
    from headrace.project.keys import KeyReader
    from headrace.project.row_keys import RowKeyReader

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
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Each record is the primary key of a row to delete from the table that reads the "
            "topic.",
        ),
    ] = False,
    partition: Annotated[int | None, typer.Option(min=0, help="Append to this one.")] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create",
            help="Create the topic if it is missing. Topics of streams are created without this "
            "option.",
        ),
    ] = False,
    partitions: Annotated[int | None, typer.Option(min=1, help="Of a new topic.")] = None,
    json: JsonOption = False,
) -> None:
    """Append records to a topic, keyed as its streams declare. Empty lines are left out."""
    if sum((key is not None, key_field is not None, no_key)) > 1:
        raise UsageError("--key, --key-field and --no-key exclude each other; pass one of them")
    if tombstone and (key is None or file != "-"):
        raise UsageError("--tombstone deletes what a key stands for: pass --key, and no file")
    if delete and (tombstone or key is not None or key_field is not None or no_key):
        raise UsageError(
            "--delete takes the primary key from each record; pass none of --key, --key-field, "
            "--no-key and --tombstone"
        )
    if resume and again:
        raise UsageError("--resume and --again exclude each other; pass one of them")
    if format not in FORMATS:
        raise UsageError(f"--format {format}: write one of {', '.join(FORMATS)}")
    from headrace.cli.log.request import Request  # loads Arrow

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
        delete,
    )
    headers = [_header(text) for text in request.headers]
    config = find_config(project)
    from headrace.cli.log.streams import ensure_topic

    with project_log(config) as log:
        streams = ensure_topic(log, config, request, create=create, partitions=partitions)
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
    appended = counted(found["records"], "record")
    show_text(f"appended {appended} to {topic}" + (places and f": {places}"))
    if found["stored_before"]:
        before = found["stored_before"]
        note(f"{counted(before, 'record')} {'was' if before == 1 else 'were'} stored before")
    if found["empty_lines"]:
        note(f"left out {counted(found['empty_lines'], 'empty line')}")
    if found["without_key"] and found["key"] is not None:
        note(_without_key(found, spread=partition is None))


def _without_key(found: dict[str, Any], *, spread: bool) -> str:
    has = "has" if found["records"] == 1 else "have"
    was = "it was" if found["without_key"] == 1 else "they were"
    return (
        f"{found['without_key']:,} of {counted(found['records'], 'record')} {has} no field "
        f"{found['key']}, so {was} stored without a key"
        f"{' and spread over the partitions' if spread else ''}"
    )


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
    request: "Request",
    streams: "tuple[Stream, ...]",
    headers: list[dict[str, Any]],
) -> dict[str, Any]:
    from headrace.cli.log.appending import Appending
    from headrace.cli.log.runs import Told, take_slot
    from headrace.cli.log.sources import open_source
    from headrace.schema.json_places import steps_of

    keys, place = _keys(streams, request)
    fields = {str(steps_of(column)[0]) for stream in streams for column in stream.columns}
    task = request.task(str(config.log))
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
            deletes=request.deletes,
            resume=request.command("--resume"),
            is_file=request.is_file,
        )
        alone = request.is_file and not request.again
        fits = partial(_fits, log, request)
        with take_slot(config.runtime / "appends", task, alone=alone, fits=fits) as slot:
            stored = _stored(log, slot, task, request)
            if stored is None:
                slot.begin(task)
                stored = Told()
            else:
                slot.go_on(stored)
            tally = appending.run(slot, stored)
    return _found(tally, stored.records, place)


def _fits(log: "Log", request: "Request", run: "Run") -> bool:
    """Tell whether an earlier run of the same input is the one to go on with, or to forget.

    Of a file it is the newest. What came through a pipe has no name: only a run that stopped in the
    middle can go on, and a new one must not take its place.
    """
    if request.is_file:
        return True
    stopped = not run.finished and run.stored_records(log) > 0
    return stopped == request.resume


def _stored(log: "Log", slot: "Slot", task: "Task", request: "Request") -> "Told | None":
    """Return what to go on behind, None to begin anew. UsageError: which, has to be said."""
    earlier = slot.earlier
    if request.resume:
        if earlier is None:
            raise _nothing_to_resume(request)
        if earlier.task.options != task.options:
            raise _other_options(earlier, request)
        stored = earlier.stored(log)
        if stored.records < earlier.before.records:
            raise UsageError(
                f"{request.topic}: the topic no longer knows of the {earlier.before.records:,} "
                f"records that were appended: it was made anew. Append {request.file} without "
                f"--resume."
            )
        return stored
    if earlier is None or earlier.finished or request.again or not request.is_file:
        return None
    stored = earlier.stored(log)
    if stored.records == 0:
        return None
    go_on = request.command("--resume", options=earlier.task.written_options)
    raise UsageError(
        f"{request.file}: an earlier append to {request.topic} stopped after it had stored "
        f"{counted(stored.records, 'record')}. To append the others: `{go_on}`. To append all of "
        f"them once more: `{request.command('--again')}`."
    )


def _nothing_to_resume(request: "Request") -> UsageError:
    if request.is_file:
        return UsageError(
            f"{request.file}: no earlier append of it to {request.topic} is known in this project, "
            f"so there is nothing to go on with. Append it without --resume."
        )
    return UsageError(
        f"no append from a pipe to {request.topic} stopped in the middle, so there is nothing to "
        f"go on with. Append without --resume."
    )


def _other_options(earlier: "Run", request: "Request") -> UsageError:
    options = earlier.task.written_options
    had = f"{request.file}: the earlier append to {request.topic} had"
    if options is None:
        return UsageError(f"{had} other options. Use the options of that append.")
    command = request.command("--resume", options=options)
    return UsageError(f"{had} {options or 'no options'}. Use the same ones: `{command}`.")


def _keys(streams: "tuple[Stream, ...]", request: "Request") -> "tuple[Keys, str | None]":
    """Return what gives records their keys, and the place that these are read from."""
    import pyarrow as pa

    from headrace.project.keys import declared_key, field_key

    if request.key is not None:
        fixed = pa.scalar(request.key.encode(), pa.binary())
        return lambda values: pa.repeat(fixed, len(values)), None
    reader: KeyReader | RowKeyReader | None = None
    if request.key_field is not None:
        reader = field_key(request.key_field)
    elif not request.no_key:
        reader = declared_key(streams, request.topic)
    if request.deletes and not (reader is not None and reader.deletes):
        raise UsageError(
            f"{request.topic}: no table of format 'upsert' reads this topic, so no row can be "
            f"deleted. --tombstone --key KEY appends a record without a value."
        )
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
