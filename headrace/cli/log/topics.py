"""`headrace topics`: list, make, describe, change and delete topics."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.asking import YesOption, ask
from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.text.output import (
    JsonOption,
    make_table,
    moment,
    note,
    show_json,
    show_renderable,
    show_text,
)
from headrace.cli.text.quantities import parse_bytes, parse_seconds
from headrace.errors import LogError, UsageError
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.log import Log, Range, Topic, TopicSettings
    from headrace.project.config import Config

__all__ = ["TopicArgument", "topics_app"]

TopicArgument = Annotated[str, typer.Argument(help="The topic's name.")]
RetentionOption = Annotated[
    str | None,
    typer.Option(help="Keep records this long at least, such as 7d; `forever` takes it back."),
]
RetentionBytesOption = Annotated[
    str | None,
    typer.Option(help="Keep so much of each partition at least, such as 2GiB; or `unlimited`."),
]
CompactOption = Annotated[
    bool | None,
    typer.Option(
        "--compact/--no-compact", help="Keep the newest record of each key; or all of them."
    ),
]
TombstonesOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Keep a record without a value this long once it is compacted, such as 7d.",
    ),
]

topics_app = typer.Typer(
    help="List, make, describe, change and delete topics.", invoke_without_command=True
)


@topics_app.callback()
def list_topics(
    context: typer.Context, project: ProjectOption = None, json: JsonOption = False
) -> None:
    """List the topics of the log: partitions, records, bytes; exit 3 if one is damaged."""
    if context.invoked_subcommand is not None:
        return
    config = find_config(project)
    with project_log(config) as log:
        found = [_summary_or_error(log, name) for name in _names(config, log)]
    errors = [entry["error"] for entry in found if "error" in entry]
    columns = ["topic", "partitions", "records", "bytes"]
    if json:
        for entry in found:
            show_json(entry)
    else:
        rows = [[entry.get(column, "damaged") for column in columns] for entry in found]
        show_renderable(make_table("", columns, rows))
    for error in errors:
        note(f"error: {error}")
    if errors:
        raise typer.Exit(LogError.exit_code)


def _names(config: "Config", log: "Log") -> list[str]:
    from headrace.log.embedded.topics import topic_names
    from headrace.log.names import RESERVED_TOPICS
    from headrace.log.opening import EmbeddedPlace

    if isinstance(config.log, EmbeddedPlace):
        # The log itself lists those that it can open.
        return [name for name in topic_names(config.log.path) if name not in RESERVED_TOPICS]
    return [topic.name for topic in log.topics()]


def _summary_or_error(log: "Log", name: str) -> dict[str, Any]:
    try:
        return _summary(log, log.topic(name))
    except LogError as error:
        return {"topic": name, "error": str(error)}


def _summary(log: "Log", topic: "Topic") -> dict[str, Any]:
    from headrace.log import Range

    extents = log.extents(topic.name)
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "records": sum(end - first for first, end in extents.values()),
        "bytes": sum(log.measure(Range(place, *extents[place])) for place in extents),
        **topic.settings._asdict(),
    }


@topics_app.command()
def create(
    topic: TopicArgument,
    partitions: Annotated[int | None, typer.Option(min=1, help="How many; 4 if not said.")] = None,
    retention: RetentionOption = None,
    retention_bytes: RetentionBytesOption = None,
    compact: CompactOption = None,
    tombstones: TombstonesOption = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Make a topic."""
    config = find_config(project)
    from headrace.log import DEFAULT_PARTITIONS, TopicSettings

    settings = _settings(TopicSettings(), retention, retention_bytes, compact, tombstones)
    with project_log(config) as log:
        made = log.create_topic(
            topic, partitions=partitions or DEFAULT_PARTITIONS, settings=settings
        )
    _show_topic(made, "made", json=json)


@topics_app.command()
def change(
    topic: TopicArgument,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="More than now; keys may move to other ones.")
    ] = None,
    retention: RetentionOption = None,
    retention_bytes: RetentionBytesOption = None,
    compact: CompactOption = None,
    tombstones: TombstonesOption = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Give a topic more partitions, or other settings."""
    if {partitions, retention, retention_bytes, compact, tombstones} == {None}:
        raise UsageError(
            "say what to change: --partitions, --retention, --retention-bytes, --compact, "
            "--no-compact or --tombstones"
        )
    config = find_config(project)
    if partitions is not None:
        _refuse_more_partitions(config, topic)
    with project_log(config) as log:
        old = log.topic(topic).settings
        settings = _settings(old, retention, retention_bytes, compact, tombstones)
        changed = log.change_topic(topic, partitions=partitions, settings=settings)
    _show_topic(changed, "changed", json=json)


@topics_app.command()
def describe(topic: TopicArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Show a topic's settings, and for each partition its offsets, bytes and last arrival."""
    config = find_config(project)
    with project_log(config) as log:
        found = log.topic(topic)
        partitions = _partitions(log, topic)
    if json:
        show_json(
            {"topic": topic, **found.settings._asdict(), "partitions": partitions},
        )
        return
    _show_topic(found, "", json=False)
    columns = ["partition", "first offset", "end offset", "bytes", "last arrival"]
    rows = [[*list(entry.values())[:-1], moment(entry["last_arrival_us"])] for entry in partitions]
    show_renderable(make_table("", columns, rows))


