"""Rows of a view at one commit, as readers ask for them; and the wait until an append is visible.

Promises:
- Rows and what is said of them (commit, position, watermark, version, state) are of one commit.
- A read is bounded in rows, bytes and time, whatever is asked.
- `wait_for` returns only when the view has read everything before a position: who appended and
  asks with the position of the append reads their own write.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa

from headrace.errors import DefinitionUnreadable, TopicNotFound, UsageError, ViewNotFound
from headrace.log.base import Log, Partition
from headrace.model.names import closest
from headrace.plan.tables import ERRORS
from headrace.schema.relations import Named
from headrace.serve.missing import explain_missing
from headrace.serve.reading.asked import read_selection
from headrace.serve.reading.positions import Position, covers, position_of, position_text
from headrace.serve.reading.topics import TopicNames
from headrace.serve.signal import Signal
from headrace.store.asking import Standing, readable_columns
from headrace.store.base import Snapshot, Store

__all__ = ["MAX_READ_BYTES", "MAX_READ_SECONDS", "Answer", "Asked", "NotYet", "Views"]

T = TypeVar("T")

MAX_READ_BYTES = 32 << 20
MAX_READ_SECONDS = 10.0
#: Reads at once: more than cores would take them from the engine's turns, and end no sooner. Those
#: that may take long, because they sort or look for nothing, have threads of their own.
MAX_READS, MAX_LONG_READS = min(8, max(2, os.cpu_count() or 1)), 2

#: Where a view stands, and the topics that it reads.
_Looked = tuple[Position, frozenset[str]]


@dataclass(frozen=True)
class Asked:
    """What a request asks of a view, as its texts."""

    where: Sequence[str] = ()
    order: Sequence[str] = ()
    columns: Sequence[str] = ()
    limit: int = 1_000

    @property
    def may_take_long(self) -> bool:
        """Whether all rows of the view have to be looked at."""
        return bool(self.order) or not self.where


@dataclass(frozen=True)
class Answer:
    """Rows, and where the view stood when they were read."""

    name: str
    standing: Standing
    position: Position
    columns: tuple[Named, ...]
    rows: pa.Table
    more: bool


class NotYet(Exception):
    """A view has not read up to a position within the time."""


class Views:
    """Reads views of a store; `read` is for threads, `wait_for` for the event loop."""

    def __init__(self, store: Store, log: Log, commits: Signal) -> None:
        self._store = store
        self._log = log
        self._commits = commits
        self.topics = TopicNames()
        self._pool = ThreadPoolExecutor(MAX_READS, "reading")
        self._long_pool = ThreadPoolExecutor(MAX_LONG_READS, "reading long")
        self._looked: dict[str, tuple[int, asyncio.Task[_Looked]]] = {}

    async def in_thread(self, work: Callable[[], T], *, may_take_long: bool = False) -> T:
        """Run what reads the store in one of a few threads."""
        pool = self._long_pool if may_take_long else self._pool
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def read(self, name: str, asked: Asked) -> Answer:
        """Return rows of a view, or of `<view>.errors`. ViewNotFound, UsageError, QueryRefused."""
        view, errors = _split(name)
        with self._store.open() as snapshot:
            standing = self.standing(snapshot, view)
            relation = standing.relation
            columns = relation.errors if errors else readable_columns(relation)
            selection = read_selection(
                columns,
                where=asked.where,
                order=asked.order,
                chosen=asked.columns,
                limit=asked.limit,
            )
            found = snapshot.rows(
                view,
                selection,
                errors=errors,
                max_bytes=MAX_READ_BYTES,
                max_seconds=MAX_READ_SECONDS,
            )
            position = self.position(snapshot, standing)
        return Answer(name, standing, position, selection.columns, found.rows, found.more)

    def standing(self, snapshot: Snapshot, view: str) -> Standing:
        """Return where a view stands. ViewNotFound: says what there is."""
        try:
            return snapshot.standing(view)
        except ViewNotFound as error:
            raise ViewNotFound(_missing(snapshot, view)) from error

    def missing(self, view: str) -> str:
        """Return why there is no view of that name, and which there are."""
        with self._store.open() as snapshot:
            return _missing(snapshot, view)

    def position(self, snapshot: Snapshot, standing: Standing) -> Position:
        """Return how far a view has read, by topic."""
        topics = self.topics.of(snapshot, standing.view, standing.version)
        return position_of(standing.position, lambda stream: topics.get(stream, stream))

    async def wait_for(
        self,
        name: str,
        wanted: Position,
        *,
        timeout_s: float,
        waiting: AbstractContextManager[None],
    ) -> None:
        """Return when a view covers a position. ViewNotFound, UsageError, NotYet.

        `waiting` is entered when it does not yet, and left when it does.
        """
        view, _ = _split(name)
        deadline = time.monotonic() + timeout_s
        count = self._commits.count
        position, topics = await self._look(view, count)
        await self.in_thread(partial(self._check_known, view, position, topics, wanted))
        if covers(position, wanted):
            return
        with waiting:
            while not covers(position, wanted):
                left = deadline - time.monotonic()
                if left <= 0:
                    stands = position_text(position) or "the beginning"
                    raise NotYet(
                        f"view {view} stands at {stands}, not yet at {position_text(wanted)}; ask "
                        f"again, or wait longer with timeout_ms"
                    )
                await self._commits.after(count, timeout_s=left)
                count = self._commits.count
                position, _ = await self._look(view, count)

    def _look(self, view: str, count: int) -> "asyncio.Future[_Looked]":
        """Look where a view stands after so many commits; once for all who wait."""
        known, task = self._looked.get(view, (-1, None))
        if task is None or known < count or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(self.in_thread(partial(self._look_up, view)))
            self._looked[view] = (count, task)
            task.add_done_callback(lambda done: self._forget(view, done))
        return asyncio.shield(task)

    def _forget(self, view: str, done: "asyncio.Task[_Looked]") -> None:
        if self._looked.get(view, (0, None))[1] is done:
            del self._looked[view]

    def _look_up(self, view: str) -> "_Looked":
        with self._store.open() as snapshot:
            standing = self.standing(snapshot, view)
            topics = self.topics.of(snapshot, view, standing.version)
            return self.position(snapshot, standing), frozenset(topics.values())

    def _check_known(
        self,
        view: str,
        position: Mapping[Partition, int],
        topics: frozenset[str],
        wanted: Mapping[Partition, int],
    ) -> None:
        """Refuse a position that the view never gets to. UsageError."""
        for partition in wanted:
            if partition.topic not in topics:
                read = f"it reads {', '.join(sorted(topics)) or 'none'}"
                raise UsageError(f"view {view} does not read the topic {partition.topic}: {read}")
            if partition not in position and partition.number not in self._numbers(partition.topic):
                raise UsageError(f"there is no partition {partition}")

    def _numbers(self, topic: str) -> set[int]:
        """Return the partitions of a topic; one that was just added has no position yet."""
        try:
            return {each.number for each in self._log.extents(topic)}
        except TopicNotFound:
            return set()


def _missing(snapshot: Snapshot, view: str) -> str:
    try:
        return explain_missing(view, snapshot)
    except DefinitionUnreadable:
        known = sorted(snapshot.shown())
        return f"there is no view {view}{closest(view, known)}; there are: {', '.join(known)}"


def _split(name: str) -> tuple[str, bool]:
    """Return a view's name, and whether its errors are meant; no name of a view has a dot."""
    view, dot, rest = name.rpartition(".")
    return (view, True) if dot and rest == ERRORS else (name, False)
