"""A checkpoint of the topic of markers: a new engine need not read it from its start.

It is one file beside the store, in JSON, written under another name and renamed:

    {"v": 1, "end_offset", "epoch", "check", "check_offset", "void",
     "since": number, "floors": [[stream, topic, partition, offset], ...],
     "furthest": [[stream, topic, partition, offset], ...],
     "marks": [[stream, topic, partition, [[number, offset, time_us, delay_us, event_time], ...]]]}

Promises:
- It saves time and decides nothing: without it, or if it is damaged, of another version or of
  another topic, the topic is read from its start.
- Who stands at its floors or behind them, and knows the markers below `since`, gets the same marks
  from it as from the whole topic. A version that is built from the log's start does not, and for
  that the topic is read from its start.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headrace.time.clocks import Mark
from headrace.time.markers import MarkedPartition, MarkerBook

__all__ = ["Checkpoint", "Reader", "read_checkpoint", "write_checkpoint"]

logger = logging.getLogger("headrace.time")

VERSION = 1


class Reader(NamedTuple):
    """Where a unit stands: what it has read of its partitions, and of the topic of markers."""

    offsets: Mapping[MarkedPartition, int]
    time_offset: int


@dataclass(frozen=True)
class Checkpoint:
    """A book of markers, for readers at or behind the floors that know all before `since`."""

    book: MarkerBook
    floors: Mapping[MarkedPartition, int]
    since: int

    def covers(self, reader: Reader) -> bool:
        """Whether a reader gets from the book all that acts on what it will read."""
        return reader.time_offset >= self.since and all(
            offset >= self.floors[place] if place in self.floors else place not in self._seen
            for place, offset in reader.offsets.items()
        )

    @property
    def _seen(self) -> Mapping[MarkedPartition, int]:
        return self.book.furthest()


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Put a checkpoint in the place of the one before it. OSError."""
    book = checkpoint.book
    found = {
        "v": VERSION,
        "end_offset": book.end_offset,
        "epoch": book.epoch,
        "check": book.check,
        "check_offset": book.check_offset,
        "void": book.void,
        "since": checkpoint.since,
        "floors": [[*place, offset] for place, offset in checkpoint.floors.items()],
        "furthest": [[*place, offset] for place, offset in book.furthest().items()],
        "marks": [[*place, marks] for place, marks in book.marks().items()],
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{path.name}~")
    temporary.write_text(json.dumps(found))
    temporary.rename(path)


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file, None if there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())
        return _read(found) if found["v"] == VERSION else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s: cannot be read, so the markers are read from the log: %r", path, error)
        return None


def _read(found: dict[str, Any]) -> Checkpoint:
    marks = {
        MarkedPartition(*place): [_mark(*each) for each in marks]
        for *place, marks in found["marks"]
    }
    numbers = {name: int(found[name]) for name in ("end_offset", "epoch", "check_offset", "void")}
    book = MarkerBook(
        **numbers, check=str(found["check"]), _marks=marks, _furthest=_offsets(found["furthest"])
    )
    return Checkpoint(book, _offsets(found["floors"]), int(found["since"]))


def _mark(
    number: int, offset: int, time_us: int | None, delay_us: int | None, event_time: Any
) -> Mark:
    return Mark(number, offset, time_us, delay_us, event_time and tuple(event_time))


def _offsets(found: list[list[Any]]) -> dict[MarkedPartition, int]:
    return {MarkedPartition(*place): int(offset) for *place, offset in found}
