"""Keeping a log in order: retention, compaction, and decisions that are carried out.

It is done when an append begins a segment, as far as that is cheap, and in `maintain`. What does
not succeed is logged and tried again the next time: nobody's append fails for it, nor does an
engine.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.errors import HeadraceError, TopicNotFound, UsageError
from headrace.log.base import Partition, Topic
from headrace.log.embedded.appender import Appender
from headrace.log.embedded.topics import list_topics, partition_folder
from headrace.log.embedded.transactions import decisions, settle_decisions
from headrace.log.embedded.upkeep.compaction import CHEAP_BYTES, Compactor

__all__ = ["Housekeeping"]

# A decision is kept for some time (transactions.py), but not more of them.
KEPT_DECISIONS = 64

logger = logging.getLogger("headrace.log")


class Housekeeping:
    """What looks after the folder of a log; `topic` and `appender` find its parts."""

    def __init__(
        self,
        path: Path,
        *,
        topic: Callable[[str], Topic],
        appender: Callable[[Partition], Appender],
        clock: Callable[[], int],
        sync: bool,
        segment_bytes: int,
    ) -> None:
        self._path = path
        self._topic = topic
        self._appender = appender
        self._clock = clock
        self._sync = sync
        self._segment_bytes = segment_bytes

    def tidy(self, topics: Iterable[str]) -> None:
        """Look after topics in which an append began a segment."""
        for topic in topics:
            with _telling():
                self._expire(topic)
            for compactor in self._compactors(topic):
                with _telling():
                    # The rest waits for `maintain`: no append takes much longer than another.
                    compactor.run(max_bytes=CHEAP_BYTES)

    def maintain(self) -> None:
        """Look after everything."""
        for topic in list_topics(self._path):
            with _telling():
                self._expire(topic.name)
            for compactor in self._compactors(topic.name):
                with _telling():
                    compactor.run()
        with _telling():
            settle_decisions(self._path, self._settle)

    def forget_decisions(self) -> None:
        """Forget decisions if there are many."""
        with _telling():
            if len(decisions(self._path)) >= KEPT_DECISIONS:
                settle_decisions(self._path, self._settle)

    def compact(self, topic: str) -> None:
        """Compact all that a topic holds now, worth it or not. UsageError, LogDamaged, DiskFull."""
        compactors = self._compactors(topic)
        if not compactors:
            raise UsageError(
                f"{topic}: the topic is not compacted, so nothing was removed. Make it so: "
                f"`headrace topics change {topic} --compact`."
            )
        for compactor in compactors:
            compactor.appender.seal()
            compactor.run(always=True)

    def _expire(self, name: str) -> None:
        topic = self._topic(name)
        keep_ms, max_bytes = topic.settings.retention_ms, topic.settings.retention_bytes
        if keep_ms is None and max_bytes is None:
            return
        before_us = None if keep_ms is None else self._clock() - keep_ms * 1000
        for number in range(topic.partitions):
            appender = self._appender(Partition(name, number))
            appender.expire(before_us=before_us, max_bytes=max_bytes)

    def _compactors(self, name: str) -> list[Compactor]:
        """Return what compacts a topic's partitions; none if nothing does."""
        try:
            _, partitions, settings = self._topic(name)
        except TopicNotFound:
            return []
        places = [Partition(name, number) for number in range(partitions * settings.compact)]
        return [
            Compactor(
                partition_folder(self._path, place),
                place,
                self._appender(place),
                clock=self._clock,
                sync=self._sync,
                segment_bytes=self._segment_bytes,
                tombstone_ms=settings.tombstone_ms,
            )
            for place in places
        ]

    def _settle(self, places: Iterable[Partition]) -> None:
        for place in places:
            with suppress(TopicNotFound):
                if place.number < self._topic(place.topic).partitions:
                    self._appender(place).settle()


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except HeadraceError as error:
        logger.warning("the log's housekeeping did not succeed: %s", error)
