"""`headrace log`: look after the log itself."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.asking import YesOption, ask
from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.topics import TopicArgument
from headrace.cli.text.output import JsonOption, note, show_json, show_progress, show_text
from headrace.errors import LogError, TopicNotFound, UsageError
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.log import EmbeddedLog, Log
    from headrace.project.config import Config

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

    path = _embedded_path(config, "verify")
    with closing(EmbeddedLog(path)) as opened:
        found = _verify(opened, path, topic)
    if json:
        show_json(found)
    else:
        for damage in found["damages"]:
            show_text(damage)
        show_text(
            f"{counted(found['records'], 'record')} in {counted(found['segments'], 'segment')} "
            f"({counted(found['bytes'], 'byte')}) checked; "
            f"{counted(len(found['damages']), 'damage')}"
        )
    if found["damages"]:
        raise typer.Exit(1)


@log_app.command()
def repair(
    topic: TopicArgument,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Give up records that are damaged or gone, and all before them, so that the topic opens."""
    config = find_config(project)
    from headrace.log import EmbeddedLog
    from headrace.log.embedded.upkeep.repair import give_up, plan_repair
    from headrace.log.names import TIME_TOPIC

    path = _embedded_path(config, "repair")
    if topic == TIME_TOPIC:
        raise UsageError(
            f"{topic}: every answer depends on all of its records, so none can be given up; "
            f"`headrace log verify {topic}` says what to do about a damage"
        )
    with closing(EmbeddedLog(path)) as opened:
        plans = plan_repair(list(opened.verify(topic)), path)
    for plan in plans:
        note(str(plan))
    if plans:
        question = f"Give up these records of {topic} for good?"
        ask(question, yes=yes, refused=f"{topic}: nothing was given up")
        for plan in plans:
            give_up(plan)
    elif not json:
        show_text(f"{topic}: nothing is damaged")
    if json:
        show_json({"topic": topic, "given_up": [plan.to_json() for plan in plans]})


@log_app.command()
def copy(
    topic: Annotated[
        list[str] | None, typer.Argument(help="These topics only; else all there are.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="The folder of an embedded log; made if missing.")
    ] = None,
    to_project: Annotated[
        Path | None, typer.Option(help="The log of this project, embedded or on Kafka.")
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Copy topics, and where groups are in them, into another log; goes on if interrupted."""
    if (to is None) == (to_project is None):
        raise UsageError("say where to: --to FOLDER, or --to-project DIR")
    config = find_config(project)
    from headrace.log.opening import EmbeddedPlace, open_log

    place = find_config(to_project).log if to is None else EmbeddedPlace(Path(to).absolute())
    if place == config.log:
        raise UsageError(f"{place}: this is the log to copy from; choose another one")
    with project_log(config) as source, closing(open_log(place)) as target:
        found = _copy(source, target, topic)
    if json:
        show_json({"to": str(place), **found})
        return
    for entry in found["topics"]:
        show_text(f"copied {counted(entry['records'], 'record')} of {entry['topic']}")
    if found["markers"]:
        show_text(f"copied {counted(found['markers'], 'record')} of headrace.time")
    for entry in found["groups"]:
        left_out = "".join(f"; not in {name}, which is compacted" for name in entry["left_out"])
        offsets = counted(entry["offsets"], "offset")
        show_text(f"group {entry['group']} goes on there, {offsets}{left_out}")
    for text in found["notes"]:
        note(text)


def _copy(source: "Log", target: "Log", topics: list[str] | None) -> dict[str, Any]:
    from headrace.consume.copying import copy_groups
    from headrace.log.copying import copy_topic
    from headrace.log.names import CLOSED_TOPICS
    from headrace.time.copying import copy_markers

    # Markers are copied below. Which requests were carried out is of no use there: who sent them
    # sends them here again.
    names = [name for name in topics or _names(source) if name not in CLOSED_TOPICS]
    whole = sum(end - first for name in names for first, end in source.extents(name).values())
    done = 0
    with show_progress("copying") as progress:

        def advance(records: int) -> None:
            nonlocal done
            done += records
            progress(done, max(done, whole))

        copied = [copy_topic(source, target, name, on_progress=advance) for name in names]
    markers, notes = copy_markers(source, target, names)
    return {
        "topics": [{"topic": each.topic, "records": each.records} for each in copied],
        "markers": markers,
        "groups": list(copy_groups(source, target, set(names))),
        "notes": [*(text for each in copied for text in each.notes), *notes],
    }


def _names(log: "Log") -> list[str]:
    return [each.name for each in log.topics()]


def _embedded_path(config: "Config", command: str) -> Path:
    from headrace.log.opening import EmbeddedPlace

    if not isinstance(config.log, EmbeddedPlace):
        raise UsageError(
            f"{config.log}: its brokers check what they store. `headrace log {command}` is for the "
            f"embedded log."
        )
    return config.log.path


def _verify(log: "EmbeddedLog", path: Path, topic: str | None) -> dict[str, Any]:
    """Check all topics, and go on past those that cannot be opened."""
    from headrace.log.embedded.topics import topic_names

    names = [topic] if topic is not None else topic_names(path)
    segments = records = size = 0
    damages: list[str] = []
    whole = sum(file.stat().st_size for name in names for file in (path / name).glob("*/*.log"))
    with show_progress("checking", "bytes") as progress:
        for name in names:
            try:
                for checked in log.verify(name):
                    segments += checked.path.suffix == ".log"
                    records += checked.records
                    size += checked.bytes
                    damages += checked.damages
                    progress(min(size, whole), whole)
            except LogError as error:
                if topic is not None and isinstance(error, TopicNotFound):
                    raise
                damages.append(str(error))
    return {
        "topics": len(names),
        "segments": segments,
        "records": records,
        "bytes": size,
        "damages": damages,
    }
