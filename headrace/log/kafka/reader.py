"""Reading a Kafka partition: ranges of offsets become batches of RECORDS.

Promises:
- Committed records only: what a transaction aborted, and the markers that end transactions, take
  offsets but are never seen.
- A read ends at the end of its range, also where the last offsets of the range hold no record: it
  ends with the first record past it, or when the consumer reports that it stands there.
- Several reads at once do not disturb each other: each has a consumer of its own. Up to MAX_IDLE of
  them are kept for the next read.
- The arrival is the broker's time; it is null where the producer's time was kept instead. That
  one is in the column PRODUCED, for who asks for it.
- A split reads by itself in any process. It holds the properties, credentials too unless they were
  given as environment variables (log/secrets.py).
"""

import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from headrace.errors import HeadraceError, LogError
from headrace.log.base import PRODUCED, RECORDS, Partition, Range
from headrace.log.checks import check_range
from headrace.log.kafka.client import LOOK_S, PATIENCE_S, Cluster
from headrace.log.kafka.offsets import KafkaOffsets

__all__ = ["LOST", "ConsumerPool", "KafkaSplit", "offset_of", "read_range", "to_arrow"]

MAX_IDLE = 4
DEFAULT_BATCH_RECORDS = 65_536
# Taken from librdkafka at once; its own buffer (`queued.max.messages.kbytes`) bounds the bytes.
CONSUMED_RECORDS = 10_000
# What has come in pieces is joined up to this.
JOINED_RECORDS = 10_000
JOINED_BYTES = 8 << 20

_HEADERS = RECORDS.field("headers").type
#: Errors of a consumer whose next record is not in the log.
LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}


