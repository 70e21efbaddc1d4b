"""What a log is to everything above it: one protocol, whatever keeps the bytes.

Promises every implementation keeps, held by `headrace.testing.log.contract`:
- Within a partition, records keep the order of their appends; offsets grow and
  arrival never goes back.
- An append that returned is durable and visible to every later reader; of one that raised, or
  whose process died, either all is there or nothing, whatever partitions and topics it goes to.
  With `acks=1` only what `append` says of it holds.
- A reader sees acknowledged records only: what it saw, it sees again after a power loss.
- The same key goes to the same partition, the one Kafka's default partitioner picks.
- A batch of a producer is stored once: a sequence at or below the newest one stored for that
  producer and partition is answered with `duplicate`, and an older epoch raises ProducerFenced.
  So of two live producers with one id the newer fences the older, wherever it has appended.
- Retention removes the oldest records only, and no more than a topic's settings say. Who asks for
  one that is gone gets PositionLost with the first offset that is left.
- Compaction removes a record only when a newer one of its key is there, or when it is a tombstone
  past its time; what stays keeps offset, arrival and order. Its range still reads, with gaps.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import pyarrow as pa

__all__ = [
    "APPENDS",
    "DEFAULT_PARTITIONS",
    "MAX_RECORD_BYTES",
    "PRODUCED",
    "RECORDS",
    "Acks",
    "Append",
    "Appended",
    "Extent",
    "Log",
    "Partition",
    "Producer",
    "Range",
    "Split",
    "Topic",
    "TopicSettings",
    "Watch",
]

DEFAULT_PARTITIONS = 4
MAX_RECORD_BYTES = 1 << 20  # key, value and headers together

HEADERS = pa.list_(
    pa.struct([pa.field("name", pa.string(), False), pa.field("value", pa.binary())])
)
#: What `append` takes: key and value may be null, headers may be null or empty.
APPENDS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])
#: What `read` yields. The arrival is null where the log did not stamp it: in a topic of Kafka whose
#: producers say what time it is.
RECORDS = pa.schema(
    [("offset", pa.int64()), ("arrival", pa.timestamp("us", "UTC")), *list(APPENDS)]
)

#: A further column, where a log has the times that producers say instead of arrivals.
PRODUCED = pa.field("produced", RECORDS.field("arrival").type)

#: Who must have a record before `append` returns: one (written), or all (durable and visible).
Acks = Literal[1, "all"]


class TopicSettings(NamedTuple):
    """How long a topic keeps its records; None is forever, and without a limit.

    All say what is kept at least: records go in the chunks that they are stored in.
    """

    retention_ms: int | None = None  # by arrival
    retention_bytes: int | None = None  # of each partition
    #: Keep at least the newest record of each key. Records without a key are refused.
    compact: bool = False
    #: How long a tombstone, a record without a value, stays after it was first compacted: a reader
    #: that is no slower than this sees every deletion.
    tombstone_ms: int = 86_400_000


class Topic(NamedTuple):
    """A topic, the number of its partitions, and how long it keeps records."""

    name: str
    partitions: int
    settings: TopicSettings = TopicSettings()


class Partition(NamedTuple):
    """One partition of a topic; prints as `topic/number`."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Extent(NamedTuple):
    """What a partition holds: offsets in `[first_offset, end_offset)`."""

    first_offset: int
    end_offset: int


class Range(NamedTuple):
    """Offsets `[start, end)` of a partition."""

    partition: Partition
    start: int
    end: int

    @property
    def span(self) -> int:
        """How many offsets the range has."""
        return self.end - self.start


class Producer(NamedTuple):
    """Who appends, so that a retry is stored once: sequences grow within an epoch and across."""

    id: str
    epoch: int
    sequence: int


class Append(NamedTuple):
    """One of several appends that are stored together; the arguments are those of `append`."""

    topic: str
    records: pa.Table
    partition: int | None = None
    producer: Producer | None = None


class Appended(NamedTuple):
    """What one append did: the ranges written, or `duplicate` when it was stored before.

    The ranges of a partition are in the order of its records. With `acks=1` they say where the
    records will be, unless the machine dies or a disk fails first.
    """

    ranges: list[Range]
    duplicate: bool = False


