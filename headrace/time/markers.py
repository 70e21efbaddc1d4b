"""Markers: what the engine learnt from outside the log, written down before it acts.

They are the records of the topic `headrace.time`, one partition, never compacted. A value is JSON:

    {"v": 1, "epoch": 7, "check": "..."}                     an engine of epoch 7 begins
    {"v": 1, "epoch": 7, "stream": "payments", "topic": "payments", "why": "idle",
     "event_time": ["ts", null], "marks": [[0, 120, 1767225600000000], ...], "check": "..."}
    {..., "why": "learnt", "delay_us": 30000000, "marks": [[0, 120, null], ...], "check": "..."}

- `marks` are [partition, offset, time in microseconds or null]; `delay_us` holds for all of them.
- `event_time` is the column and how it is read: what was learnt of one time is nothing to
  a stream that goes by another. A marker without it speaks of whatever time the stream goes by.
- A delay is for streams that learn theirs, and never longer than they allow.
- `check` is the first 16 hexadecimal digits of sha256 over the check before it and the value
  without its own, as JSON with sorted keys: a record that does not know what stands before it
  does not belong here.
A record is *void*, counted and otherwise ignored, when it is not of this form, its check is wrong,
or its epoch is not the one of the engine that began last. Void records change no answer.
"""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from headrace.model.definitions import Stream
from headrace.time.clocks import NEVER, UNKNOWN, EventTime, Mark

__all__ = ["MarkedPartition", "MarkerBook", "Marks", "chain", "event_time_of", "read_marks"]

VERSION = 1
_CHECK_DIGITS = 16


class MarkedPartition(NamedTuple):
    """A partition as a stream reads it, for as long as it reads that topic."""

    stream: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Marks:
    """The content of one record: an epoch that begins, or marks of a stream's partitions."""

    epoch: int
    stream: str | None = None  # None: the epoch begins
    topic: str = ""
    why: str = ""
    delay_us: int | None = None
    marks: tuple[tuple[int, int, int | None], ...] = ()
    event_time: EventTime | None = None

    def body(self) -> dict[str, Any]:
        """Return the value without its check."""
        if self.stream is None:
            return {"v": VERSION, "epoch": self.epoch}
        body: dict[str, Any] = {
            "v": VERSION,
            "epoch": self.epoch,
            "stream": self.stream,
            "topic": self.topic,
            "why": self.why,
            "marks": [list(mark) for mark in self.marks],
        }
        if self.event_time is not None:
            body["event_time"] = list(self.event_time)
        return body if self.delay_us is None else body | {"delay_us": self.delay_us}


def event_time_of(stream: Stream) -> EventTime | None:
    """Return the time that a stream goes by, None when it goes by none."""
    return stream.time_read