class ConsumerPool:
    """Consumers of one cluster, each lent to one read at a time. Safe for several threads.

    Unless `committed`, they also see what is not decided yet, and what was aborted.
    """

    def __init__(self, cluster: Cluster, *, committed: bool = True) -> None:
        self._cluster = cluster
        self._committed = committed
        self._mutex = threading.Lock()
        self._idle: list[_Reader] = []
        self._closed = False

    def read_many(
        self, topics: Mapping[str, tuple[str, object]], ranges: Sequence[Range], *, produced: bool
    ) -> list[list[pa.RecordBatch]]:
        """Return the records of ranges, in their order, fetched by one consumer at once.

        `topics` tells what Kafka calls each, and a value that is another one when the topic is.
        """
        found: list[list[pa.RecordBatch]] = [[] for _ in ranges]
        waiting = [(number, range) for number, range in enumerate(ranges) if range.span]
        while waiting:
            # A consumer reads a partition at one place; where two ranges are of one, both pass.
            once: dict[Partition, int] = {}
            for number, range in waiting:
                once.setdefault(range.partition, number)
            now = list(once.values())
            with self._lent() as reader:
                known = dict(topics.values())
                reader.meet(self._cluster, known)
                parts = [(topics[ranges[each].partition.topic][0], ranges[each]) for each in now]
                for index, batch in _read_parts(
                    self._cluster, reader.consumer, parts, produced=produced
                ):
                    found[now[index]].append(batch)
            waiting = [(number, range) for number, range in waiting if number not in now]
        return [_join(batches) for batches in found]

    def read(
        self, kafka_name: str, range: Range, max_batch_records: int, *, produced: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the records of a range; see `read_range`."""
        if range.span == 0:
            return
        with self._lent() as reader:
            yield from read_range(
                self._cluster,
                reader.consumer,
                kafka_name,
                range,
                max_batch_records,
                produced=produced,
            )

    @contextmanager
    def _lent(self) -> Iterator["_Reader"]:
        reader = self._take()
        try:
            yield reader
        except HeadraceError:
            reader.consumer.close()  # see client.py: it may never get an answer again
            raise
        except BaseException:
            self._give_back(reader)
            raise
        self._give_back(reader)

    def _take(self) -> "_Reader":
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        return _Reader(self._cluster.consumer(committed=self._committed))

    def _give_back(self, reader: "_Reader") -> None:
        with self._cluster.errors("end a read"):
            reader.consumer.unassign()
        with self._mutex:
            if not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(reader)
                return
        reader.consumer.close()

    def close(self) -> None:
        """Close the idle consumers; those that read are closed when their read ends."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.consumer.close()


class _Reader:
    """A consumer, and the topics as they were when it last asked for them."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self._met: dict[str, object] = {}

    def meet(self, cluster: Cluster, topics: Mapping[str, object]) -> None:
        """Ask for topics that are new to it, or have changed; by itself it takes a second."""
        for name, stamp in topics.items():
            if self._met.get(name) != stamp:
                with cluster.errors(f"look for topic {name!r}"):
                    self.consumer.list_topics(name, timeout=cluster.timeout_s)
                self._met[name] = stamp


@dataclass(frozen=True)
class KafkaSplit:
    """A part of a range and how to reach it."""

    range: Range
    kafka_name: str
    properties: Mapping[str, str] = field(repr=False)
    timeout_s: float
    believes_producers: bool = False

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the split's records, in offset order, as RECORDS and PRODUCED. PositionLost."""
        cluster = Cluster(
            self.properties,
            timeout_s=self.timeout_s,
            believes_producers=self.believes_producers,
        )
        consumer = cluster.consumer()
        try:
            yield from read_range(
                cluster,
                consumer,
                self.kafka_name,
                self.range,
                DEFAULT_BATCH_RECORDS,
                produced=True,
            )
        finally:
            consumer.close()


def read_range(
    cluster: Cluster,
    consumer: Consumer,
    kafka_name: str,
    range: Range,
    max_batch_records: int,
    *,
    produced: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range that was committed, or is about to be, as RECORDS batches.

    With `produced`, each has the column PRODUCED besides.

    What an open transaction still holds back is waited for. PositionLost: retention took the
    records meanwhile. Unreachable, LogError: nothing came for PATIENCE_S at most.
    """
    with cluster.errors(f"read {range.partition}"):
        # Or a consumer that has not met the topic yet looks for it after a second.
        consumer.list_topics(kafka_name, timeout=cluster.timeout_s)
    joined: list[pa.RecordBatch] = []
    joined_records = joined_bytes = 0
    for _, batch in _read_parts(cluster, consumer, [(kafka_name, range)], produced=produced):
        joined.append(batch)
        joined_records, joined_bytes = joined_records + batch.num_rows, joined_bytes + batch.nbytes
        if joined_records >= JOINED_RECORDS or joined_bytes >= JOINED_BYTES:
            yield from _cut(joined, max_batch_records)
            joined, joined_records, joined_bytes = [], 0, 0
    yield from _cut(joined, max_batch_records)


class _Part:
    """How far the read of one range has come."""

    def __init__(self, kafka_name: str, range: Range) -> None:
        self.kafka_name = kafka_name
        self.range = range
        self.position = range.start
        self.held_at: int | None = None  # where the consumer reported that it stands
        self.waited_s = 0.0  # without anything of it; what the reader does meanwhile is not counted

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.kafka_name, self.range.partition.number)


def _read_parts(
    cluster: Cluster, consumer: Consumer, wanted: Sequence[tuple[str, Range]], *, produced: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the range, its next records), as much at a time as there is.

    Each range is of another partition, and has offsets. The consumer knows the topics.
    """
    parts = [_Part(*each) for each in wanted]
    numbers = {
        (part.kafka_name, part.range.partition.number): number for number, part in enumerate(parts)
    }
    what = f"read {parts[0].range.partition}"
    with cluster.errors(what):
        consumer.assign(
            [
                TopicPartition(part.kafka_name, part.range.partition.number, part.position)
                for part in parts
            ]
        )
    while open_parts := [part for part in parts if not part.is_done]:
        # The first is waited for; whatever has come with it costs no further wait.
        began_s = time.monotonic()
        with cluster.errors(what):
            first = consumer.poll(LOOK_S)
            messages = [] if first is None else [first, *consumer.consume(CONSUMED_RECORDS, 0)]
        for part in open_parts:
            part.waited_s += time.monotonic() - began_s
        events = [message for message in messages if message.error() is not None]
        if events:
            messages = [message for message in messages if message.error() is None]
        for number, of_part in _by_part(messages, numbers):
            part = parts[number]
            part.position, part.held_at, part.waited_s = offset_of(of_part[-1]) + 1, None, 0.0
            if part.position > (end := part.range.end):
                of_part = [message for message in of_part if offset_of(message) < end]
            if of_part:
                times = cluster.believes_producers
                yield number, to_arrow(of_part, any_time=times, produced=produced)
        for event in events:
            error = event.error()
            assert error is not None
            part = parts[numbers.get((event.topic() or "", event.partition() or 0), 0)]
            if error.code() != KafkaError._PARTITION_EOF:
                raise _failure(cluster, part.kafka_name, part.range, error)
            # There is nothing to see up to here; at the range's end that is all there will be.
            part.position = part.held_at = max(part.position, offset_of(event))
        done = [part.place for part in open_parts if part.is_done]
        if 0 < len(done) < len(open_parts):
            # Not paused: librdkafka would remember that, and fetch nothing the next time.
            with cluster.errors(what):
                consumer.incremental_unassign(done)
        for part in open_parts:
            if not part.is_done:
                _check_patience(cluster, part, what)


def _check_patience(cluster: Cluster, part: _Part, what: str) -> None:
    """Raise Unreachable or LogError where nothing of a range has come for too long."""
    if part.held_at is None and part.waited_s > cluster.timeout_s:
        raise cluster.unreachable(what)
    if part.waited_s > PATIENCE_S:
        raise LogError(
            f"{part.range.partition}@{part.held_at}: an open transaction holds back what was "
            f"appended after it, for over {PATIENCE_S} s now. End its producer, or wait until "
            f"Kafka does (its `transaction.timeout.ms`), then try again."
        )


def _by_part(
    messages: list[Message], numbers: Mapping[tuple[str, int], int]
) -> Iterator[tuple[int, list[Message]]]:
    """Yield messages by the number of their range, in order."""
    if len(numbers) == 1:
        if messages:
            yield 0, messages
        return
    found: dict[tuple[str | None, int | None], list[Message]] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), []).append(message)
    for place, of_place in found.items():
        yield numbers[place], of_place  # type: ignore[index]


