"""A consumer of a queue of the embedded log.

A `poll` goes through these steps until it has records or its time is over:

1. Look whether there is anything to hand out or to bury.
2. Mark dead what is free and was handed out too often, then bury the dead: append them to the
   dead-letter topic, and forget them. Whoever finds some that a dead process marked does the same;
   the log stores each batch once. If this fails, nothing is handed out.
3. In one step: hand out again what is free, then new records, from each partition its share.
4. Make deliveries of the records.
"""

import logging
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import pyarrow as pa

from headrace import faults
from headrace.consume.embedded.coordinator import Coordinator, now_ms
from headrace.consume.embedded.queue_rows import QueueRows
from headrace.consume.polling import check_poll, share_evenly, wait_for
from headrace.consume.queue_records import (
    CONSUMER_SILENCE_MS,
    DeadBatch,
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
    records_gone,
)
from headrace.consume.queues import Delivery, QueueSettings, dead_letter_topic
from headrace.log.base import Extent, Partition, Range
from headrace.log.embedded.inside import Inside

__all__ = ["EmbeddedQueueConsumer"]

# Often enough that a consumer that only waits keeps its say about the queue's settings.
SHOW_EVERY_MS = CONSUMER_SILENCE_MS // 4

logger = logging.getLogger("headrace.log")


