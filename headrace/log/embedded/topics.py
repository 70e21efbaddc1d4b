"""Topics as folders: `<log>/<topic>/topic.json`, and one folder per partition.

`topic.json`, version 3: {"version": 3, "id": <random>, "partitions": <number>,
"retention_ms": <number or null>, "retention_bytes": <number or null>, "compact": <true or false>,
"tombstone_ms": <number>}. The id tells a topic from an older one of the same name. Version 2 has
neither `compact` nor `tombstone_ms`, version 1 has `partitions` only.

Promises:
- A topic is there whole, with all its partitions, or not at all; of two who create it at once, one
  gets TopicExists.
- A creator or deleter that died leaves at most a folder whose name no topic can have; the next one
  removes it. One that died adding partitions leaves folders that nobody reads.
"""

import json
import secrets
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from headrace.errors import LogDamaged, LogError, TopicExists, TopicNotFound
from headrace.log.base import Partition, Topic, TopicSettings
from headrace.log.checks import changed_topic, check_topic, is_topic_name
from headrace.log.embedded.ends import Ends, Mark, write_ends
from headrace.log.embedded.files import (
    OpenFile,
    disk_errors,
    locked,
    make_folder,
    sync_folder,
    write_new_file,
)
from headrace.log.embedded.follower import make_segment
from headrace.log.embedded.format import NO_ARRIVAL
from headrace.log.embedded.tail import Tail

__all__ = [
    "StoredTopic",
    "change_topic_folder",
    "create_topic_folder",
    "delete_topic_folder",
    "list_topics",
    "load_topic",
    "partition_folder",
    "topic_names",
    "topic_stamp",
]

VERSION = 3
# "~" is in no topic's name.
_LOCK = "~lock"
_CREATING = "~creating-"
_DELETING = "~deleting-"


class StoredTopic(NamedTuple):
    """A topic as its file says; `id` differs from that of an older topic of the same name."""

    topic: Topic
    id: str


def partition_folder(path: Path, partition: Partition) -> Path:
    """Return where a log keeps a partition."""
    return path / partition.topic / str(partition.number)


def create_topic_folder(path: Path, topic: Topic, *, sync: bool) -> None:
    """Make a topic's folder. TopicExists, InvalidTopic, DiskFull."""
    check_topic(topic)
    final = path / topic.name
    with locked(path / _LOCK), disk_errors(path):
        if final.exists():
            raise TopicExists(
                f"{topic.name}: the topic is there already, in {final}. Use it, or another name."
            )
        _remove_leftovers(path)
        creating = path / f"{_CREATING}{secrets.token_hex(8)}"
        make_folder(creating)
        try:
            for number in range(topic.partitions):
                _make_partition(creating / str(number), sync=sync)
            _write_topic(creating, StoredTopic(topic, secrets.token_hex(8)), sync=sync)
            creating.rename(final)
        except OSError:
            shutil.rmtree(creating, ignore_errors=True)
            raise
        if sync:
            sync_folder(path)


def change_topic_folder(
    path: Path,
    name: str,
    *,
    partitions: int | None,
    settings: TopicSettings | None,
    sync: bool,
) -> Topic:
    """Add partitions, or change settings. TopicNotFound, InvalidTopic, DiskFull."""
    with locked(path / _LOCK), disk_errors(path):
        old, id = load_topic(path, name)
        topic = changed_topic(old, partitions, settings)
        for number in range(old.partitions, topic.partitions):
            folder = path / name / str(number)
            if folder.exists():
                shutil.rmtree(folder)  # of somebody who died before saying that it is there
            _make_partition(folder, sync=sync)
        _write_topic(path / name, StoredTopic(topic, id), sync=sync)
    return topic


def delete_topic_folder(path: Path, name: str) -> None:
    """Remove a topic's folder. TopicNotFound."""
    with locked(path / _LOCK), disk_errors(path):
        topic, _ = load_topic(path, name)
        with ExitStack() as held:
            # Whoever is appending finishes first; whoever waits finds that its lock is gone.
            for number in range(topic.partitions):
                held.enter_context(locked(path / name / str(number) / "lock"))
            # One step for all who look; then the files go.
            (path / name).rename(path / f"{_DELETING}{secrets.token_hex(8)}")
            sync_folder(path)
        _remove_leftovers(path)