def _partitions(log: "Log", topic: str) -> list[dict[str, Any]]:
    from headrace.log import Range

    found = []
    for partition, (first, end) in log.extents(topic).items():
        found.append(
            {
                "partition": partition.number,
                "first_offset": first,
                "end_offset": end,
                "bytes": log.measure(Range(partition, first, end)),
                "last_arrival_us": _last_arrival_us(log, Range(partition, first, end)),
            }
        )
    return found


def _last_arrival_us(log: "Log", range: "Range") -> int | None:
    # Compaction may have taken the record of the last offset, and many before it.
    span = 1
    while range.span > 0:
        arrival_us = None
        last = range._replace(start=max(range.start, range.end - span))
        for batch in log.read(last):
            arrival_us = int(batch["arrival"][-1].value)
        if arrival_us is not None or last == range:
            return arrival_us
        span *= 2
    return None


@topics_app.command()
def delete(
    topic: TopicArgument,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Delete a topic and all its records. A topic that a stream reads is not deleted."""
    config = find_config(project)
    _refuse_if_read(config, topic)
    with project_log(config) as log:
        records = sum(end - first for first, end in log.extents(topic).values())
        question = f"Delete {topic} and its {counted(records, 'record')} for good?"
        ask(question, yes=yes, refused=f"{topic}: not deleted")
        log.delete_topic(topic)
    if json:
        show_json({"topic": topic, "deleted_records": records})
    else:
        show_text(f"deleted {topic} and its {counted(records, 'record')}")


def _refuse_if_read(config: "Config", topic: str) -> None:
    from headrace.project.folder import read_definitions

    readers = [s.name for s in read_definitions(config.folder).streams if s.topic == topic]
    if readers:
        raise UsageError(
            f"{topic}: stream {readers[0]} reads it. Remove the stream from the project and run it "
            f"once; then delete the topic."
        )


def _refuse_more_partitions(config: "Config", topic: str) -> None:
    from headrace.project.folder import read_definitions
    from headrace.project.sources import definition_files

    if not definition_files(config.folder):
        return  # a project may have a log and no definitions
    streams = read_definitions(config.folder).streams
    tables = [each.name for each in streams if each.topic == topic and each.primary_key]
    if tables:
        raise UsageError(
            f"{topic}: table {tables[0]} reads it, and more partitions would part the changes of a "
            f"key, whose order is then not known. Make another topic with as many, append all rows "
            f"to it, and let the table read that."
        )


def _settings(
    settings: "TopicSettings",
    retention: str | None,
    retention_bytes: str | None,
    compact: bool | None,
    tombstones: str | None,
) -> "TopicSettings":
    if retention == "forever":
        settings = settings._replace(retention_ms=None)
    elif retention is not None:
        seconds = parse_seconds("--retention", retention)
        settings = settings._replace(retention_ms=max(1, round(seconds * 1000)))
    if retention_bytes == "unlimited":
        settings = settings._replace(retention_bytes=None)
    elif retention_bytes is not None:
        size = parse_bytes("--retention-bytes", retention_bytes)
        settings = settings._replace(retention_bytes=size)
    if compact is not None:
        settings = settings._replace(compact=compact)
    if tombstones is not None:
        seconds = parse_seconds("--tombstones", tombstones)
        settings = settings._replace(tombstone_ms=max(1, round(seconds * 1000)))
    return settings


def _show_topic(topic: "Topic", done: str, *, json: bool) -> None:
    name, partitions, settings = topic
    if json:
        show_json({"topic": name, "partitions": partitions, **settings._asdict()})
        return
    kept = "forever"
    if settings.retention_ms is not None:
        kept = f"for {settings.retention_ms / 1000:,g} s"
    limit = ""
    if settings.retention_bytes is not None:
        limit = f", {settings.retention_bytes:,} bytes of each partition"
    compacted = ""
    if settings.compact:
        compacted = f"; compacted, tombstones kept for {settings.tombstone_ms / 1000:,g} s"
    text = (
        f"{done} {name}: {counted(partitions, 'partition')}, records kept {kept}{limit}{compacted}"
    )
    show_text(text.strip())
