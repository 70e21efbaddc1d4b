"""Append what producers send: all or nothing for each of them, many of them in one append.

A thread that comes while another appends to the topic waits, and the next one appends for all that
wait: an append by key goes to several partitions, and takes as long for 500 records as for 8,000
(11 ms; 2 cores, ext4). So one sync serves them all.

Promises:
- A body is stored whole or not at all, and is durable and visible when `append` returns.
- What one producer did wrong is told to that one; the others' records are stored.
- A request with an Idempotency-Key is carried out once (requests.py), also while it is under way.
- Records without a key of one append go to one partition, or are dealt out where they are many
  (log/sharing.py).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.errors import (
    HeadraceError,
    PositionLost,
    ProducerFenced,
    RecordTooLarge,
    TopicNotFound,
    UsageError,
)
from headrace.log.base import MAX_RECORD_BYTES, Append, Log, Partition, Range, Topic
from headrace.log.records import record_bytes
from headrace.log.sharing import KeylessTurns, share_append
from headrace.model.definitions import Project
from headrace.serve.finding import find_topic
from headrace.serve.ingest.closed import refuse_written
from headrace.serve.ingest.cutting import too_large
from headrace.serve.ingest.decoding import Sent
from headrace.serve.ingest.keying import KeyReaders, delete_rows, read_keys
from headrace.serve.ingest.requests import Done, Planned, Request, Requests

__all__ = ["Ingest"]

#: What one append takes together; a single body may be more.
MAX_GROUP_BYTES = 16 << 20
#: How often a group gives way to another engine that carries out requests on the same log.
_MAX_ATTEMPTS = 5

Shares = list[tuple[Partition, pa.RecordBatch]]


@dataclass(eq=False)
class _Waiting:
    """One body on its way; `done` or `error` is set by the thread that appends it."""

    sent: Sent
    key: str | None
    partition: int | None
    request: Request | None
    shares: Shares = field(default_factory=list)
    without_key: int = 0
    done: Done | None = None
    error: BaseException | None = None

    @property
    def is_open(self) -> bool:
        return self.done is None and self.error is None


class _Lane:
    """What waits for one topic. `turn` is held by the thread that appends."""

    def __init__(self, topic: str) -> None:
        self.readers = KeyReaders(topic)
        self.turn = threading.Lock()
        self._mutex = threading.Lock()
        self._waiting: deque[_Waiting] = deque()

    def put(self, waiting: _Waiting) -> None:
        with self._mutex:
            self._waiting.append(waiting)

    def take(self) -> list[_Waiting]:
        """Return what is appended together, in the order it came."""
        taken: list[_Waiting] = []
        size = 0
        with self._mutex:
            while self._waiting:
                size += self._waiting[0].sent.records.nbytes
                if taken and size > MAX_GROUP_BYTES:
                    break
                taken.append(self._waiting.popleft())
        return taken


class Ingest:
    """Appends to the topics of a log. Safe for several threads."""

    def __init__(self, log: Log, project: Callable[[], Project]) -> None:
        self._log = log
        self._project = project
        self._requests = Requests(log)
        self._keyless = KeylessTurns(log.extents)
        self._mutex = threading.Lock()
        self._lanes: dict[str, _Lane] = {}

    def check(self, topic: str) -> None:
        """Refuse a topic that takes nothing, before its records are read.

        TopicNotFound, UsageError.
        """
        find_topic(self._log, topic)
        refuse_written(self._project(), topic)

    def append(
        self,
        topic: str,
        sent: Sent,
        *,
        key: str | None = None,
        partition: int | None = None,
        request: Request | None = None,
    ) -> Done:
        """Append the records of one body and return where they are, once they are durable.

        `key` is the field that keys are read from, instead of the declared one. TopicNotFound,
        UsageError, RecordTooLarge, KeyReused: nothing was appended. Others: all of it or nothing.
        `check` was called before.
        """
        with self._mutex:
            lane = self._lanes.setdefault(topic, _Lane(topic))
        waiting = _Waiting(sent, key, partition, request)
        lane.put(waiting)
        while waiting.is_open:
            with lane.turn:
                if waiting.is_open:  # else another thread appended it meanwhile
                    self._append_group(topic, lane, lane.take())
        if waiting.error is not None:
            raise waiting.error
        assert waiting.done is not None
        return waiting.done

    def _append_group(self, topic: str, lane: _Lane, group: Sequence[_Waiting]) -> None:
        try:
            self._share(self._log.topic(topic), lane, group)
            self._store(topic, [each for each in group if each.is_open])
        except BaseException as error:
            for each in group:
                if each.is_open:
                    each.error = error
            if not isinstance(error, Exception):
                raise

    def _share(self, topic: Topic, lane: _Lane, group: Sequence[_Waiting]) -> None:
        """Give every record its key and its partition; a body that is wrong has its error."""
        project = self._project()
        by_key: dict[str | None, list[_Waiting]] = {}
        batches: dict[_Waiting, pa.RecordBatch] = {}
        for each in group:
            if each.sent.is_keyed and each.sent.gone is None:
                batches[each] = each.sent.records
            else:
                by_key.setdefault(each.key, []).append(each)
        for key, alike in by_key.items():
            try:
                reader = lane.readers.of(project, key)
                found = read_keys([each.sent for each in alike], reader)
            except UsageError as error:
                for each in alike:
                    each.error = error
                continue
            for each, batch in zip(alike, found, strict=True):
                try:
                    batches[each] = delete_rows(topic.name, each.sent, reader, batch)
                except UsageError as error:
                    each.error = error
        turn: list[int] = []

        def keyless() -> int:
            # One for all of the group: an append to a single partition takes one sync.
            if not turn:
                turn.append(self._keyless.take(topic))
            return turn[0]

        for each, batch in batches.items():
            try:
                _check_sizes(batch)
                append = Append(topic.name, pa.Table.from_batches([batch]), each.partition)
                each.shares = share_append(append, topic, keyless)
                each.without_key = batch.column("key").null_count
            except (UsageError, RecordTooLarge) as error:
                each.error = error

    def _store(self, topic: str, group: Sequence[_Waiting]) -> None:
        """Append what is ready. Where that is refused, each body is tried by itself."""
        if not group:
            return
        try:
            self._store_together(topic, group)
        except (UsageError, RecordTooLarge, TopicNotFound) as error:
            # Nothing was appended. One of them may be to blame: a broker may take less than we do.
            if len(group) == 1:
                group[0].error = error
                return
            for each in group:
                if each.is_open:
                    self._store(topic, [each])

    def _store_together(self, topic: str, group: Sequence[_Waiting]) -> None:
        named = any(each.request is not None for each in group)
        held: AbstractContextManager[object] = self._requests.mutex if named else nullcontext()
        with held:
            for attempt in range(_MAX_ATTEMPTS):
                new = self._answer_known(group)
                if not new:
                    return
                try:
                    self._commit(topic, new)
                except HeadraceError as error:
                    if named:
                        self._requests.forget()
                    # Another engine carried out requests meanwhile: see which.
                    is_behind = named and isinstance(error, UsageError | ProducerFenced)
                    if not is_behind or attempt == _MAX_ATTEMPTS - 1:
                        raise
                else:
                    break
        self._answer_twins(group)

    def _answer_known(self, group: Sequence[_Waiting]) -> list[_Waiting]:
        """Answer requests that were carried out before; return the others, each key once."""
        new: dict[object, _Waiting] = {}
        for each in group:
            if not each.is_open:
                continue
            if each.request is None:
                new[each] = each
                continue
            try:
                each.done = self._requests.find(each.request)
            except (UsageError, PositionLost) as error:
                each.error = error
            if each.is_open:
                new.setdefault(each.request.name, each)
        return list(new.values())

    def _answer_twins(self, group: Sequence[_Waiting]) -> None:
        """Answer requests whose key another one of the same group has."""
        if any(each.is_open for each in group):
            with self._requests.mutex:
                left = self._answer_known(group)
            assert not left, "each of them was carried out or refused"

    def _commit(self, topic: str, group: Sequence[_Waiting]) -> None:
        together: dict[Partition, list[pa.RecordBatch]] = {}
        for each in group:
            for place, rows in each.shares:
                together.setdefault(place, []).append(rows)
        appends = [
            Append(topic, pa.Table.from_batches(batches), place.number)
            for place, batches in together.items()
        ]
        named = [each for each in group if each.request is not None]
        if named:
            appends.append(self._requests.plan(self._planned(topic, named)))
        if len(appends) == 1:  # whole or not there by itself
            (only,) = appends
            stored = [self._log.append(topic, only.records, partition=only.partition)]
        else:
            stored = self._log.append_all(appends)
        offsets = {
            place: _Cutter(appended.ranges)
            for place, appended in zip(together, stored, strict=False)
        }
        found = [
            [cut for place, rows in each.shares for cut in offsets[place].take(rows.num_rows)]
            for each in group
        ]
        if named:
            pairs = zip(group, found, strict=True)
            self._requests.note([own for each, own in pairs if each.request is not None])
        for each, own in zip(group, found, strict=True):
            count = each.sent.records.num_rows
            each.done = Done(topic, count, tuple(own), each.without_key)

    def _planned(self, topic: str, named: Iterable[_Waiting]) -> list[Planned]:
        extents = self._log.extents(topic)
        planned = []
        for each in named:
            assert each.request is not None
            shares = tuple(
                (place.number, extents[place].end_offset, rows) for place, rows in each.shares
            )
            planned.append(Planned(each.request, topic, shares, each.without_key))
        return planned


class _Cutter:
    """Cuts the ranges that an append to a partition wrote into those of its parts."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._left = deque(ranges)

    def take(self, count: int) -> list[Range]:
        taken: list[Range] = []
        while count:
            place, start, end = self._left.popleft()
            cut = min(end, start + count)
            taken.append(Range(place, start, cut))
            if cut < end:
                self._left.appendleft(Range(place, cut, end))
            count -= cut - start
        return taken


def _check_sizes(batch: pa.RecordBatch) -> None:
    """Refuse a record that is too large with its key and headers. RecordTooLarge: its number."""
    if batch.nbytes <= MAX_RECORD_BYTES:
        return
    for number, size in enumerate(record_bytes(batch), 1):
        if size > MAX_RECORD_BYTES:
            raise too_large(f"record {number}", int(size))
