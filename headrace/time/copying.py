"""Copy markers between logs, after the topics that they are about.

A marker says at which offset it acts. A copy may number its records differently, so each offset
becomes the one of the same record there, and the chain of checks is made anew. Repeated, it brings
what is new. Once an engine has begun in the target, time there is its own, and nothing is copied.

Which records are the same is counted from the end back, so that what retention took of either start
is no matter; and compared, so that none is taken for another. Where they are not the same, because
somebody else appended in the target or compaction took some, a note says so instead. A marker that
acts behind what is copied so far waits for the next copy, and those after it wait with it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.errors import TopicExists
from headrace.log.base import Log, Partition, Producer, Range
from headrace.log.copying import copy_producer
from headrace.log.names import TIME_TOPIC
from headrace.log.records import records
from headrace.time.clocks import Micros
from headrace.time.markers import MarkerBook, Marks, chain, read_marks

__all__ = ["copy_markers"]

_PLACE = Partition(TIME_TOPIC, 0)


def copy_markers(source: Log, target: Log, topics: Iterable[str]) -> tuple[int, tuple[str, ...]]:
    """Copy the markers of topics that were copied; return how many, and what could not be kept."""
    wanted = set(topics)
    marks, notes = _translated(
        [each for each in _read(source)[1] if each.stream is None or each.topic in wanted],
        source,
        target,
    )
    if not marks:
        return 0, notes
    book, there = _read(target)
    if list(map(_said, there)) != list(map(_said, marks[: len(there)])):
        begun = (
            f"{TIME_TOPIC}: an engine has begun in the target, so what the engine here learnt of "
            f"time is not copied; copy before the first run"
        )
        return 0, notes or (begun,)
    fresh = marks[len(there) :]
    if not fresh:
        return 0, notes
    if not there:
        with suppress(TopicExists):  # a copy was interrupted before it brought anything
            target.create_topic(TIME_TOPIC, partitions=1)
    last = target.last_sequence(_PLACE, TIME_TOPIC) or 0
    producer = Producer(TIME_TOPIC, max(each.epoch for each in marks), last + len(fresh))
    values = list(chain(fresh, book.check))
    target.append(TIME_TOPIC, records(values), partition=0, producer=producer)
    return len(fresh), notes


def _values(log: Log) -> list[tuple[int, bytes | None]]:
    if all(topic.name != TIME_TOPIC for topic in log.topics()):
        return []
    extent = log.extents(TIME_TOPIC)[_PLACE]
    return [
        (row["offset"], row["value"])
        for batch in log.read(Range(_PLACE, *extent))
        for row in batch.select(["offset", "value"]).to_pylist()
    ]


def _read(log: Log) -> tuple[MarkerBook, list[Marks]]:
    """Return a log's markers as a book, and those of them that are not void one by one."""
    book = MarkerBook()
    found = []
    for number, value in _values(log):
        void = book.void
        book.add(number, value)
        read = read_marks(value)
        if book.void == void and read is not None:
            found.append(read[0])
    return book, found


def _translated(
    marks: Sequence[Marks], source: Log, target: Log
) -> tuple[list[Marks], tuple[str, ...]]:
    """Return the markers with the offsets of the target, and of which topics there are none."""
    places = {Partition(each.topic, mark[0]) for each in marks for mark in each.marks}
    aligned = {place: _align(source, target, place) for place in sorted(places)}
    apart = {place.topic: place for place, offsets in aligned.items() if offsets is None}
    notes = tuple(
        f"{place}: the target does not end with the records that were copied there: others were "
        f"appended, or compaction took some. So what the engine here learnt of the time of "
        f"{topic} is not copied; copy into a topic that nobody else writes to"
        for topic, place in apart.items()
    )
    translated: list[Marks] = []
    for each in marks:
        if each.topic in apart:
            continue
        moved = []
        for partition, offset, time_us in each.marks:
            offsets = aligned[Partition(each.topic, partition)]
            assert offsets is not None
            there = offsets.find(offset)
            if there is None:
                return translated, notes
            moved.append((partition, there, time_us))
        translated.append(replace(each, marks=tuple(moved)))
    return translated, notes


def _said(marks: Marks) -> Marks:
    """Return what a marker says apart from where: of records that are gone that is not known."""
    return replace(marks, marks=tuple((mark[0], 0, mark[2]) for mark in marks.marks))


class _Aligned(NamedTuple):
    """The offsets of the same records here and there; there, also the end after the last."""

    here: Micros
    there: Micros
    uncopied: int | None  # the first record here that is not there yet

    def find(self, offset: int) -> int | None:
        """Return the offset there that stands before the same records, None: it is to come."""
        if self.uncopied is not None and offset > self.uncopied:
            return None
        return int(self.there[np.searchsorted(self.here, offset)])


def _align(source: Log, target: Log, place: Partition) -> _Aligned | None:
    """Return which records of a partition are the same here and there, None: that is unknown."""
    copied_to = target.last_sequence(place, copy_producer(place.topic))
    here, said_here = _offsets(source, place)
    copied = int(np.searchsorted(here, -1 if copied_to is None else copied_to, side="right"))
    there, said_there = _offsets(target, place)
    both = min(copied, len(there))
    start, end = copied - both, target.extents(place.topic)[place].end_offset
    if not np.array_equal(said_here[start:copied], said_there[len(there) - both :]):
        return None
    compacted = any(log.topic(place.topic).settings.compact for log in (source, target))
    if compacted and copied != len(there):
        return None
    uncopied = int(here[copied]) if copied < len(here) else None
    return _Aligned(here[start:copied], np.append(there[len(there) - both :], end), uncopied)


def _offsets(log: Log, place: Partition) -> tuple[Micros, Micros]:
    """Return the offsets of a partition's records, and a number for what each of them says."""
    offsets, said = [np.array([], np.int64)], [np.array([], np.int64)]
    for batch in log.read(Range(place, *log.extents(place.topic)[place])):
        offsets.append(batch["offset"].to_numpy())
        pairs = zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
        said.append(np.fromiter(map(hash, pairs), np.int64, batch.num_rows))
    return np.concatenate(offsets), np.concatenate(said)
