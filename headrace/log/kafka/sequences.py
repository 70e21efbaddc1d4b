"""The newest sequence of every producer, in a compacted topic of its own.

    topic  <prefix>headrace.producers, one partition, cleanup.policy=compact
    key    JSON [1, producer id, topic, Kafka's id of the topic, partition]; 1 is the version
    value  JSON {"epoch": <number>, "sequence": <number>, "transaction": <transactional id>}

A producer that begins has an entry of its own, with no topic, for the epoch that it was given.
An entry is written in the same Kafka transaction as the batch that it speaks of, so it is there if
and only if the batch is. The id of the topic is in the key because a topic made anew under an old
name begins without producers.

The topic is also where appends with the same producer meet. Whoever has written an entry, and has
not committed yet, looks at what was written before it: if that is decided, and still allows the
batch, no other append can come between any more, since every later one finds this entry. An entry
of the same key that is not decided yet is a *rival*: it goes first, and `transactions.py` settles
with it.

Promises:
- `newest` counts every transaction that was committed when it was asked for. Kafka shows nothing
  past the first open transaction, so it waits for rivals; transactions of others do not matter.
- What was read once is not read again, nor what this log wrote while nobody else did.
"""

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from headrace.errors import LogError, TopicExists
from headrace.log.base import Partition, Producer, Range
from headrace.log.checks import is_stored
from headrace.log.kafka.client import LOOK_AGAIN_S, PATIENCE_S, Cluster
from headrace.log.kafka.offsets import KafkaOffsets
from headrace.log.kafka.reader import ConsumerPool
from headrace.log.kafka.topics import PRODUCERS_TOPIC, KafkaTopics

__all__ = ["NOWHERE", "PLACE", "Claim", "Rival", "Sequences", "encode_key"]

VERSION = 1
BATCH_RECORDS = 10_000
PLACE = Partition(PRODUCERS_TOPIC, 0)
#: In place of a partition, in the entries of producers that begin.
NOWHERE = Partition("", 0)
_CONFIG = {"cleanup.policy": "compact"}


class Claim(NamedTuple):
    """That a batch of a producer is to be stored in a partition."""

    place: Partition
    topic_id: str
    producer: Producer

    @property
    def key(self) -> bytes:
        """What tells the producer in this partition from all others."""
        return encode_key(self.producer.id, self.place, self.topic_id)

    def value(self, transaction: str) -> bytes:
        """Return the entry that a transaction writes."""
        entry = {
            "epoch": self.producer.epoch,
            "sequence": self.producer.sequence,
            "transaction": transaction,
        }
        return json.dumps(entry).encode()


class Rival(NamedTuple):
    """An entry of the same key that was written before and is not known to be decided."""

    offset: int
    key: bytes
    epoch: int
    transaction: str


class _Entry(NamedTuple):
    offset: int
    key: bytes
    newest: Producer | None  # None: an operator made the log forget a producer
    transaction: str


def encode_key(producer_id: str, place: Partition, topic_id: str) -> bytes:
    """Return the key of a producer's entries for one partition."""
    return json.dumps([VERSION, producer_id, place.topic, topic_id, place.number]).encode()


def _decode(batch: pa.RecordBatch) -> Iterator[_Entry]:
    columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
    for offset, key, value in zip(*columns, strict=True):
        if value is None:
            yield _Entry(offset, key, None, "")
            continue
        try:
            entry = json.loads(value)
            newest = Producer(json.loads(key)[1], entry["epoch"], entry["sequence"])
            transaction = entry["transaction"]
        except (ValueError, TypeError, LookupError) as error:
            raise LogError(
                f"{PLACE}@{offset}: this is not an entry of Headrace's, so what producers have "
                f"stored is not known. Find out who writes to this topic, and delete the records "
                f"up to there with Kafka's `kafka-delete-records` if no producer needs them."
            ) from error
        yield _Entry(offset, key, newest, transaction)


def _are_dense(offsets: Sequence[int]) -> bool:
    return offsets[-1] - offsets[0] == len(offsets) - 1


