"""The log on Kafka: the same protocol as the embedded log, over any cluster of Kafka 3 or 4.

Promises, besides those of `base.Log`:
- Topic `name` is Kafka's topic `prefix + name`. Topics made here stamp the broker's time on arrival
  (`message.timestamp.type=LogAppendTime`), to the millisecond. In a topic made elsewhere that keeps
  its producers' time, the arrival is not known: null.
- Which partition a key belongs to is decided here (murmur2), never by the client.
- What an append brings to one partition is one Kafka batch: nothing of others comes between. What
  does not fit one, goes to several partitions or is of a producer is a Kafka transaction.
- Readers see committed records only. Offsets grow but are not dense: markers of transactions and
  what was aborted take some.
- No headers and an empty list of headers are the same thing to Kafka: both come back as null.
- What other clients change about topics is seen after `topics.CACHE_S`.
"""

import builtins
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import cast

import pyarrow as pa

from headrace.errors import (
    AccessDenied,
    LogError,
    ProducerFenced,
    RecordTooLarge,
    Unreachable,
    UsageError,
)
from headrace.log.acks import check_acks
from headrace.log.base import (
    DEFAULT_PARTITIONS,
    Acks,
    Append,
    Appended,
    Extent,
    Partition,
    Producer,
    Range,
    Split,
    Topic,
    TopicSettings,
    Watch,
)
from headrace.log.checks import (
    check_once_each,
    check_partition,
    check_producer_id,
    check_range,
    stored_before,
)
from headrace.log.clients import Clients
from headrace.log.kafka.client import DELIVERY_TIMEOUT_S, Cluster
from headrace.log.kafka.delivery import Delivery, Share, flush, hand_over
from headrace.log.kafka.inside import Inside
from headrace.log.kafka.offsets import KafkaOffsets
from headrace.log.kafka.pool import Client, ClientPool, end_client
from headrace.log.kafka.reader import ConsumerPool, KafkaSplit
from headrace.log.kafka.sequences import Sequences
from headrace.log.kafka.topics import Found, KafkaTopics
from headrace.log.kafka.transactions import GroupOffsets, Transactions
from headrace.log.kafka.watching import KafkaWatch
from headrace.log.names import refuse_closed
from headrace.log.secrets import literal_secrets
from headrace.log.sharing import KeylessTurns, share_append

__all__ = ["KafkaLog"]

DEFAULT_TIMEOUT_S = 10.0
MAX_PREFIX_LENGTH = 100
MAX_NAME_LENGTH = 100
#: `measure` reads as many records at most.
MEASURED_RECORDS = 64

_PREFIX = re.compile(rf"[a-zA-Z0-9._-]{{0,{MAX_PREFIX_LENGTH}}}")


