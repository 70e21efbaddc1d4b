"""Topics as folders: `<log>/<topic>/topic.json`, and one folder per partition.

`topic.json`, version 1: {"version": 1, "partitions": <number>}.

Promises:
- A topic is there whole, with all its partitions, or not at all; of two who create it at once, one
  gets TopicExists.
- A creator that died leaves at most a folder whose name no topic can have; the next one removes it.
"""

import json
import re
import secrets
import shutil
from pathlib import Path

from headrace.errors import InvalidTopic, LogError, TopicExists, TopicNotFound
from headrace.log.base import Topic
from headrace.log.ends import Ends, Mark, write_ends
from headrace.log.files import (
    disk_errors,
    locked,
    make_folder,
    sync_folder,
    write_new_file,
)
from headrace.log.follower import make_segment
from headrace.log.format import NO_ARRIVAL
from headrace.log.tail import Tail

__all__ = ["MAX_PARTITIONS", "check_topic", "create_topic_folder", "list_topics", "load_topic"]

MAX_PARTITIONS = 1024
VERSION = 1
# Kafka's rule, so that a topic can move there under the same name.
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# "~" is in no topic's name.
_LOCK = "~lock"
_CREATING = "~creating-"


def check_topic(name: str, partitions: int) -> None:
    """Refuse a name or a number of partitions that a topic cannot have. InvalidTopic."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise InvalidTopic(
            f"{name!r} cannot be a topic's name. Use 1 to 249 of the letters a-z and A-Z, digits, "
            f"'.', '_' and '-', and neither '.' nor '..' alone."
        )
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise InvalidTopic(
            f"{name}: a topic cannot have {partitions} partitions. Use 1 to {MAX_PARTITIONS}."
        )


def create_topic_folder(path: Path, topic: Topic, *, sync: bool) -> None:
    """Make a topic's folder. TopicExists, InvalidTopic, DiskFull."""
    check_topic(*topic)
    final = path / topic.name
    with locked(path / _LOCK), disk_errors(path):
        if final.exists():
            raise TopicExists(
                f"{topic.name}: the topic is there already, in {final}. Use it, or another name."
            )
        # We hold the lock, so whoever made these is dead.
        for leftover in path.glob(f"{_CREATING}*"):
            shutil.rmtree(leftover)
        creating = path / f"{_CREATING}{secrets.token_hex(8)}"
        make_folder(creating)
        try:
            for number in range(topic.partitions):
                _make_partition(creating / str(number), sync=sync)
            content = json.dumps({"version": VERSION, "partitions": topic.partitions})
            write_new_file(creating / "topic.json", content.encode(), sync=sync)
            creating.rename(final)
        except OSError:
            shutil.rmtree(creating, ignore_errors=True)
            raise
        if sync:
            sync_folder(path)


def _make_partition(folder: Path, *, sync: bool) -> None:
    make_folder(folder)
    position = make_segment(folder, Tail(Mark(0, 0, 0), NO_ARRIVAL, {}), sync=sync)
    start = Mark(0, 0, position)
    write_ends(folder / "ends", Ends(0, 0, start, start))
    if sync:
        sync_folder(folder)


def load_topic(path: Path, name: str) -> Topic:
    """Return a topic. TopicNotFound."""
    file = path / name / "topic.json"
    if not _NAME.fullmatch(name) or not file.is_file():
        raise TopicNotFound(
            f"{name!r}: no such topic in {path}. Make it: `headrace append {name} --create`."
        )
    content = json.loads(file.read_bytes())
    if content.get("version") != VERSION:
        raise LogError(
            f"{file}: this topic has format version {content.get('version')}, this Headrace reads "
            f"version {VERSION}. Use the Headrace that made it, or a newer one."
        )
    return Topic(name, content["partitions"])


def list_topics(path: Path) -> list[Topic]:
    """Return all topics, by name."""
    names = sorted(folder.parent.name for folder in path.glob("*/topic.json"))
    # A topic being created has its file already, but no topic's name yet.
    return [load_topic(path, name) for name in names if _NAME.fullmatch(name)]