class Sequences:
    """What the topic says, read as far as it went. Safe for several threads."""

    def __init__(
        self,
        cluster: Cluster,
        topics: KafkaTopics,
        offsets: KafkaOffsets,
        consumers: ConsumerPool,
    ) -> None:
        self._topics = topics
        self._offsets = offsets
        self._committed = consumers
        self._everything = ConsumerPool(cluster, committed=False)
        self._mutex = threading.Lock()
        self._known: dict[bytes, _Entry] = {}
        self._position = 0  # all before it is decided, and what was committed is known
        self._own: set[int] = set()  # offsets past it that transactions of this log have decided
        self._is_there = False

    def ensure_topic(self) -> None:
        """Make the topic if nobody has."""
        if self._exists():
            return
        try:
            self._topics.make(PRODUCERS_TOPIC, 1, _CONFIG)
        except TopicExists:
            self._topics.wait_for(PRODUCERS_TOPIC)  # another made it just now
        self._is_there = True

    def newest(self, producer_id: str, place: Partition, topic_id: str) -> Producer | None:
        """Return the newest batch of a producer in a partition, None when it has none there."""
        if not self._exists():
            return None
        key = encode_key(producer_id, place, topic_id)
        end = self._offsets.written_ends([PLACE])[PLACE]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with self._mutex:
                self._catch_up()
                rivals = self._undecided({key: end}, end)
                if not rivals:
                    return self._newest(key)
            self._check_patience(rivals, deadline)

    def largest_epoch(self, producer_id: str) -> int:
        """Return the largest epoch of a producer in any partition, 0 when it has none."""
        if not self._exists():
            return 0
        with self._mutex:
            self._catch_up()
            entries = (entry.newest for entry in self._known.values())
            return max(
                (each.epoch for each in entries if each and each.id == producer_id), default=0
            )

    def is_stored(self, claim: Claim) -> bool:
        """Say whether a batch is there, as far as the topic was read. ProducerFenced."""
        if not self._exists():
            return False
        with self._mutex:
            if self._position == 0:
                self._catch_up()
            newest = self._newest(claim.key)
        return is_stored(claim.place, claim.producer, newest)

    def is_stored_surely(self, claim: Claim) -> bool:
        """Say whether a batch is there. ProducerFenced: also if that was decided elsewhere.

        False is said as far as the topic was read: who appends then looks again (`rivals`).
        """
        if not self.is_stored(claim):
            return False
        self.newest(claim.producer.id, claim.place, claim.topic_id)
        return self.is_stored(claim)

    def rivals(self, claims: Sequence[Claim], offsets: Sequence[int]) -> list[Rival]:
        """Return who goes first, now that entries for `claims` are written at `offsets`.

        When there is nobody, `is_stored` is exact as long as the transaction stays open.
        """
        with self._mutex:
            if offsets[0] > self._position:
                self._catch_up()
            written = {claim.key: at for claim, at in zip(claims, offsets, strict=True)}
            return self._undecided(written, offsets[0] if _are_dense(offsets) else offsets[-1])

    def wait_for(self, rivals: Iterable[Rival]) -> None:
        """Return once rivals are decided. LogError: they, or others before them, are not."""
        deadline = time.monotonic() + PATIENCE_S
        rivals = list(rivals)
        while True:
            with self._mutex:
                self._catch_up()
                rivals = [rival for rival in rivals if rival.offset >= self._position]
            if not rivals:
                return
            self._check_patience(rivals, deadline)

    def note(self, claims: Sequence[Claim], offsets: Sequence[int], *, committed: bool) -> None:
        """Take note of what became of a transaction of this log with these entries."""
        with self._mutex:
            if committed:
                for claim, offset in zip(claims, offsets, strict=True):
                    self._learn(_Entry(offset, claim.key, claim.producer, ""))
            self._own.update(offset for offset in offsets if offset >= self._position)

    def pass_over(self, offsets: Sequence[int], stable_end: int) -> None:
        """Do not read again what this log committed at these offsets, if nobody else wrote since.

        `stable_end` is where the topic ended for readers, after they saw the transaction.
        """
        if stable_end != offsets[-1] + 2 or self._offsets.written_ends([PLACE])[PLACE] > stable_end:
            return
        with self._mutex:
            # All that stands there is decided. It is one offset more than our entries, and the
            # marker that decided ours is among it: so there is nothing to read.
            if offsets[0] == self._position and _are_dense(offsets):
                self._move_to(stable_end)

    def close(self) -> None:
        """End the consumers of its own."""
        self._everything.close()

    def _exists(self) -> bool:
        self._is_there = self._is_there or self._topics.exists(PRODUCERS_TOPIC)
        return self._is_there

    def _newest(self, key: bytes) -> Producer | None:
        entry = self._known.get(key)
        return None if entry is None else entry.newest

    def _learn(self, entry: _Entry) -> None:
        known = self._known.get(entry.key)
        if known is None or known.offset < entry.offset:
            self._known[entry.key] = entry

    def _catch_up(self) -> None:
        end = self._offsets.stable_ends([PLACE])[PLACE]
        for entry in self._read(self._committed, self._position, end):
            self._learn(entry)
        self._move_to(max(self._position, end))

    def _move_to(self, position: int) -> None:
        self._position = position
        self._own = {offset for offset in self._own if offset >= position}

    def _undecided(self, before: Mapping[bytes, int], end: int) -> list[Rival]:
        """Return entries in `[position, end)` that others wrote before these offsets of theirs."""
        return [
            Rival(entry.offset, entry.key, entry.newest.epoch, entry.transaction)
            for entry in self._read(self._everything, self._position, end)
            if entry.offset < before.get(entry.key, 0)
            and entry.offset not in self._own
            and entry.newest is not None
        ]

    def _read(self, consumers: ConsumerPool, start: int, end: int) -> Iterator[_Entry]:
        if end <= start:
            return
        kafka_name = self._topics.kafka_name(PRODUCERS_TOPIC)
        for batch in consumers.read(kafka_name, Range(PLACE, start, end), BATCH_RECORDS):
            yield from _decode(batch)

    def _check_patience(self, rivals: Sequence[Rival], deadline: float) -> None:
        """Give others a moment. LogError: they have had enough of them."""
        if time.monotonic() > deadline:
            raise LogError(
                f"{PLACE}@{rivals[0].offset}: an open transaction holds back the sequences of "
                f"producers, for over {PATIENCE_S} s now. End the process that has the "
                f"transactional id {rivals[0].transaction!r}, or wait until Kafka aborts it, then "
                f"try again."
            )
        time.sleep(LOOK_AGAIN_S)