def read_marks(value: bytes | None) -> tuple[Marks, str] | None:
    """Return what a value says and its check, None when it is not of this form."""
    try:
        found = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("check"), str):
        return None
    check = found.pop("check")
    if not all(isinstance(found.get(name, ""), str) for name in ("stream", "topic", "why")):
        return None
    try:
        marks = Marks(
            _whole(found["epoch"]),
            found.get("stream"),
            found.get("topic", ""),
            found.get("why", ""),
            None if found.get("delay_us") is None else _whole(found["delay_us"]),
            tuple(_mark(each) for each in found.get("marks", ())),
            None if found.get("event_time") is None else _event_time(found["event_time"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    if marks.delay_us is None and any(time_us is None for _, _, time_us in marks.marks):
        return None
    # Whatever else stands in it, or stands there in another form, is not ours. True is not 1.
    return (marks, check) if marks.body() == found and type(found["v"]) is int else None


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < UNKNOWN:
        raise ValueError("not a whole number")
    return number


def _mark(found: object) -> tuple[int, int, int | None]:
    if not isinstance(found, list) or len(found) != 3:
        raise ValueError("not a mark")
    partition, offset, time_us = found
    if time_us is not None and not (type(time_us) is int and NEVER < time_us < UNKNOWN):
        raise ValueError("not a time")
    return _whole(partition), _whole(offset), time_us


def _event_time(found: object) -> EventTime:
    match found:
        case [str(column), str() | None as written]:
            return column, written
    raise ValueError("not an event time")


def _digest(check: str, body: Mapping[str, Any]) -> str:
    text = check + json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_CHECK_DIGITS]


@dataclass
class MarkerBook:
    """Every marker that is not void, by partition, in the order they were written.

    In that order numbers grow and offsets never go back, so whoever asks gets a slice: what it
    costs does not grow with the markers there are. One thread adds; others may read meanwhile: a
    sequence that was handed out never changes.
    """

    end_offset: int = 0  # the next offset of the topic to read
    epoch: int = 0
    check: str = ""  # of the last record that is not void
    check_offset: int = -1  # where that record stands
    void: int = 0
    _marks: dict[MarkedPartition, list[Mark]] = field(default_factory=dict)
    _furthest: dict[MarkedPartition, int] = field(default_factory=dict)  # where the last mark acts

    def add(self, number: int, value: bytes | None) -> None:
        """Take the record at an offset of the topic."""
        self.end_offset = number + 1
        read = read_marks(value)
        if read is None or read[1] != _digest(self.check, read[0].body()):
            self.void += 1
            return
        found, check = read
        begins = found.stream is None
        if found.epoch <= self.epoch if begins else found.epoch != self.epoch:
            self.void += 1
            return
        self.check, self.check_offset, self.epoch = check, number, found.epoch
        if found.stream is None:
            return
        for partition, offset, time_us in found.marks:
            place = MarkedPartition(found.stream, found.topic, partition)
            # No engine of ours goes back; whoever does acts no earlier than the one before.
            offset = self._furthest[place] = max(offset, self._furthest.get(place, 0))
            mark = Mark(number, offset, time_us, found.delay_us, found.event_time)
            self._marks.setdefault(place, []).append(mark)

    def fresh(
        self, stream: Stream, partition: int, offset: int, *, since: int, until: int
    ) -> tuple[Mark, ...]:
        """Return the marks that act at an offset or before, with numbers in `[since, until)`."""
        marks = self._of(stream, partition)
        end = min(_acting_by(marks, offset), _written_before(marks, until))
        return _as_defined(stream, marks[_written_before(marks, since) : end])

    def ahead(
        self, stream: Stream, partition: int, start: int, end: int, *, until: int
    ) -> tuple[Mark, ...]:
        """Return the marks that act on offsets in `(start, end]`, with numbers below `until`."""
        marks = self._of(stream, partition)
        last = min(_acting_by(marks, end), _written_before(marks, until))
        return _as_defined(stream, marks[_acting_by(marks, start) : last])

    def _of(self, stream: Stream, partition: int) -> Sequence[Mark]:
        return self._marks.get(MarkedPartition(stream.name, stream.topic, partition), ())

    def forget(self, floors: Mapping[MarkedPartition, int], since: int = 0) -> None:
        """Let go of marks before the offsets that every reader has passed, and of other places.

        So of those at these offsets that every reader knows: all have numbers below `since`. Where
        a partition stands still there is one more of them every so often.
        """
        kept = {}
        for place, marks in self._marks.items():
            if place in floors:
                known = min(_acting_by(marks, floors[place]), _written_before(marks, since))
                passed = max(known, bisect_left(marks, floors[place], key=_offset))
                kept[place] = marks[passed:] if passed else marks
        self._marks = kept

    def kept(self, floors: Mapping[MarkedPartition, int], since: int) -> "MarkerBook":
        """Return a book for readers at or behind these offsets that know all before `since`.

        To them it says what this one says; its size does not grow with the markers there were.
        """
        marks = {
            place: [mark for mark in found if mark.number >= since or mark.offset > floors[place]]
            for place, found in self._marks.items()
            if place in floors
        }
        return replace(self, _marks=marks, _furthest=dict(self._furthest))

    def marks(self) -> Mapping[MarkedPartition, Sequence[Mark]]:
        """Return the marks that it holds."""
        return self._marks

    def furthest(self) -> Mapping[MarkedPartition, int]:
        """Return where the last mark of every partition acts, be it held or not."""
        return self._furthest

    def __len__(self) -> int:
        return sum(map(len, self._marks.values()))


_number, _offset = attrgetter("number"), attrgetter("offset")


def _written_before(marks: Sequence[Mark], number: int) -> int:
    """Return how many marks have a smaller number."""
    return bisect_left(marks, number, key=_number)


def _acting_by(marks: Sequence[Mark], offset: int) -> int:
    """Return how many marks act at an offset or before."""
    return bisect_right(marks, offset, key=_offset)


def _as_defined(stream: Stream, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return what marks say to a stream as it is defined, whatever they were learnt under."""
    acting = []
    for mark in marks:
        if stream.event_time is None or mark.event_time not in (None, event_time_of(stream)):
            continue
        delay_us = None
        if stream.adaptive is not None and mark.delay_us is not None:
            delay_us = min(mark.delay_us, stream.adaptive.max_us)
        if mark.time_us is not None or delay_us is not None:
            acting.append(mark._replace(delay_us=delay_us))
    return tuple(acting)


def chain(records: Iterable[Marks], check: str) -> Iterator[bytes]:
    """Yield the values of records that follow one another, the first after `check`."""
    for marks in records:
        body = marks.body()
        check = _digest(check, body)
        yield json.dumps(body | {"check": check}).encode()
