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
- A split reads by itself in any process. It holds the properties, so it holds the credentials too.
"""

import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from headrace.errors import HeadraceError, LogError, PositionLost
from headrace.log.base import PRODUCED, RECORDS, Extent, Range
from headrace.log.checks import check_range
from headrace.log.kafka.client import LOOK_S, PATIENCE_S, Cluster

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
        self._idle: list[Consumer] = []
        self._closed = False

    def read(
        self, kafka_name: str, range: Range, max_batch_records: int, *, produced: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the records of a range; see `read_range`."""
        if range.span == 0:
            return
        consumer = self._take()
        try:
            yield from read_range(
                self._cluster, consumer, kafka_name, range, max_batch_records, produced=produced
            )
        except HeadraceError:
            consumer.close()  # see client.py: it may never get an answer again
            raise
        except BaseException:
            self._give_back(consumer)
            raise
        self._give_back(consumer)

    def _take(self) -> Consumer:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        return self._cluster.consumer(committed=self._committed)

    def _give_back(self, consumer: Consumer) -> None:
        with self._cluster.errors("end a read"):
            consumer.unassign()
        with self._mutex:
            if not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(consumer)
                return
        consumer.close()

    def close(self) -> None:
        """Close the idle consumers; those that read are closed when their read ends."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for consumer in idle:
            consumer.close()


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
    joined: list[pa.RecordBatch] = []
    joined_records = joined_bytes = 0
    for messages in _consume(cluster, consumer, kafka_name, range):
        batch = to_arrow(messages, any_time=cluster.believes_producers)
        if produced:
            batch = batch.append_column(PRODUCED, _produced(messages))
        joined.append(batch)
        joined_records, joined_bytes = joined_records + len(messages), joined_bytes + batch.nbytes
        if joined_records >= JOINED_RECORDS or joined_bytes >= JOINED_BYTES:
            yield from _cut(joined, max_batch_records)
            joined, joined_records, joined_bytes = [], 0, 0
    yield from _cut(joined, max_batch_records)


def _consume(
    cluster: Cluster, consumer: Consumer, kafka_name: str, range: Range
) -> Iterator[list[Message]]:
    """Yield the messages of a range, as many at a time as there are."""
    what = f"read {range.partition}"
    with cluster.errors(what):
        # Or a consumer that has not met the topic yet looks for it after a second.
        consumer.list_topics(kafka_name, timeout=cluster.timeout_s)
        consumer.assign([TopicPartition(kafka_name, range.partition.number, range.start)])
    position = range.start
    progress = time.monotonic()
    held_at: int | None = None
    while position < range.end:
        # The first is waited for; whatever has come with it costs no further wait.
        with cluster.errors(what):
            first = consumer.poll(LOOK_S)
            messages = [] if first is None else [first, *consumer.consume(CONSUMED_RECORDS, 0)]
        events = [message for message in messages if message.error() is not None]
        if events:
            messages = [message for message in messages if message.error() is None]
        if messages:
            position, held_at = offset_of(messages[-1]) + 1, None
            if position > range.end:
                messages = [message for message in messages if offset_of(message) < range.end]
            if messages:
                yield messages
            progress = time.monotonic()  # after the yield: the reader's time is not the log's
        for event in events:
            error = event.error()
            assert error is not None
            if error.code() != KafkaError._PARTITION_EOF:
                raise _failure(cluster, consumer, kafka_name, range, error)
            # There is nothing to see up to here; at the range's end that is all there will be.
            position = held_at = max(position, offset_of(event))
        idle_s = time.monotonic() - progress
        if held_at is None and idle_s > cluster.timeout_s:
            raise cluster.unreachable(what)
        if position < range.end and idle_s > PATIENCE_S:
            raise LogError(
                f"{range.partition}@{held_at}: an open transaction holds back what was appended "
                f"after it, for over {PATIENCE_S} s now. End its producer, or wait until Kafka "
                f"does (its `transaction.timeout.ms`), then try again."
            )


def offset_of(message: Message) -> int:
    """Return the offset of what a consumer got."""
    offset = message.offset()
    assert offset is not None
    return offset


def _failure(
    cluster: Cluster, consumer: Consumer, kafka_name: str, range: Range, error: KafkaError
) -> Exception:
    what = f"read {range.partition}"
    if error.code() not in LOST:
        return cluster.translated(error, what)
    place = TopicPartition(kafka_name, range.partition.number)
    with cluster.errors(what):
        low, high = consumer.get_watermark_offsets(place, timeout=cluster.timeout_s, cached=False)
    try:
        check_range(range, Extent(low, high))
    except PositionLost as lost:
        return lost
    return cluster.translated(error, what)


def _cut(batches: list[pa.RecordBatch], max_batch_records: int) -> Iterator[pa.RecordBatch]:
    whole = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], RECORDS)
    for start in range(0, whole.num_rows, max_batch_records):
        yield whole.slice(start, max_batch_records)


def _produced(messages: Sequence[Message]) -> pa.Array:
    """Return the times that producers gave; null where the broker stamped, or none is known."""
    stamps = [message.timestamp() for message in messages]
    times = [
        time_ms * 1000 if kind == TIMESTAMP_CREATE_TIME and time_ms >= 0 else None
        for kind, time_ms in stamps
    ]
    return pa.array(times, PRODUCED.type)


def to_arrow(messages: Sequence[Message], *, any_time: bool) -> pa.RecordBatch:
    """Return messages as one batch of RECORDS; `any_time` takes a producer's for the arrival."""
    headers = [message.headers() for message in messages]
    stamps = [message.timestamp() for message in messages]
    # What a producer says is no arrival, and records of Kafka's first versions have no time.
    arrivals = [
        time_ms * 1000 if kind == TIMESTAMP_LOG_APPEND_TIME or (any_time and time_ms >= 0) else None
        for kind, time_ms in stamps
    ]
    columns = [
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array(arrivals, RECORDS.field("arrival").type),
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.array(headers, _HEADERS) if any(headers) else pa.nulls(len(messages), _HEADERS),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)