def _remove_leftovers(path: Path) -> None:
    # We hold the lock, so whoever made these is done or dead.
    for pattern in (f"{_CREATING}*", f"{_DELETING}*"):
        for leftover in path.glob(pattern):
            shutil.rmtree(leftover)


def _write_topic(folder: Path, stored: StoredTopic, *, sync: bool) -> None:
    content = {
        "version": VERSION,
        "id": stored.id,
        "partitions": stored.topic.partitions,
        **stored.topic.settings._asdict(),
    }
    write_new_file(folder / "topic.json", json.dumps(content).encode(), sync=sync)


def _make_partition(folder: Path, *, sync: bool) -> None:
    make_folder(folder)
    position = make_segment(folder, Tail(Mark(0, 0, 0), NO_ARRIVAL, {}), sync=sync)
    start = Mark(0, 0, position)
    # Cuts begin anywhere: who still has an older topic of this name open notices by them.
    write_ends(folder / "ends", Ends(0, secrets.randbits(62), start, start))
    if sync:
        # A transaction that a power loss interrupts is told from others by the ends.
        OpenFile(folder / "ends").sync()
        sync_folder(folder)


def load_topic(path: Path, name: str) -> StoredTopic:
    """Return a topic. TopicNotFound, LogDamaged."""
    file = path / name / "topic.json"
    is_name = is_topic_name(name)
    is_there = is_name and file.is_file()
    if is_name and not is_there and _partition_folders(path / name):
        is_there = file.is_file()  # the topic may have been made just now
        if not is_there:
            raise _damaged_topic(file, "it is gone, and the partitions are there")
    if not is_there:
        raise TopicNotFound(
            f"{name!r}: no such topic in {path}. Make it: `headrace append {name} --create`; or, "
            f"if it was deleted by mistake, restore its folder: `cp -r COPY/{name} {path}/`."
        )
    try:
        content = json.loads(file.read_bytes())
        content["partitions"] = int(content["partitions"])
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged_topic(file, "it cannot be read") from error
    if content.get("version") not in (1, 2, VERSION):
        raise LogError(
            f"{file}: this topic has format version {content.get('version')}, this Headrace reads "
            f"versions 1 to {VERSION}. Use the Headrace that made it, or a newer one."
        )
    stored = {name: content[name] for name in TopicSettings._fields if name in content}
    settings = TopicSettings(**stored)
    return StoredTopic(Topic(name, content["partitions"], settings), content.get("id", ""))


def _partition_folders(folder: Path) -> list[Path]:
    return [each for each in folder.glob("*") if each.name.isdigit() and each.is_dir()]


def _damaged_topic(file: Path, reason: str) -> LogDamaged:
    count = len(_partition_folders(file.parent))
    return LogDamaged(
        f"{file} is damaged: {reason}. The records are not touched. Restore the file from a copy, "
        f"or write it anew, without the topic's settings: "
        f'`echo \'{{"version": 1, "partitions": {count}}}\' > {file}`.'
    )


def topic_names(path: Path) -> list[str]:
    """Return the names of all topics, also of those whose file is damaged or gone."""
    folders = (folder for folder in path.glob("*") if is_topic_name(folder.name))
    return sorted(
        folder.name
        for folder in folders
        if (folder / "topic.json").exists() or _partition_folders(folder)
    )


def topic_stamp(path: Path, name: str) -> object:
    """Return what differs whenever a topic's file is another one; None if there is none."""
    try:
        file = (path / name / "topic.json").stat()
    except (OSError, ValueError):  # such as a null byte in the name
        return None
    return file.st_ino, file.st_mtime_ns, file.st_ctime_ns, file.st_size


def list_topics(path: Path) -> list[Topic]:
    """Return all topics, by name."""
    names = sorted(folder.parent.name for folder in path.glob("*/topic.json"))
    # A topic being created has its file already, but no topic's name yet.
    found = []
    for name in names:
        if is_topic_name(name):
            with suppress(TopicNotFound):  # deleted since we looked
                found.append(load_topic(path, name).topic)
    return found