class EmbeddedQueueConsumer:
    """A `QueueConsumer`. For one thread at a time, of the process that made it.

    `poll` raises PositionLost, once, when retention has removed records that were not done; the
    queue goes on behind them.
    """

    def __init__(
        self,
        inside: Inside,
        coordinator: Coordinator,
        *,
        queue: str,
        topic: str,
        settings: QueueSettings,
    ) -> None:
        self._inside = inside
        self._coordinator = coordinator
        self._queue = queue
        self._topic = topic
        self._dead_letters = dead_letter_topic(queue, topic, settings)
        self._settings = settings._replace(dead_letters=self._dead_letters)
        self._producer_id = dead_letter_producer(queue, topic)
        self._id = secrets.token_hex(8)
        self._process = os.getpid()
        self._closed = False
        self._turn = 0
        self._shown_ms = 0
        make_dead_letter_topic(self._inside.log, self._dead_letters, self._topic)
        with coordinator.step() as connection:
            self._enter(QueueRows(connection, queue, topic))

    def poll(self, *, timeout_s: float = 1.0, max_records: int = 100) -> list[Delivery]:
        """Return records for us alone, nothing after `timeout_s` without any. PositionLost."""
        self._check_usable()
        check_poll(self, timeout_s, max_records)
        return wait_for(lambda: self._poll_once(max_records), timeout_s=timeout_s)

    def acknowledge(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Say that these are done; returns those that came too late."""
        return self._take_back(deliveries, lambda book, held: book.finish(held))

    def release(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Give these back, to be handed out again at once; returns those that came too late."""
        late = self._take_back(deliveries, lambda book, held: book.release(held))
        self._bury()
        return late

    def reject(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Send these to the dead-letter topic; returns those that came too late."""
        late = self._take_back(
            deliveries, lambda book, held: book.mark_dead([(each, "rejected") for each in held])
        )
        self._bury()
        return late

    def close(self) -> None:
        """Give back all that was neither acknowledged nor rejected."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        with self._coordinator.step() as connection:
            book = QueueRows(connection, self._queue, self._topic)
            if book.row is None:
                return
            book.release(book.held(self._id))
            book.leave(self._id)
        self._bury()

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

    # The queue.

    def _enter(self, book: QueueRows) -> None:
        """Show ourselves, and give every partition that is new a cursor. UsageError."""
        stored = self._inside.stored(self._topic)
        new = book.enter(self._id, self._settings, stored.id)
        self._shown_ms = now_ms()
        if book.row is not None and book.row.topic_id != stored.id:
            logger.warning("%s: the topic was made anew, the queue begins anew too", self)
            book.begin_anew(stored.id)
        known = book.cursors()
        for number in range(stored.topic.partitions):
            if number not in known:
                extent = self._extent(number)
                # A partition that was added later is read from its start.
                latest = new and self._settings.start == "latest"
                start = extent.end_offset if latest else extent.first_offset
                # Should the book be lost, the log still knows which sequences it has stored.
                make_dead_letter_topic(self._inside.log, self._dead_letters, self._topic)
                dead = Partition(self._dead_letters, number)
                last = self._inside.log.last_sequence(dead, self._producer_id)
                book.add_cursor(number, start, dead_sequence=last or 0)

    # The steps of a poll.

    def _poll_once(self, max_records: int) -> list[Delivery]:
        stored = self._inside.stored(self._topic)
        with self._coordinator.look() as connection:
            book = QueueRows(connection, self._queue, self._topic)
            known = book.row is not None and book.row.topic_id == stored.id
            returned = known and book.has_returned()
            if known and not returned and not self._has_more(book, stored.topic.partitions):
                return []
        if returned:
            with self._coordinator.step() as connection:
                QueueRows(connection, self._queue, self._topic).retire()
            self._bury()
        gone: list[str] = []
        held: list[Held] = []
        tables: list[tuple[Partition, pa.Table]] = []
        with self._coordinator.step() as connection:
            book = QueueRows(connection, self._queue, self._topic)
            self._enter(book)
            unread = self._unread(book, gone)
            if not gone:
                held = book.hand_out_again(self._id, max_records)
                new = share_evenly(unread, max_records - len(held), turn=self._turn)
                for place, start, end in new:
                    table = self._read(place, range(start, end))
                    offsets = table.column("offset").to_pylist()
                    book.hand_out(self._id, place.number, offsets, end)
                    tables.append((place, table))
        self._turn += 1
        faults.reach("queue_after_take")
        if gone:
            raise records_gone(self, self._topic, gone)
        deliveries = [each for place, table in tables for each in make_deliveries(place, table)]
        return [*self._deliver_again(held), *deliveries]

    def _has_more(self, book: QueueRows, partitions: int) -> bool:
        """Whether there is something to hand out for the first time, or to write down anew."""
        if now_ms() - self._shown_ms > SHOW_EVERY_MS:
            return True
        cursors = book.cursors()
        return len(cursors) < partitions or any(
            cursor.room > 0 and cursor.next_offset < self._extent(number).end_offset
            for number, cursor in cursors.items()
        )

    def _extent(self, number: int) -> Extent:
        return self._inside.extent(Partition(self._topic, number))

    def _unread(self, book: QueueRows, gone: list[str]) -> list[Range]:
        """Return what can be handed out for the first time; say what is gone."""
        unread: list[Range] = []
        for number, cursor in sorted(book.cursors().items()):
            place, next_offset = Partition(self._topic, number), cursor.next_offset
            first, end = self._extent(number)
            if dropped := book.drop_gone(number, first):
                gone.append(f"{dropped} of {place} that were handed out before")
            if next_offset < first:
                gone.append(f"{place}@{next_offset} up to {first}")
                book.move_cursor(number, next_offset := first)
            if next_offset < end and cursor.room > 0:
                unread.append(Range(place, next_offset, min(end, next_offset + cursor.room)))
        return unread

    def _deliver_again(self, held: list[Held]) -> list[Delivery]:
        """Return records that are handed out again; what was compacted away meanwhile is done."""
        deliveries: list[Delivery] = []
        for number in sorted({each.number for each in held}):
            place = Partition(self._topic, number)
            counts = {each.offset: each.deliveries for each in held if each.number == number}
            table = self._read(place, sorted(counts))
            deliveries += make_deliveries(place, table, counts)
        found = {(each.partition.number, each.offset) for each in deliveries}
        if removed := [each for each in held if each[:2] not in found]:
            with self._coordinator.step() as connection:
                QueueRows(connection, self._queue, self._topic).finish(removed)
        return deliveries

    # Taking back.

    def _take_back(
        self, deliveries: Iterable[Delivery], act: Callable[[QueueRows, list[Held]], None]
    ) -> list[Delivery]:
        self._check_usable()
        deliveries = list(deliveries)
        check_foreign(self, self._topic, deliveries)
        if not deliveries:
            return []
        late: list[Delivery] = []
        with self._coordinator.step() as connection:
            book = QueueRows(connection, self._queue, self._topic)
            still_ours = book.held(self._id) if book.row is not None else set()
            ours: list[Held] = []
            for each in deliveries:
                held = Held(each.partition.number, each.offset, each.deliveries)
                if held in still_ours:
                    still_ours.remove(held)
                    ours.append(held)
                else:
                    late.append(each)
            if ours:
                act(book, ours)
        return late

    def _bury(self) -> None:
        """Append what is marked dead, in the order of the sequences, and forget it."""
        with self._coordinator.look() as connection:
            book = QueueRows(connection, self._queue, self._topic)
            batches = book.dead_batches() if book.row is not None else []
        for batch in batches:
            faults.reach("queue_before_dead_letter")
            self._append_dead(batch)
            faults.reach("queue_after_dead_letter")
            with self._coordinator.step() as connection:
                QueueRows(connection, self._queue, self._topic).remove_dead(batch)

    def _append_dead(self, batch: DeadBatch) -> None:
        place = Partition(self._topic, batch.number)
        table = self._read(place, [row.offset for row in batch.rows])
        if (missing := len(batch.rows) - table.num_rows) > 0:
            logger.warning("%s: %s records of %s died and are gone", self, missing, place)
        if table.num_rows:
            append_dead_letters(
                self._inside.log, self._dead_letters, place, table, batch, self._producer_id
            )

    def _read(self, place: Partition, offsets: Sequence[int]) -> pa.Table:
        return read_offsets(self._inside.log, place, self._inside.extent(place), offsets)
