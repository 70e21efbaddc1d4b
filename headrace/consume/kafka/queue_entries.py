"""The book of a queue: a topic of one partition, whose entries say what its consumers do.

    topic  <prefix>headrace.queue.<topic>.<queue>.<16 digits>, names cut to NAME_CHARACTERS; the
           digits tell queues with the same beginning apart, and topics made anew under an old name
    value  an entry (queue_state.py)

Promises:
- What comes of an entry is known once it is read back, behind all that were written before it.
- After every SNAPSHOT_ENTRIES the state is written down, and the entries before are removed; who
  opens the book reads the last of these states and what came after. Should removing fail, there is
  more to read, and no more.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.consume.kafka.queue_state import VERSION, Entry, Outcome, QueueState
from headrace.errors import HeadraceError, LogError, TopicExists
from headrace.log.base import MAX_RECORD_BYTES, Partition
from headrace.log.kafka.client import LOGGER, LOOK_S
from headrace.log.kafka.delivery import Share
from headrace.log.kafka.inside import Inside
from headrace.log.kafka.reader import LOST, offset_of
from headrace.log.kafka.topics import QUEUE_BOOKS
from headrace.log.records import check_records, records

__all__ = ["QueueEntries", "book_name"]

SNAPSHOT_ENTRIES = 1_000
NAME_CHARACTERS = 50
READ_ENTRIES = 500
MAX_LOADS = 5

_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": str(2 * MAX_RECORD_BYTES),
}


class _Trimmed(Exception):
    """The next entry is gone: others have gone on, and need it no longer. Neither do we."""


def book_name(queue: str, topic: str, topic_id: str) -> str:
    """Return the name of the topic that holds the book of a queue."""
    facts = json.dumps([queue, topic, topic_id]).encode()
    digits = hashlib.sha256(facts).hexdigest()[:16]
    return f"{QUEUE_BOOKS}{topic[:NAME_CHARACTERS]}.{queue[:NAME_CHARACTERS]}.{digits}"


class QueueEntries:
    """A queue's book, and its state as far as it was read. For one thread at a time."""

    def __init__(self, inside: Inside, name: str, writer: str) -> None:
        self._inside = inside
        self._cluster = inside.cluster
        self._place = Partition(name, 0)
        self._writer = writer
        self.state = QueueState()
        self._position = 0
        self._snapshot_at = -1
        self._read_at = time.monotonic()
        self._own = (-1, Outcome())  # the last entry of ours, and what came of it
        self._consumer = self._open()
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @property
    def now_ms(self) -> int:
        """The time of the broker, as far as it is known; never too late."""
        return self.state.now_ms + int((time.monotonic() - self._read_at) * 1000)

    def catch_up(self) -> None:
        """Go on with the entries that have come."""
        try:
            while entries := self._poll(0):
                for entry in entries:
                    self._apply(entry)
        except _Trimmed:
            self._load()

    def write(self, do: str, **content: Any) -> Outcome:
        """Write an entry, and return what came of it. Unreachable, LogError: that is not known."""
        self.catch_up()
        offset = self._append({"v": VERSION, "by": self._writer, "do": do, **content})
        self._read_to(offset)
        written, outcome = self._own
        if written != offset:
            raise LogError(
                f"{self._place}@{offset}: the book went on for so long before this was read that "
                f"what came of {do!r} is not known. Poll anew; what was held is handed out again "
                f"when its time has passed."
            )
        if offset - self._snapshot_at > SNAPSHOT_ENTRIES:
            try:
                self._write_snapshot()
            except HeadraceError as error:
                LOGGER.warning("%s: cannot cut the queue's book: %s", self._place, error)
        return outcome

    def close(self) -> None:
        """End the client that reads the book."""
        self._consumer.close()

    # Reading.

    def _open(self) -> Consumer:
        topics = self._inside.topics
        if not topics.exists(self._place.topic):
            try:
                topics.make(self._place.topic, 1, _CONFIG)
            except TopicExists:
                topics.wait_for(self._place.topic)  # another made it just now
        return self._cluster.consumer(patient=True)

    def _load(self) -> None:
        """Begin with the last state that was written down."""
        for _ in range(MAX_LOADS):
            with suppress(_Trimmed):  # others go on meanwhile
                return self._load_once()
        raise LogError(
            f"{self._place}: the queue's book does not say what was before its first entry: "
            f"somebody else removes entries, or writes some faster than they can be read. Delete "
            f"the topic {self._kafka_name!r} with Kafka's tools to let the queue begin anew."
        )

    def _load_once(self) -> None:
        first, end = self._inside.offsets.extents([self._place])[self._place]
        with self._cluster.errors(f"read {self._place}"):
            self._consumer.list_topics(self._kafka_name, timeout=self._cluster.timeout_s)
            self._consumer.assign([TopicPartition(self._kafka_name, 0, first)])
        self._position = first
        entries = [entry for batch in self._batches(end) for entry in batch]
        snapshots = [entry.content for entry in entries if entry.content["do"] == "snapshot"]
        # Of two that were written at once the later may be the older one; what it needs is gone.
        snapshot = max(snapshots, key=lambda each: int(each["at"]), default=None)
        at = -1 if snapshot is None else int(snapshot["at"])
        if at < first - 1:
            raise _Trimmed
        self._snapshot_at = at
        self.state = QueueState() if snapshot is None else QueueState.from_json(snapshot["state"])
        for entry in entries:
            if entry.offset > at:
                self._apply(entry)

    @property
    def _kafka_name(self) -> str:
        return self._inside.topics.kafka_name(self._place.topic)

    def _read_to(self, offset: int) -> None:
        """Read up to an entry."""
        try:
            for batch in self._batches(offset + 1):
                for entry in batch:
                    self._apply(entry)
        except _Trimmed:
            self._load()

    def _batches(self, end: int) -> Iterator[list[Entry]]:
        """Yield entries until all before `end` are read. Unreachable, _Trimmed."""
        deadline = time.monotonic() + self._cluster.timeout_s
        while self._position < end:
            if entries := self._poll(LOOK_S):
                deadline = time.monotonic() + self._cluster.timeout_s
                yield entries
            elif time.monotonic() > deadline:
                self._read_on()
                raise self._cluster.unreachable(f"read {self._place}")

    def _read_on(self) -> None:
        """Go on with a new client where the one that got no answer stood."""
        self._consumer.close()
        self._consumer = self._cluster.consumer(patient=True)
        self._consumer.assign([TopicPartition(self._kafka_name, 0, self._position)])

    def _poll(self, wait_s: float) -> list[Entry]:
        """Return the entries that have come; the first is waited for. _Trimmed."""
        with self._cluster.errors(f"read {self._place}"):
            first = self._consumer.poll(wait_s)
            messages = [] if first is None else [first, *self._consumer.consume(READ_ENTRIES, 0)]
        entries: list[Entry] = []
        for message in messages:
            error = message.error()
            if error is None:
                self._position = offset_of(message) + 1
                entries.append(self._decode(message))
            elif error.code() in LOST:
                raise _Trimmed
            elif error.code() == KafkaError._PARTITION_EOF:
                self._position = max(self._position, offset_of(message))
            else:
                raise self._cluster.translated(error, f"read {self._place}")
        return entries

    def _decode(self, message: Any) -> Entry:
        offset = offset_of(message)
        try:
            content = json.loads(message.value())
            version = content["v"]
            content["by"], content["do"]
        except (ValueError, TypeError, LookupError) as error:
            raise self._not_ours(offset, "this is not an entry of Headrace's") from error
        if version != VERSION:
            raise self._not_ours(offset, f"this entry is of version {version}, of a newer Headrace")
        return Entry(offset, message.timestamp()[1], content)

    def _not_ours(self, offset: int, what: str) -> LogError:
        return LogError(
            f"{self._place}@{offset}: {what}, so what the queue has handed out is not known. Find "
            f"out who writes to the topic {self._kafka_name!r}, and delete it with Kafka's tools "
            f"to let the queue begin anew."
        )

    def _apply(self, entry: Entry) -> None:
        self._read_at = time.monotonic()
        if entry.content["do"] == "snapshot":
            self._snapshot_at = max(self._snapshot_at, entry.content["at"])
        outcome = self.state.apply(entry)
        if entry.content["by"] == self._writer:
            self._own = (entry.offset, outcome)

    # Writing.

    def _append(self, content: dict[str, Any]) -> int:
        table = records([json.dumps(content, separators=(",", ":"))])
        rows = check_records(table, topic=self._place.topic)
        return self._inside.append_own(Share(self._place, rows)).offsets[0]

    def _write_snapshot(self) -> None:
        at = self._position - 1
        head = {"v": VERSION, "by": self._writer, "do": "snapshot"}
        self._read_to(self._append({**head, "at": at, "state": self.state.to_json()}))
        place = self._inside.topics.kafka_place(self._place, at + 1)
        futures = self._cluster.admin.delete_records([place])
        self._cluster.wait(futures[place], f"remove old entries of {self._place}")