class Split(Protocol):
    """A part of a range that another process can read by itself; it pickles."""

    @property
    def range(self) -> Range:
        """What the split holds."""
        ...

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the split's records, in offset order, as RECORDS batches.

        They also have the column PRODUCED where the log has such times.
        """
        ...


class Watch(Protocol):
    """Tells one reader when there may be records to read. One thread waits; any may `wake` it.

    A log out of reach and a topic that is gone end no wait and raise nothing: whoever reads the log
    finds out. So a reader looks at the log itself now and then, be it told or not.
    """

    def wait(self, positions: Mapping[Partition, int], *, timeout_s: float) -> bool:
        """Wait until a partition holds a record at its position or later, `timeout_s` at most.

        Returns whether that may be so, or `wake` was called; at once if it was so before. Records
        of a transaction are there once it is committed. Offsets without a record need not be told.
        """
        ...

    def wake(self) -> None:
        """Let the wait under way, or else the next one, return at once."""
        ...

    def close(self) -> None:
        """Release what was held for it. The thread that waits has ended, or calls this itself."""
        ...


class Log(Protocol):
    """Topics of partitions of records. Safe to use from several threads and processes."""

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = DEFAULT_PARTITIONS,
        settings: TopicSettings = TopicSettings(),  # noqa: B008 - a frozen value
    ) -> Topic:
        """Make a topic. TopicExists, InvalidTopic."""
        ...

    def change_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        settings: TopicSettings | None = None,
    ) -> Topic:
        """Give a topic more partitions, or other settings. TopicNotFound, InvalidTopic.

        With more partitions a key may go to another one from now on: what was appended before
        stays where it is, so records of that key are no longer all in one order.
        """
        ...

    def delete_topic(self, name: str) -> None:
        """Remove a topic and its records for good. TopicNotFound."""
        ...

    def topics(self) -> list[Topic]:
        """Return all topics, by name."""
        ...

    def topic(self, name: str) -> Topic:
        """Return one topic. TopicNotFound."""
        ...

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

        Without `partition`, records go by key. Those without a key go to one partition per append,
        in turn, or are dealt out to all where they are many (`records.DEALT_RECORDS`). A producer
        must name the partition. RecordTooLarge: nothing was appended.

        With `acks=1` this returns once the records are written: they survive the death of this
        process, but are durable and visible only soon after. Each partition then has its share by
        itself, whole or not at all. Should a share be lost after all, the next append to its
        partition, or `close`, raises where the log can know. A producer needs "all" (UsageError).
        """
        ...

    def append_all(self, appends: Sequence[Append]) -> list[Appended]:
        """Append to several topics and partitions: all of it or nothing.

        Batches of producers are refused when one of them was stored before (UsageError), and each
        must be the only one for its partition.
        """
        ...

    def begin_producer(self, producer_id: str) -> int:
        """Return an epoch greater than every one handed out or stored before for this id.

        A producer asks once, when it begins, then goes on after `last_sequence` of each partition.
        """
        ...

    def last_sequence(self, partition: Partition, producer_id: str) -> int | None:
        """Return the newest sequence stored for a producer, None when it has none here."""
        ...

    def extents(self, *topics: str) -> dict[Partition, Extent]:
        """Return what each partition of some topics holds now, asked all at once. TopicNotFound."""
        ...

    def watch(self) -> Watch:
        """Return what waits for records of this log. Close it before the log."""
        ...

    def offset_at(self, partition: Partition, time_us: int) -> int:
        """Return the first offset that arrived at a time (µs since 1970) or later, or the end."""
        ...

    def read(
        self, range: Range, *, max_batch_records: int = 65_536, produced: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range in offset order, as RECORDS batches.

        With `produced`, batches also have the column PRODUCED where the log has such times.
        PositionLost: part of the range is not in the log. LogDamaged: a checksum fails.
        """
        ...

    def read_many(
        self, ranges: Sequence[Range], *, produced: bool = False
    ) -> list[list[pa.RecordBatch]]:
        """Return the records of several ranges, in the order of the ranges, fetched together.

        For what fits memory. Batches and errors are those of `read`.
        """
        ...

    def measure(self, range: Range) -> int:
        """Return about how many bytes the range holds (whole stored batches are counted)."""
        ...

    def splits(self, range: Range, *, max_records: int) -> list[Split]:
        """Cut a range into parts of about `max_records` that other processes can read."""
        ...

    def carried_secrets(self) -> list[str]:
        """Return the names of credentials that a split carries so that others could read them."""
        ...

    def maintain(self) -> None:
        """Remove what retention and compaction no longer keep, where nobody else does it."""
        ...

    def close(self) -> None:
        """Release files and locks; what was acknowledged stays.

        What was appended with `acks=1` is made durable first; it raises, once all is released, if
        that fails or failed before.
        """
        ...
