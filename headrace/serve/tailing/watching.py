"""Tell those who follow topics that there may be more to read: one thread for all of them.

Promises:
- The thread is there while a topic is followed, and ends with the last one.
- A topic's followers are told at most every PAUSE_S, however many appends come.
- Where the log cannot be asked they are told as well: they look, and learn why.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.errors import HeadraceError, TopicNotFound
from headrace.log.base import Log, Partition, Watch
from headrace.serve.signal import Signal

__all__ = ["TopicWatch", "Watched"]

PAUSE_S = 0.02
_LOOK_S = 1.0

logger = logging.getLogger("headrace.serve")


class Watched:
    """A topic that is followed: where it ends, as far as that is known, and how often it grew."""

    def __init__(self) -> None:
        self.grown = Signal()
        self.followers = 0
        self.ends: Mapping[Partition, int] | None = None  # None: not asked yet, or it cannot be

    def tell(self, ends: Mapping[Partition, int] | None) -> None:
        """Let all followers look; None: they will learn what is wrong."""
        self.ends = ends
        self.grown.note()

    def is_past(self, position: Mapping[Partition, int]) -> bool:
        """Whether there may be something after a position."""
        ends = self.ends
        return ends is None or any(position.get(place, -1) < end for place, end in ends.items())


class TopicWatch:
    """Watches the topics of a log that are followed. Safe for several threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._mutex = threading.Lock()
        self._topics: dict[str, Watched] = {}
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None

    @contextmanager
    def following(self, topic: str) -> Iterator[Watched]:
        """Watch a topic for as long as this is open."""
        with self._mutex:
            watched = self._topics.setdefault(topic, Watched())
            watched.followers += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tails", daemon=True)
                self._thread.start()
            self._wake()
        try:
            yield watched
        finally:
            with self._mutex:
                watched.followers -= 1
                if not watched.followers:
                    del self._topics[topic]
                    self._wake()

    def _wake(self) -> None:
        if self._watch is not None:
            self._watch.wake()

    def _run(self) -> None:
        watch: Watch | None = None
        complained = False
        while topics := self._followed():
            try:
                if watch is None:
                    watch = self._log.watch()
                    with self._mutex:
                        self._watch = watch
                positions = self._look(topics)
                complained = False
                watch.wait(positions, timeout_s=_LOOK_S)
                time.sleep(PAUSE_S)
            except HeadraceError as error:
                if not complained:
                    logger.warning("topics that are followed cannot be watched: %s", error)
                complained = True
                for watched in topics.values():
                    watched.tell(None)
                time.sleep(_LOOK_S)
        if watch is not None:
            watch.close()

    def _followed(self) -> dict[str, Watched]:
        """Return what is followed; nothing: this thread is to end, and another may begin."""
        with self._mutex:
            if not self._topics:
                self._thread = self._watch = None
            return dict(self._topics)

    def _look(self, topics: Mapping[str, Watched]) -> dict[Partition, int]:
        """Return the ends of all topics; the followers of those that have grown are told."""
        found: dict[Partition, int] = {}
        for name, watched in topics.items():
            try:
                extents = self._log.extents(name)
            except TopicNotFound:
                watched.tell(None)
                continue
            ends = {place: extent.end_offset for place, extent in extents.items()}
            if ends != watched.ends:
                watched.tell(ends)
            found |= ends
        return found
