"""Copy markers between logs, after the topics that they are about.

A marker says at which offset it acts. A copy may number its records differently, so each offset
becomes the one of the same record there, and the chain of checks is made anew. Repeated, it brings
what is new. Once an engine has begun in the target, time there is its own, and nothing is copied.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

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
    translation: dict[Partition, tuple[Micros, Micros]] = {}
    marks = [
        _translate(each, source, target, translation)
        for each in _read(source)[1]
        if each.stream is None or each.topic in wanted
    ]
    if not marks:
        return 0, ()
    book, there = _read(target)
    if there != marks[: len(there)]:
        note = (
            f"{TIME_TOPIC}: an engine has begun in the target, so what the engine here learnt of "
            f"time is not copied; copy before the first run"
        )
        return 0, (note,)
    fresh = marks[len(there) :]
    if not fresh:
        return 0, ()
    if not there:
        with suppress(TopicExists):  # a copy was interrupted before it brought anything
            target.create_topic(TIME_TOPIC, partitions=1)
    last = target.last_sequence(_PLACE, TIME_TOPIC) or 0
    producer = Producer(TIME_TOPIC, max(each.epoch for each in marks), last + len(fresh))
    values = list(chain(fresh, book.check))
    target.append(TIME_TOPIC, records(values), partition=0, producer=producer)
    return len(fresh), ()


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


def _translate(
    marks: Marks, source: Log, target: Log, known: dict[Partition, tuple[Micros, Micros]]
) -> Marks:
    moved = []
    for partition, offset, time_us in marks.marks:
        place = Partition(marks.topic, partition)
        if place not in known:
            known[place] = _aligned(source, target, place)
        here, there = known[place]
        moved.append((partition, int(there[np.searchsorted(here, offset)]), time_us))
    return replace(marks, marks=tuple(moved))


def _aligned(source: Log, target: Log, place: Partition) -> tuple[Micros, Micros]:
    """Return the offsets of the same records here and there; there, also the end after the last.

    Counted from the copied end back, so that what retention took of either start is no matter.
    """
    copied_to = target.last_sequence(place, copy_producer(place.topic))
    here = _offsets(source, place)
    here = here[here <= (-1 if copied_to is None else copied_to)]
    there = _offsets(target, place)
    both = min(len(here), len(there))
    end = target.extents(place.topic)[place].end_offset
    return here[len(here) - both :], np.append(there[len(there) - both :], end)


def _offsets(log: Log, place: Partition) -> Micros:
    extent = log.extents(place.topic)[place]
    found = [batch["offset"].to_numpy() for batch in log.read(Range(place, *extent))]
    return np.concatenate([np.array([], np.int64), *found])