class KafkaLog:
    """A `Log` on a Kafka cluster.

    `properties` are librdkafka's: `bootstrap.servers`, and whatever TLS, SASL and tuning need; the
    log overrules only what its promises hang on. `timeout_s` is how long it waits for the cluster
    before Unreachable.

    Of two logs with the same prefix and `name`, the later takes over with its first append: what
    the earlier left open is aborted at once, so that a process that was killed holds nothing up
    when it is started again; should it still live, it gets ProducerFenced. Without a name, what a
    killed process left open holds back its partitions until Kafka aborts it, half a minute at most.

    `clock` gives the arrival of what is appended, in µs since 1970, in place of the brokers: for
    tests, on topics that are made with it.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        prefix: str = "",
        name: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        clock: Callable[[], int] | None = None,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise UsageError(
                f"{prefix!r} cannot be a prefix of topics. Use up to {MAX_PREFIX_LENGTH} of the "
                f"letters a-z and A-Z, digits, '.', '_' and '-'."
            )
        if name is not None and not 1 <= len(name) <= MAX_NAME_LENGTH:
            raise UsageError(
                f"{name!r} cannot be a log's name. Use 1 to {MAX_NAME_LENGTH} characters, or none "
                f"at all."
            )
        self._clock = clock
        self._cluster = Cluster(
            properties, timeout_s=timeout_s, believes_producers=clock is not None
        )
        _ = self._cluster.admin  # a wrong property is refused here, not at the first use
        self._topics = KafkaTopics(self._cluster, prefix)
        self._offsets = KafkaOffsets(self._cluster, prefix)
        self._consumers = ConsumerPool(self._cluster)
        self._sequences = Sequences(self._cluster, self._topics, self._offsets, self._consumers)
        self._plain = ClientPool(self._cluster, self._make_plain_client, drop=end_client)
        self._leader = ClientPool(self._cluster, self._make_leader_client, drop=end_client)
        self._transactions = Transactions(
            self._cluster, self._topics, self._offsets, self._sequences, prefix=prefix, name=name
        )
        self._keyless = KeylessTurns(self.extents)
        self._record_bytes: dict[Partition, float] = {}  # of those that were read last
        self._closed = False
        #: For groups and queues.
        self.inside = Inside(
            log=self,
            clients=Clients(),
            cluster=self._cluster,
            topics=self._topics,
            offsets=self._offsets,
            prefix=prefix,
            check_open=self._check_open,
            take_over=self._transactions.take_over,
            append_with=self._append_together,
            append_own=lambda share: self._deliver(self._plain, share, None),
        )

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = DEFAULT_PARTITIONS,
        settings: TopicSettings = TopicSettings(),  # noqa: B008 - a frozen value
    ) -> Topic:
        """Make a topic. TopicExists, InvalidTopic."""
        self._check_open()
        return self._topics.create(Topic(name, partitions, settings))

    def change_topic(
        self, name: str, *, partitions: int | None = None, settings: TopicSettings | None = None
    ) -> Topic:
        """Give a topic more partitions, or other settings. TopicNotFound, InvalidTopic."""
        self._check_open()
        return self._topics.change(name, partitions=partitions, settings=settings)

    def delete_topic(self, name: str) -> None:
        """Remove a topic and its records for good. TopicNotFound."""
        self._check_open()
        refuse_closed(name)
        partitions = self._topics.find(name).topic.partitions
        self._topics.delete(name)
        self._keyless.forget(name)
        for number in builtins.range(partitions):
            self._record_bytes.pop(Partition(name, number), None)

    def topics(self) -> list[Topic]:
        """Return all topics of the prefix, by name; none of Kafka's own nor of the log's."""
        self._check_open()
        return self._topics.find_all()

    def topic(self, name: str) -> Topic:
        """Return one topic. TopicNotFound."""
        self._check_open()
        return self._topics.find(name).topic

    def append(
        self,
        topic: str,
        records: pa.Table,
        *,
        partition: int | None = None,
        producer: Producer | None = None,
        acks: Acks = "all",
    ) -> Appended:
        """Append records (columns of APPENDS) and return where they are, once they are durable.

        RecordTooLarge, UsageError, ProducerFenced: nothing was appended. Unreachable, LogError: all
        of it was, or nothing. With `acks=1` the leaders have them when this returns, each partition
        by itself; after Unreachable some of them may be there.
        """
        self._check_open()
        check_acks(topic, acks, producer)
        found = self._topics.find(topic)
        shares = self._shares(Append(topic, records, partition, producer), found)
        if not shares:
            return Appended([])
        self._transactions.take_over()
        with self._noticing_deletion([topic]):
            if acks == 1:
                return Appended([each for s in shares for each in self._append_leader(s, found)])
            if len(shares) == 1 and producer is None and shares[0].fits_one_batch():
                return Appended(self._append_plain(shares[0], found))
            done = self._transactions.append({topic: found}, shares)
        if done.stored_before is not None:
            return Appended([], duplicate=True)
        return Appended([each for ranges in done.ranges.values() for each in ranges])

    def append_all(self, appends: Sequence[Append]) -> list[Appended]:
        """Append to several topics and partitions: all of it or nothing.

        RecordTooLarge, UsageError, ProducerFenced: nothing was appended. Unreachable, LogError: all
        of it was, or nothing.
        """
        return self._append_together(appends, None)

    def _append_together(
        self, appends: Sequence[Append], offsets: GroupOffsets | None
    ) -> list[Appended]:
        self._check_open()
        topics = {append.topic: self._topics.find(append.topic) for append in appends}
        each_shares = [self._shares(append, topics[append.topic]) for append in appends]
        shares = [share for shares in each_shares for share in shares]
        check_once_each(share.place for share in shares)
        if not shares and offsets is None:
            return [Appended([]) for _ in appends]
        self._transactions.take_over()
        with self._noticing_deletion(topics):
            done = self._transactions.append(topics, shares, offsets)
        if done.stored_before is not None:
            share = done.stored_before
            assert share.producer is not None
            raise stored_before(share.place, share.producer)
        return [
            Appended([each for share in own_shares for each in done.ranges[share.place]])
            for own_shares in each_shares
        ]

    @contextmanager
    def _noticing_deletion(self, topics: Iterable[str]) -> Iterator[None]:
        try:
            yield
        except (LogError, Unreachable) as error:
            if not isinstance(error, ProducerFenced | RecordTooLarge | AccessDenied):
                for topic in topics:
                    self._topics.find(topic, fresh=True)  # TopicNotFound: deleted meanwhile
            raise

    def _shares(self, append: Append, found: Found) -> list[Share]:
        shared = share_append(append, found.topic, lambda: self._keyless.take(found.topic))
        arrival_ms = 0 if self._clock is None else self._clock() // 1000
        return [Share(place, rows, append.producer, arrival_ms) for place, rows in shared]

    def _append_plain(self, share: Share, found: Found) -> list[Range]:
        """Append what fits one batch: Kafka stores it whole or not at all."""
        delivery = self._deliver(self._plain, share, found)
        self._offsets.wait_until_visible({share.place: delivery.end})
        return delivery.ranges()

    def _append_leader(self, share: Share, found: Found) -> list[Range]:
        """Append without waiting for replicas, nor until readers see it."""
        return self._deliver(self._leader, share, found).ranges()

    def _deliver(self, clients: ClientPool, share: Share, found: Found | None) -> Delivery:
        name = self._topics.kafka_name(share.place.topic)
        with (
            self._cluster.errors(f"append to {share.place}"),
            clients.lend({name: found}, timeout_s=DELIVERY_TIMEOUT_S) as (producer, timeout_s, _),
        ):
            delivery = hand_over(producer, name, share)
            flush(producer, [delivery], timeout_s=timeout_s)
        return delivery

    def _make_plain_client(self, timeout_s: int) -> Client:
        return Client(self._cluster.producer(timeout_s=timeout_s), timeout_s)

    def _make_leader_client(self, timeout_s: int) -> Client:
        return Client(self._cluster.producer(timeout_s=timeout_s, acks=1), timeout_s)

    def begin_producer(self, producer_id: str) -> int:
        """Return an epoch for a producer that begins: newer than all before."""
        self._check_open()
        check_producer_id("begin_producer", producer_id)
        self._transactions.take_over()
        return self._transactions.begin_producer(producer_id)

    def last_sequence(self, partition: Partition, producer_id: str) -> int | None:
        """Return the newest sequence stored for a producer, None when it has none here."""
        self._check_partition(partition)
        self._transactions.take_over()
        topic_id = self._topics.find(partition.topic).id
        newest = self._sequences.newest(producer_id, partition, topic_id)
        return None if newest is None else newest.sequence

    def extents(self, *topics: str) -> dict[Partition, Extent]:
        """Return what each partition holds now, up to its last stable offset. TopicNotFound."""
        self._check_open()
        return self._offsets.extents(self._topics.partitions_of(topics))

    def watch(self) -> Watch:
        """Return what waits for records, with a consumer of its own."""
        self._check_open()
        return KafkaWatch(self._cluster, self._topics)

    def read(
        self, range: Range, *, max_batch_records: int = 65_536, produced: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range in offset order, as RECORDS batches.

        With `produced`, each has the column PRODUCED besides.
        PositionLost: part of the range is not in the log; at once, or on the way where retention
        overtakes the reader.
        """
        if max_batch_records < 1:
            raise UsageError(f"max_batch_records is {max_batch_records}; it must be at least 1.")
        self._check_range(range)
        return self._read(range, max_batch_records, produced=produced)

    def read_many(
        self, ranges: Sequence[Range], *, produced: bool = False
    ) -> list[list[pa.RecordBatch]]:
        """Return the records of several ranges: one consumer fetches all partitions at once.

        PositionLost: part of a range is not in the log.
        """
        self._check_open()
        topics = list(dict.fromkeys(range.partition.topic for range in ranges))
        found = self._topics.find_each(topics)
        for range in ranges:
            check_partition(range.partition, found[range.partition.topic].topic)
        extents = self._offsets.extents(dict.fromkeys(range.partition for range in ranges))
        for range in ranges:
            check_range(range, extents[range.partition])
        names = {topic: (self._topics.kafka_name(topic), found[topic]) for topic in topics}
        batches = self._consumers.read_many(names, ranges, produced=produced)
        for range, found_batches in zip(ranges, batches, strict=True):
            for batch in found_batches[-1:]:
                self._record_bytes[range.partition] = batch.nbytes / batch.num_rows
        return batches

    def offset_at(self, partition: Partition, time_us: int) -> int:
        """Return the first offset that arrived at a time (µs since 1970) or later, or the end."""
        self._check_partition(partition)
        return self._offsets.at_time(partition, time_us)

    def measure(self, range: Range) -> int:
        """Return about how many bytes the records of the range have.

        An estimate, since Kafka does not tell: the records that were read last of the partition, or
        else the first MEASURED_RECORDS of the range, tell the size of all, and offsets without a
        record count like the others.
        """
        if range.partition not in self._record_bytes:
            self._check_range(range)
            reading = self._read(range, MEASURED_RECORDS)
            for _ in islice(reading, 1):
                pass  # `_read` takes note of its size
            reading.close()
        self._check_partition(range.partition)
        return round(self._record_bytes.get(range.partition, 0.0) * range.span)

    def splits(self, range: Range, *, max_records: int) -> list[Split]:
        """Cut a range into parts of `max_records` offsets that other processes can read."""
        if max_records < 1:
            raise UsageError(f"max_records is {max_records}; it must be at least 1.")
        self._check_range(range)
        place, name = range.partition, self._topics.kafka_name(range.partition.topic)
        cluster = self._cluster
        splits = [
            KafkaSplit(
                Range(place, start, min(start + max_records, range.end)),
                name,
                cluster.properties,
                cluster.timeout_s,
                cluster.believes_producers,
            )
            for start in builtins.range(range.start, range.end, max_records)
        ]
        # The protocol's `range` may be set; a split's may not, which no user of one tries.
        return cast(list[Split], splits)

    def carried_secrets(self) -> list[str]:
        """Return which credentials were not given as environment variables (log/secrets.py)."""
        return literal_secrets(self._cluster.properties)

    def maintain(self) -> None:
        """Do nothing: Kafka's brokers remove what retention no longer keeps."""
        self._check_open()

    def close(self) -> None:
        """End all clients; a read or an append that is under way ends its own when it ends."""
        self.inside.clients.close()
        self._closed = True
        self._transactions.close()
        self._plain.close()
        self._leader.close()
        self._sequences.close()
        self._consumers.close()
        self._cluster.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self._cluster}: this log is closed; open it anew.")

    def _check_partition(self, partition: Partition) -> None:
        self._check_open()
        check_partition(partition, self._topics.find(partition.topic).topic)

    def _check_range(self, range: Range) -> None:
        self._check_partition(range.partition)
        check_range(range, self._offsets.extents([range.partition])[range.partition])

    def _read(
        self, range: Range, max_batch_records: int, *, produced: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        kafka_name = self._topics.kafka_name(range.partition.topic)
        for batch in self._consumers.read(kafka_name, range, max_batch_records, produced=produced):
            self._record_bytes[range.partition] = batch.nbytes / batch.num_rows
            yield batch
