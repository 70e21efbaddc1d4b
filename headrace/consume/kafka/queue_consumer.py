"""A consumer of a queue on Kafka.

A `poll` goes through these steps until it has records or its time is over:

1. Catch up with the book (queue_entries.py), and bury the dead that were found: append them to
   the dead-letter topic, then say so in the book. Whoever died in between leaves them to others,
   who append the same batch; the log stores it once. If this fails, nothing is handed out.
2. Look whether there is anything to hand out. If so, write that we take some.
3. Read the records that are ours by what came of that.

Not Kafka's share groups: their client (confluent-kafka 2.16) takes whole batches, however few
records were asked for, so that the other consumers have no work and records count as handed out
that nobody saw; it does not poll while a record is held; and after the brokers' limit of deliveries
a record is gone without a word. See docs/decisions.md.
"""

import os
import secrets
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import pyarrow as pa

from headrace import faults
from headrace.consume.kafka.queue_entries import QueueEntries, book_name
from headrace.consume.kafka.queue_state import Dying, Gone, Outcome
from headrace.consume.polling import check_poll, wait_for
from headrace.consume.queue_records import (
    CONSUMER_SILENCE_MS,
    Held,
    append_dead_letters,
    dead_letter_producer,
    make_dead_letter_topic,
    make_deliveries,
    read_offsets,
)
from headrace.consume.queue_refusals import (
    check_foreign,
    consumer_closed,
    consumer_of_parent,
    other_settings,
    records_gone,
)
from headrace.consume.queues import Delivery, QueueSettings, dead_letter_topic
from headrace.log.base import Extent, Partition
from headrace.log.kafka.client import LOGGER
from headrace.log.kafka.inside import Inside

__all__ = ["KafkaQueueConsumer"]

# A look asks the leaders of all partitions for their ends.
MAX_PAUSE_S = 0.1
# How many partitions are read at once; as many consumers are kept for the next read.
MAX_READS = 4
# Often enough that a consumer that only waits keeps its say about the queue's settings.
SHOW_EVERY_MS = CONSUMER_SILENCE_MS // 4
# The dead are left to who found them for so long, or for the time of a lock if that is shorter.
MAX_BURIAL_MS = 5_000


