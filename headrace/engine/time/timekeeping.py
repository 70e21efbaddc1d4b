"""Read and write the topic of markers; the one book that every unit's clocks go by.

Promises:
- A marker is in the log before anything acts on it, and acts on no record that a unit has
  journalled before: whoever plans or writes holds `lock`.
- An engine that was replaced writes no more: its epoch is a producer's to the log (EngineFenced).
"""

import logging
import threading
from collections.abc import Iterable, Sequence

from headrace.engine.time.checkpoint import Checkpoint, Reader
from headrace.errors import EngineFenced, PositionLost, ProducerFenced, TopicNotFound
from headrace.log.base import Log, Partition, Producer, Range
from headrace.log.checks import check_time_topic
from headrace.log.names import TIME_TOPIC
from headrace.log.records import records
from headrace.sinks.outbox import ensure_topic
from headrace.time.markers import MarkerBook, Marks, chain, read_marks
from headrace.wording import counted

__all__ = ["Timekeeper", "check_known"]

logger = logging.getLogger("headrace.time")

_PLACE = Partition(TIME_TOPIC, 0)


class Timekeeper:
    """The markers of a project. With `end` it reads no further than that offset of their topic.

    PositionLost, from whatever reads: somebody removed markers.
    """

    def __init__(self, log: Log, *, end: int | None = None) -> None:
        self.lock = threading.RLock()
        self.book = MarkerBook()
        self._log = log
        self._end = end
        self._resumed: Checkpoint | None = None
        self.epoch: int | None = None  # of the engine that writes; None: it only reads

    def resume(self, checkpoint: Checkpoint) -> bool:
        """Go on from a checkpoint instead of the start; return whether it is of this topic."""
        with self.lock:
            try:
                first_offset, end_offset = self._log.extents(TIME_TOPIC)[_PLACE]
            except TopicNotFound:
                return False
            book = checkpoint.book
            if first_offset > 0 or book.end_offset > end_offset:
                return False  # something was removed: `read` says so
            # The record knows all before it, by its check: if it is the same, so are they.
            for batch in self._log.read(Range(_PLACE, book.check_offset, book.check_offset + 1)):
                for value in batch["value"].to_pylist():
                    if (read := read_marks(value)) is not None and read[1] == book.check:
                        self.book, self._resumed = book, checkpoint
                        return True
            return False

    def cover(self, readers: Iterable[Reader]) -> None:
        """Hold every marker that acts on what these will read: from the start, if it must be."""
        with self.lock:
            if self._resumed is None or all(map(self._resumed.covers, readers)):
                return
            logger.info("%s: is read from its start, for versions that are built", TIME_TOPIC)
            self.book, self._resumed = MarkerBook(), None
            self.read()

    def begin(self, epoch: int) -> None:
        """Say in the log that an engine of this epoch begins. EngineFenced, InvalidTopic."""
        ensure_topic(self._log, TIME_TOPIC, 1)
        check_time_topic(self._log.topic(TIME_TOPIC))
        self.epoch = epoch
        self.write([Marks(epoch)])

    def read_until(self, end: int) -> None:
        """Read no further than an offset from now on."""
        with self.lock:
            self._end = end

    @property
    def writes(self) -> bool:
        """Whether this engine writes markers, and does not just replay."""
        return self.epoch is not None

    def read(self) -> None:
        """Read the topic to its end. EngineFenced: a newer engine has begun."""
        with self.lock:
            void = self.book.void
            try:
                first_offset, end_offset = self._log.extents(TIME_TOPIC)[_PLACE]
            except TopicNotFound:
                return
            if self._end is not None:
                end_offset = min(end_offset, self._end)
            start = self.book.end_offset
            if start < first_offset:
                raise _gone(start, first_offset, end_offset)
            if start >= end_offset:
                return
            for batch in self._log.read(Range(_PLACE, start, end_offset)):
                for offset, value in zip(
                    batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True
                ):
                    self.book.add(offset, value)
            # A log may leave out offsets at the end too.
            self.book.end_offset = end_offset
            if self.book.void > void:
                logger.warning(
                    "%s: ignored %s that the engine did not write",
                    TIME_TOPIC,
                    counted(self.book.void - void, "record"),
                )
            if self.epoch is not None and self.book.epoch > self.epoch:
                raise _fenced(self.epoch, self.book.epoch)

    def write(self, marks: Sequence[Marks]) -> None:
        """Append markers, and read them back. EngineFenced."""
        assert self.epoch is not None
        with self.lock:
            self.read()
            values = list(chain(marks, self.book.check))
            last = self._log.last_sequence(_PLACE, TIME_TOPIC)
            producer = Producer(TIME_TOPIC, self.epoch, (last or 0) + len(values))
            try:
                self._log.append(TIME_TOPIC, records(values), partition=0, producer=producer)
            except ProducerFenced as error:
                self.read()
                raise _fenced(self.epoch, self.book.epoch) from error
            self.read()
            if self.book.epoch != self.epoch:
                raise _fenced(self.epoch, self.book.epoch)


def check_known(book: MarkerBook, time_offset: int) -> None:
    """Refuse to go on where markers that a unit has read are not in the log. PositionLost."""
    if time_offset > book.end_offset:
        raise _gone(time_offset, 0, book.end_offset)


def _gone(offset: int, first_offset: int, end_offset: int) -> PositionLost:
    return PositionLost(
        f"{_PLACE}@{offset}: markers that were written are gone; the topic begins at "
        f"{first_offset} and ends at {end_offset}. A replay could tell other records late than "
        f"before. Bring the topic back, or move the store away and build it from what is left."
    )


def _fenced(epoch: int, newer: int) -> EngineFenced:
    return EngineFenced(
        f"{TIME_TOPIC}: epoch {epoch} may not write markers any more: an engine of epoch {newer} "
        f"has begun. Stop this one; two projects that share a log need prefixes of their own."
    )
