"""The streams that read a topic, as far as definitions can be read: `append` needs no more.

Promises:
- What is wrong with other definitions, such as a view, does not matter here.
- Without `--key`, `--key-field` or `--no-key`, records are not stored while the key that streams
  declare for them is in doubt: a record that is stored keeps its key and its partition.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.errors import TopicExists, TopicNotFound, UsageError
from headrace.log import DEFAULT_PARTITIONS
from headrace.project.sources import definition_files, read_sources

if TYPE_CHECKING:
    from headrace.cli.log.request import Request
    from headrace.errors import Problem
    from headrace.log import Log
    from headrace.model.definitions import Stream
    from headrace.project.config import Config

__all__ = ["ensure_topic"]


def ensure_topic(
    log: "Log", config: "Config", request: "Request", *, create: bool, partitions: int | None
) -> "tuple[Stream, ...]":
    """Make the topic if it is missing, and return the streams that read it.

    TopicNotFound: no stream reads it, and it is not to be created. UsageError: its streams, and so
    its keys, cannot be known.
    """
    topic = request.topic
    known, problems = _known_streams(config, topic)
    streams = tuple(stream for stream in known if stream.topic == topic)
    if problems and not request.names_key:
        raise _unknown_key(topic, problems)
    try:
        log.topic(topic)
    except TopicNotFound as error:
        if not create and not streams:
            raise _unknown_topic(topic, known, problems) from error
        with suppress(TopicExists):  # another process was faster
            log.create_topic(topic, partitions=partitions or DEFAULT_PARTITIONS)
    return streams


def _known_streams(config: "Config", topic: str) -> "tuple[tuple[Stream, ...], list[Problem]]":
    """Return the streams that could be read, and the problems that leave those of a topic open."""
    from headrace.sql import read_project  # loads sqlglot

    if not definition_files(config.folder):
        return (), []  # a project may have a log and no definitions
    sources, problems = read_sources(config.folder)
    reading = read_project(sources)
    known = reading.project.streams
    is_doubtful = any(stream.topic == topic for stream in reading.doubtful)
    is_known = any(stream.topic == topic for stream in known)
    may_be_missed = bool(problems) or reading.misses_streams
    if is_doubtful or (may_be_missed and not is_known):
        return known, sorted([*problems, *reading.problems])
    return known, []


def _unknown_key(topic: str, problems: "list[Problem]") -> UsageError:
    more = f" (and {len(problems) - 1} more; `headrace check` shows all)" if problems[1:] else ""
    return UsageError(
        f"{topic}: the key of its records is not known, because its streams cannot be read: "
        f"{problems[0]}{more}. Correct the definition; or name the field that the key is in with "
        f"--key-field, pass --key, or append without keys with --no-key."
    )


def _unknown_topic(
    topic: str, known: "tuple[Stream, ...]", problems: "list[Problem]"
) -> TopicNotFound:
    names = ", ".join(sorted({stream.topic for stream in known})) or "none"
    unread = f", and not all could be read: {problems[0]}" if problems else ""
    return TopicNotFound(
        f"{topic}: no such topic, and no stream reads it (those of the project read "
        f"{names}{unread}). To make it, pass --create."
    )