class KafkaQueueConsumer:
    """A `QueueConsumer`. For one thread at a time, of the process that made it.

    `poll` raises PositionLost, once, when retention has removed records that were not done; the
    queue goes on behind them.
    """

    def __init__(self, inside: Inside, *, queue: str, topic: str, settings: QueueSettings) -> None:
        self._inside = inside
        self._queue = queue
        self._topic = topic
        self._dead_letters = dead_letter_topic(queue, topic, settings)
        self._settings = settings._replace(dead_letters=self._dead_letters)
        self._producer_id = dead_letter_producer(queue, topic)
        self._id = secrets.token_hex(8)
        self._process = os.getpid()
        self._closed = False
        self._topic_id = inside.topics.find(topic).id
        self._book = self._open_book(self._topic_id)

    def poll(self, *, timeout_s: float = 1.0, max_records: int = 100) -> list[Delivery]:
        """Return records for us alone, nothing after `timeout_s` without any. PositionLost."""
        self._check_usable()
        check_poll(self, timeout_s, max_records)
        return wait_for(
            lambda: self._poll_once(max_records), timeout_s=timeout_s, max_pause_s=MAX_PAUSE_S
        )

    def acknowledge(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Say that these are done; returns those that came too late."""
        return self._settle("finish", deliveries)

    def release(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Give these back, to be handed out again at once; returns those that came too late."""
        return self._settle("release", deliveries)

    def reject(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Send these to the dead-letter topic; returns those that came too late."""
        return self._settle("reject", deliveries)

    def close(self) -> None:
        """Give back all that was neither acknowledged nor rejected."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        try:
            self._inside.cluster.topic_names()  # tells sooner than an append that nobody is there
            self._book.write("leave")
            self._bury()
        finally:
            self._book.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"queue {self._queue} of {self._topic}, consumer {self._id}"

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise consumer_of_parent(self, self._process)
        if self._closed:
            raise consumer_closed(self)

    # The book.

    def _open_book(self, topic_id: str) -> QueueEntries:
        name = book_name(self._queue, self._topic, topic_id)
        book = QueueEntries(self._inside, name, self._id)
        try:
            self._enter(book)
        except BaseException:
            book.close()
            raise
        return book

    def _enter(self, book: QueueEntries) -> None:
        """Show ourselves, and give every partition that is new a place to begin. UsageError."""
        make_dead_letter_topic(self._inside.log, self._dead_letters, self._topic)
        extents = self._inside.log.extents(self._topic)
        # A partition that was added later is read from its start.
        latest = not book.state.cursors and self._settings.start == "latest"
        starts = []
        for place, (first, end) in sorted(extents.items()):
            if place.number not in book.state.cursors:
                # Should the book be lost, the log still knows which sequences it has stored.
                dead = Partition(self._dead_letters, place.number)
                last = self._inside.log.last_sequence(dead, self._producer_id)
                starts.append([place.number, end if latest else first, last or 0])
        refused = book.write("enter", settings=self._settings._asdict(), starts=starts).refused
        if refused is not None:
            raise other_settings(self._queue, self._topic, refused[0], self._settings, refused[1])

    def _follow_topic(self) -> None:
        """Begin anew where the topic was made anew, and with partitions that it got."""
        found = self._inside.topics.find(self._topic)
        if found.id != self._topic_id:
            LOGGER.warning("%s: the topic was made anew, the queue begins anew too", self)
            book = self._open_book(found.id)
            self._book.close()
            self._topic_id, self._book = found.id, book
        elif len(self._book.state.cursors) < found.topic.partitions:
            self._enter(self._book)

    # The steps of a poll.

    def _poll_once(self, max_records: int) -> list[Delivery]:
        self._follow_topic()
        self._book.catch_up()
        self._bury()
        extents = self._inside.log.extents(self._topic)
        if not self._has_more(extents):
            seen_ms = self._book.state.consumers.get(self._id, 0)
            if self._book.now_ms - seen_ms > SHOW_EVERY_MS:
                self._book.write("show")
            return []
        state = self._book.state
        known = {place: each for place, each in extents.items() if place.number in state.cursors}
        taken = self._book.write(
            "take",
            max=max_records,
            ends=[[place.number, each.end_offset] for place, each in known.items()],
            gone=[
                [place.number, each.first_offset]
                for place, each in known.items()
                if self._is_gone(place.number, each.first_offset)
            ],
        )
        faults.reach("queue_after_take")
        self._bury()
        if taken.gone:
            raise records_gone(self, self._topic, [*self._describe(taken.gone)])
        return self._deliver(taken, extents)

    def _has_more(self, extents: dict[Partition, Extent]) -> bool:
        state = self._book.state
        ends = [[place.number, extent.end_offset] for place, extent in extents.items()]
        return state.has_free(self._book.now_ms) or bool(state.unread(ends))

    def _is_gone(self, number: int, first_offset: int) -> bool:
        free = self._book.state.first_free(number)
        return self._book.state.cursors[number] < first_offset or (
            free is not None and free < first_offset
        )

    def _describe(self, gone: Sequence[Gone]) -> Iterable[str]:
        for number, free_records, start, end in gone:
            place = Partition(self._topic, number)
            if free_records:
                yield f"{free_records} of {place} that were handed out before"
            if start < end:
                yield f"{place}@{start} up to {end}"

    def _deliver(self, taken: Outcome, extents: dict[Partition, Extent]) -> list[Delivery]:
        """Return the records that are ours; those that are not there are finished."""
        counts: dict[int, dict[int, int]] = {}
        for number, offset, count in taken.again:
            counts.setdefault(number, {})[offset] = count
        for place, start, end in taken.new:
            counts.setdefault(place.number, {}).update(dict.fromkeys(range(start, end), 1))

        def read(number: int) -> list[Delivery]:
            place = Partition(self._topic, number)
            table = self._read(place, extents[place], sorted(counts[number]))
            return make_deliveries(place, table, counts[number])

        # A read waits for the broker most of its time.
        with ThreadPoolExecutor(MAX_READS) as threads:
            deliveries = [each for found in threads.map(read, sorted(counts)) for each in found]
        there = {(each.partition.number, each.offset) for each in deliveries}
        missing = [
            Held(number, offset, count)
            for number, own in counts.items()
            for offset, count in own.items()
            if (number, offset) not in there
        ]
        if missing:
            self._book.write("finish", records=missing)
        return deliveries

    def _read(self, place: Partition, extent: Extent, offsets: Sequence[int]) -> pa.Table:
        return read_offsets(self._inside.log, place, extent, offsets)

    # Taking back.

    def _settle(self, do: str, deliveries: Iterable[Delivery]) -> list[Delivery]:
        self._check_usable()
        deliveries = list(deliveries)
        check_foreign(self, self._topic, deliveries)
        if not deliveries:
            return []
        held = [Held(each.partition.number, each.offset, each.deliveries) for each in deliveries]
        late = list(self._book.write(do, records=held).late)
        self._bury()
        came_late = []
        for each, record in zip(reversed(deliveries), reversed(held), strict=True):
            if record in late:  # of what is said twice, the second is late
                late.remove(record)
                came_late.append(each)
        return came_late[::-1]

    def _bury(self) -> None:
        """Append the dead that are ours to bury, and those of the partition that died before.

        In this order, since the log takes a sequence for stored when it has a later one.
        """
        after_ms = min(MAX_BURIAL_MS, self._settings.lock_ms)
        last = {
            dying.batch.number: dying.batch.sequence
            for dying in self._book.state.dying
            if dying.by == self._id or self._book.now_ms - dying.since_ms > after_ms
        }
        for dying in list(self._book.state.dying):
            if dying.batch.sequence <= last.get(dying.batch.number, 0):
                self._bury_one(dying)

    def _bury_one(self, dying: Dying) -> None:
        batch, settings = dying.batch, self._book.state.settings
        # The queue's, which may have changed while we were silent.
        assert settings is not None
        dead_letters = settings.dead_letters or self._dead_letters
        place = Partition(self._topic, batch.number)
        faults.reach("queue_before_dead_letter")
        extent = self._inside.log.extents(self._topic)[place]
        table = self._read(place, extent, [row.offset for row in batch.rows])
        if table.num_rows:  # the others are gone, or never were records
            append_dead_letters(
                self._inside.log, dead_letters, place, table, batch, self._producer_id
            )
        faults.reach("queue_after_dead_letter")
        self._book.write("buried", batch=[batch.number, batch.sequence])
