"""The embedded log: topics in a folder, shared by any number of threads and processes.

    <path>/<topic>/topic.json                      partitions and settings (topics.py)
    <path>/<topic>/<partition>/<20 digits>.log     segments: batches of records (format.py)
    <path>/<topic>/<partition>/ends                first offset, both ends (ends.py)
    <path>/<topic>/<partition>/lock                who holds it may write (files.py)
    <path>/<topic>/<partition>/compacting          who holds it may compact (compaction.py)
    <path>/~transactions/<number>                  a decision to commit (transactions.py)
    <path>/~groups.sqlite                          members and queues (consume/embedded/)
    <path>/~producers/epoch.json                   the newest epoch of producers (producers.py)

Promises, besides those of `base.Log`:
- Offsets are dense: the n-th record of a partition has offset n.
- All records of one append have one arrival per partition, the clock's, but never before the last.
- An append to several partitions is one transaction (transactions.py). Not promised: that they
  show their shares at the same moment. With `acks=1` it is none: what is written is synced and
  shown soon after, partition by partition (background.py).
- A forked child may use the log: it begins without what the parent's threads had in hand.
- Retention removes whole segments (retention.py), and compaction rewrites them (compaction.py):
  when an append begins a new one, and in `maintain`, which the running engine calls every minute.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import pyarrow as pa

from headrace.errors import LogError, TopicNotFound, UsageError
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
from headrace.log.checks import check_once_each, check_partition, check_producer_id
from headrace.log.clients import Clients
from headrace.log.embedded.appender import Appender, Written
from headrace.log.embedded.background import BackgroundSync
from headrace.log.embedded.copied import write_copied
from headrace.log.embedded.files import disk_errors, make_folder
from headrace.log.embedded.forks import call_in_children
from headrace.log.embedded.format import encode_payload
from headrace.log.embedded.inside import Inside
from headrace.log.embedded.producers import next_epoch
from headrace.log.embedded.reader import Reader
from headrace.log.embedded.topics import (
    StoredTopic,
    change_topic_folder,
    create_topic_folder,
    delete_topic_folder,
    list_topics,
    load_topic,
    partition_folder,
    topic_stamp,
)
from headrace.log.embedded.transactions import (
    Share,
    append_together,
    is_decided,
    written_ranges,
)
from headrace.log.embedded.upkeep.housekeeping import Housekeeping
from headrace.log.embedded.upkeep.verify import CheckedSegment, verify_partition
from headrace.log.embedded.watching import EmbeddedWatch
from headrace.log.names import (
    RESERVED_TOPICS,
    refuse_closed,
    refuse_reserved,
    refuse_reserved_as_new,
)
from headrace.log.sharing import KeylessTurns, share_append

__all__ = ["EmbeddedLog"]

SEGMENT_BYTES = 64 << 20


def _wall_clock_us() -> int:
    return time.time_ns() // 1000


class EmbeddedLog:
    """A `Log` in a folder.

    `clock` gives the arrival of what is appended, in µs since 1970. With `sync=False` an append
    survives the death of the process but not that of the machine: for tests.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], int] = _wall_clock_us,
        sync: bool = True,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._path = Path(path).absolute()
        self._clock = clock
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._topics: dict[str, tuple[object, StoredTopic]] = {}
        self._keyless = KeylessTurns(self.extents)
        self._closed = False
        self._housekeeping = Housekeeping(
            self._path,
            topic=self.topic,
            appender=self._appender,
            clock=clock,
            sync=sync,
            segment_bytes=segment_bytes,
        )
        self._begin()
        call_in_children(self._begin)
        with disk_errors(self._path):
            make_folder(self._path)
        #: For groups and queues.
        self.inside = Inside(
            log=self,
            clients=Clients(),
            path=self._path,
            sync=sync,
            check_open=self._check_open,
            stored=self._stored,
            append=self._append_all,
            extent=self._extent,
            caught_up_extent=partial(self._extent, caught_up=True),
        )

    def _begin(self) -> None:
        """Begin with locks that nobody holds; also in a forked child, where a thread may have."""
        self._mutex = threading.Lock()
        self._appenders: dict[Partition, Appender] = {}
        self._readers: dict[Partition, Reader] = {}
        self._background = BackgroundSync()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = DEFAULT_PARTITIONS,
        settings: TopicSettings = TopicSettings(),  # noqa: B008 - a frozen value
    ) -> Topic:
        """Make a topic. TopicExists, InvalidTopic."""
        self._check_open()
        refuse_reserved_as_new(name)
        topic = Topic(name, partitions, settings)
        create_topic_folder(self._path, topic, sync=self._sync)
        return topic

    def change_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        settings: TopicSettings | None = None,
    ) -> Topic:
        """Give a topic more partitions, or other settings. TopicNotFound, InvalidTopic."""
        self._check_open()
        refuse_reserved(name)
        return change_topic_folder(
            self._path, name, partitions=partitions, settings=settings, sync=self._sync
        )

    def delete_topic(self, name: str) -> None:
        """Remove a topic and its records for good. TopicNotFound."""
        self._check_open()
        refuse_reserved(name)
        refuse_closed(name)
        delete_topic_folder(self._path, name)
        self._forget(name)

    def topics(self) -> list[Topic]:
        """Return all topics, by name."""
        self._check_open()
        return [topic for topic in list_topics(self._path) if topic.name not in RESERVED_TOPICS]

    def topic(self, name: str) -> Topic:
        """Return one topic. TopicNotFound."""
        return self._stored(name).topic

    def _stored(self, name: str) -> StoredTopic:
        self._check_open()
        stamp = topic_stamp(self._path, name)
        known = self._topics.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            found = load_topic(self._path, name)
        except TopicNotFound:
            self._forget(name)
            raise
        if known is not None and known[1].id != found.id:
            self._forget(name)
        self._topics[name] = (stamp, found)
        return found

    def _forget(self, name: str) -> None:
        """Let go of a topic that was deleted, here or by another process."""
        self._keyless.forget(name)
        with self._mutex:
            self._topics.pop(name, None)
            for partition in [place for place in self._appenders if place.topic == name]:
                appender = self._appenders.pop(partition)
                self._background.forget(appender)
                appender.close()
            for partition in [place for place in self._readers if place.topic == name]:
                del self._readers[partition]

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

        RecordTooLarge, UsageError, DiskFull: nothing was appended. With `acks=1` they are written
        when this returns, each partition by itself; they are synced, and shown, soon after.
        """
        refuse_reserved(topic)
        check_acks(topic, acks, producer)
        shares = self._shares(Append(topic, records, partition, producer))
        if len(shares) > 1 and acks == "all":
            written = self._append_together(shares)
        else:
            append = self._append_one if acks == "all" else self._append_unsynced
            with self._noticing_deletion([topic]):
                written = [append(share) for share in shares]
        self._tidy_where_rolled(shares, written)
        if any(each.duplicate for each in written):
            return Appended([], duplicate=True)
        return Appended(written_ranges(shares, written))

    def append_all(self, appends: Sequence[Append]) -> list[Appended]:
        """Append to several topics and partitions: all of it or nothing.

        RecordTooLarge, UsageError, ProducerFenced, DiskFull: nothing was appended.
        """
        for append in appends:
            refuse_reserved(append.topic)
        return self._append_all(appends)

    def _append_all(self, appends: Sequence[Append]) -> list[Appended]:
        each_shares = [self._shares(append) for append in appends]
        shares = [share for shares in each_shares for share in shares]
        check_once_each(share.partition for share in shares)
        if len(shares) == 1 and shares[0].producer is None:
            # One batch is whole or not there by itself; a decision would cost two syncs more.
            with self._noticing_deletion([shares[0].partition.topic]):
                written = [self._append_one(shares[0])]
        else:
            written = self._append_together(shares)
        self._tidy_where_rolled(shares, written)
        ranges = iter(written_ranges(shares, written))
        return [Appended(list(islice(ranges, len(own)))) for own in each_shares]

    def append_copied(
        self, partition: Partition, records: pa.RecordBatch, producer_id: str, epoch: int
    ) -> None:
        """Append RECORDS of another log, and let them arrive when they did there.

        Those without an arrival arrive now. The sequence of a record is its offset there, so after
        a failure `last_sequence` tells how many of them are stored. ProducerFenced, DiskFull.
        """
        self._check_partition(partition)
        with self._noticing_deletion([partition.topic]):
            appender = self._appender(partition)
            write_copied(appender, records, producer_id, epoch, now_us=self._clock())

    def _shares(self, append: Append) -> list[Share]:
        topic = self.topic(append.topic)
        shared = share_append(append, topic, lambda: self._keyless.take(topic))
        shares = [
            Share(
                place,
                self._appender(place),
                encode_payload(rows),
                rows.num_rows,
                append.producer,
            )
            for place, rows in shared
        ]
        self._background.check(share.appender for share in shares)
        return shares

    def _append_one(self, share: Share) -> Written:
        written = share.appender.write(share.payload, share.count, share.producer)
        share.appender.make_durable(written)
        return written

    def _append_unsynced(self, share: Share) -> Written:
        written = share.appender.write(share.payload, share.count, share.producer)
        if not written.acknowledged:
            self._background.hand_over(share.partition, share.appender, written)
        return written

    def _append_together(self, shares: Sequence[Share]) -> list[Written]:
        if not shares:
            return []
        with self._noticing_deletion({share.partition.topic for share in shares}):
            written = append_together(self._path, shares, sync=self._sync)
        self._housekeeping.forget_decisions()
        return written

    @contextmanager
    def _noticing_deletion(self, topics: Iterable[str]) -> Iterator[None]:
        try:
            yield
        except LogError:
            for topic in topics:
                self.topic(topic)  # TopicNotFound: it was deleted meanwhile
            raise

    @contextmanager
    def _reading(self, partition: Partition) -> Iterator[tuple[Reader, Appender]]:
        self._check_partition(partition)
        with self._noticing_deletion([partition.topic]):
            yield self._reader(partition), self._appender(partition)

    def _tidy_where_rolled(self, shares: Sequence[Share], written: Sequence[Written]) -> None:
        pairs = zip(shares, written, strict=True)
        self._housekeeping.tidy({share.partition.topic for share, each in pairs if each.rolled})

    def begin_producer(self, producer_id: str) -> int:
        """Return an epoch greater than every one handed out or stored before. DiskFull, LogError.

        Looks at every partition of the log, as whoever appends there does.
        """
        check_producer_id("begin_producer", producer_id)

        def newest_stored() -> int:
            places = (Partition(t.name, n) for t in self.topics() for n in range(t.partitions))
            found = (self._newest_of(place, producer_id) for place in places)
            return max((producer.epoch for producer in found if producer), default=0)

        return next_epoch(
            self._path, newest_stored=newest_stored, clock=self._clock, sync=self._sync
        )

    def _newest_of(self, place: Partition, producer_id: str) -> Producer | None:
        with suppress(TopicNotFound), self._noticing_deletion([place.topic]):
            return self._appender(place).newest_of(producer_id)
        return None

    def last_sequence(self, partition: Partition, producer_id: str) -> int | None:
        """Return the newest sequence stored for a producer, None when it has none here."""
        with self._reading(partition) as (_, appender):
            newest = appender.newest_of(producer_id)
        return newest.sequence if newest is not None else None

    def extents(self, *topics: str) -> dict[Partition, Extent]:
        """Return what each partition holds now. TopicNotFound, LogDamaged."""
        places = [
            Partition(t, number) for t in topics for number in range(self.topic(t).partitions)
        ]
        with self._noticing_deletion(topics):
            return {p: self._reader(p).extent(self._appender(p).ends()) for p in places}

    def _extent(self, partition: Partition, *, caught_up: bool = False) -> Extent:
        with self._reading(partition) as (reader, appender):
            return reader.extent(appender.caught_up_ends() if caught_up else appender.ends())

    def offset_at(self, partition: Partition, time_us: int) -> int:
        """Return the first offset that arrived at a time or later, or the end. LogDamaged."""
        with self._reading(partition) as (reader, appender):
            return reader.offset_at(time_us, appender.ends())

    def read(
        self,
        range: Range,
        *,
        max_batch_records: int = 65_536,
        produced: bool = False,  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range in offset order, as RECORDS batches: it stamps them all.

        PositionLost, at once: part of the range is not in the log. LogDamaged, on the way.
        """
        with self._reading(range.partition) as (reader, appender):
            found = reader.read(range, appender.ends(), max_batch_records=max_batch_records)
        return self._read_on(range.partition.topic, found)

    def _read_on(self, topic: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._noticing_deletion([topic]):
            yield from batches

    def read_many(
        self, ranges: Sequence[Range], *, produced: bool = False
    ) -> list[list[pa.RecordBatch]]:
        """Return the records of several ranges, each as `read` yields them."""
        return [list(self.read(range, produced=produced)) for range in ranges]

    def watch(self) -> Watch:
        """Return what waits for records, whichever process appends them."""
        self._check_open()
        return EmbeddedWatch(self._folder)

    def measure(self, range: Range) -> int:
        """Return how many bytes the stored batches have that hold records of the range."""
        with self._reading(range.partition) as (reader, appender):
            return reader.measure(range, appender.ends())

    def splits(self, range: Range, *, max_records: int) -> list[Split]:
        """Cut a range into parts of `max_records` that other processes can read from the files."""
        with self._reading(range.partition) as (reader, appender):
            splits = reader.splits(range, appender.ends(), max_records=max_records)
        # The protocol's `range` may be set; a split's may not, which no user of one tries.
        return cast(list[Split], splits)

    def carried_secrets(self) -> list[str]:
        """Return none: splits are read from files."""
        return []

    def verify(self, topic: str) -> Iterator[CheckedSegment]:
        """Check every stored byte of a topic, segment by segment; damage is told, not raised."""
        for number in range(self.topic(topic).partitions):
            place = Partition(topic, number)
            yield from verify_partition(self._folder(place), place, self._appender(place).ends)

    def maintain(self) -> None:
        """Remove segments that retention no longer keeps, and decisions that are carried out.

        Compacted topics are compacted, where that is worth it. What does not succeed is logged,
        and tried again the next time.
        """
        self._check_open()
        self._housekeeping.maintain()

    def compact(self, topic: str) -> None:
        """Compact all that a topic holds now, worth it or not, beginning new segments.

        UsageError: the topic is not a compacted one. LogDamaged, DiskFull.
        """
        self._housekeeping.compact(topic)

    def close(self) -> None:
        """Release files and locks; what was acknowledged stays, and batches read stay valid.

        What was appended with `acks=1` is synced first; LogError, DiskFull: that failed.
        """
        self.inside.clients.close()
        with self._mutex:
            self._closed = True
        try:
            self._background.close()
        finally:
            with self._mutex:
                for appender in self._appenders.values():
                    appender.close()
                self._readers.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self._path}: this log is closed; open it anew.")

    def _check_partition(self, partition: Partition) -> None:
        check_partition(partition, self.topic(partition.topic))

    def _appender(self, partition: Partition) -> Appender:
        with self._mutex:
            self._check_open()
            if partition not in self._appenders:
                self._appenders[partition] = Appender(
                    self._folder(partition),
                    partition,
                    clock=self._clock,
                    sync=self._sync,
                    segment_bytes=self._segment_bytes,
                    decided=partial(is_decided, self._path),
                )
            return self._appenders[partition]

    def _reader(self, partition: Partition) -> Reader:
        with self._mutex:
            if partition not in self._readers:
                self._readers[partition] = Reader(self._folder(partition), partition)
            return self._readers[partition]

    def _folder(self, partition: Partition) -> Path:
        return partition_folder(self._path, partition)