def offset_of(message: Message) -> int:
    """Return the offset of what a consumer got."""
    offset = message.offset()
    assert offset is not None
    return offset


def _failure(cluster: Cluster, kafka_name: str, range: Range, error: KafkaError) -> HeadraceError:
    what = f"read {range.partition}"
    if error.code() not in LOST:
        return cluster.translated(error, what)
    place = Partition(kafka_name, range.partition.number)
    try:
        check_range(range, KafkaOffsets(cluster, prefix="").extents([place])[place])
    except HeadraceError as better:
        return better
    return cluster.translated(error, what)


def _join(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return batches if len(batches) < 2 else [pa.concat_batches(batches)]


def _cut(batches: list[pa.RecordBatch], max_batch_records: int) -> Iterator[pa.RecordBatch]:
    whole = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], RECORDS)
    for start in range(0, whole.num_rows, max_batch_records):
        yield whole.slice(start, max_batch_records)


def to_arrow(
    messages: Sequence[Message], *, any_time: bool, produced: bool = False
) -> pa.RecordBatch:
    """Return messages as one batch of RECORDS; `any_time` takes a producer's for the arrival.

    With `produced`, PRODUCED is the time that the producer gave; null where the broker stamped, or
    none is known.
    """
    # `map` over a method calls it twice as fast as a loop does, and numpy takes times at once.
    count = len(messages)
    headers = list(map(Message.headers, messages))
    offsets = np.fromiter(map(Message.offset, messages), np.int64, count)
    stamps = chain.from_iterable(map(Message.timestamp, messages))
    kinds, times_ms = np.fromiter(stamps, np.int64, 2 * count).reshape(-1, 2).T
    # What a producer says is no arrival, and records of Kafka's first versions have no time.
    stamped = kinds == TIMESTAMP_LOG_APPEND_TIME
    known = stamped | (times_ms >= 0) if any_time else stamped
    columns = [
        pa.array(offsets),
        _times(times_ms, known),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(headers, _HEADERS) if any(headers) else pa.nulls(count, _HEADERS),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=RECORDS)
    if produced:
        said = (kinds == TIMESTAMP_CREATE_TIME) & (times_ms >= 0)
        batch = batch.append_column(PRODUCED, _times(times_ms, said))
    return batch


def _times(times_ms: "np.ndarray[Any, Any]", known: "np.ndarray[Any, Any]") -> pa.Array:
    micros = pa.array(times_ms * 1000, mask=~known)
    return micros.cast(PRODUCED.type)
