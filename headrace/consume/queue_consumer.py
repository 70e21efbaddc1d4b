"""A consumer of a queue, over the queue's book (queue_book.py).

A `poll` goes through these steps until it has records or its time is over:

1. Catch up with the book, and bury the dead that were found: append them to the dead-letter topic,
   then say so in the book. Whoever died in between leaves them to others, who append the same
   batch; the log stores it once. If this fails, nothing is handed out.
2. Take: the book decides which records are ours.
3. Read them, and make deliveries of them. Where there is no record, that is finished.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from headrace import faults
from headrace.consume.lifetime import Lifetime
from headrace.consume.polling import check_poll, wait_for
from headrace.consume.queue_book import Gone, QueueBook, Settling, Taken
from headrace.consume.queue_records import (
    DeadBatch,
    Held,
    append_dead_letters,
    make_deliveries,
    read_offsets,
)
from headrace.consume.queue_refusals import check_foreign, records_gone
from headrace.consume.queues import Delivery, Queue
from headrace.log.base import Extent, Log, Partition

__all__ = ["QueueConsumer"]

logger = logging.getLogger("headrace.log")


class QueueConsumer:
    """One consumer of a queue. For one thread at a time, of the process that made it.

    `poll` raises PositionLost, once, when retention has removed records that were not done; the
    queue goes on behind them.
    """

    def __init__(self, log: Log, queue: Queue, consumer: str, book: QueueBook) -> None:
        self._log = log
        self._queue = queue
        self._id = consumer
        self._book = book
        self._life = Lifetime(made="made", again="consume the queue")

    def poll(self, *, timeout_s: float = 1.0, max_records: int = 100) -> list[Delivery]:
        """Return records for us alone, nothing after `timeout_s` without any. PositionLost."""
        self._life.check(self)
        check_poll(self, timeout_s, max_records)
        return wait_for(
            lambda: self._poll_once(max_records),
            timeout_s=timeout_s,
            max_pause_s=self._book.max_pause_s,
        )

    def acknowledge(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Say that these are done; returns those that came too late, since their time had passed.

        A record that came too late may be handed, or have been handed, to another consumer.
        """
        return self._settle("finish", deliveries)

    def release(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Give these back, to be handed out again at once; returns those that came too late."""
        return self._settle("release", deliveries)

    def reject(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Send these to the dead-letter topic; returns those that came too late."""
        return self._settle("reject", deliveries)

    def close(self) -> None:
        """Give back all that was neither acknowledged nor rejected; that it was handed out counts.

        So a record that brings every consumer down ends as a dead letter, too.
        """
        if not self._life.end():
            return
        try:
            self._book.leave()
            self._bury()
        finally:
            self._book.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"{self._queue}, consumer {self._id}"

    # The steps of a poll.

    def _poll_once(self, max_records: int) -> list[Delivery]:
        self._book.catch_up()
        self._bury()
        taken = self._book.take(max_records)
        if taken is None:
            return []
        faults.reach("queue_after_take")
        self._bury()
        if taken.gone:
            raise records_gone(self, self._queue.topic, [*self._describe(taken.gone)])
        return self._deliver(taken)

    def _describe(self, gone: Sequence[Gone]) -> Iterable[str]:
        for number, free_records, start, end in gone:
            place = self._place(number)
            if free_records:
                yield f"{free_records} of {place} that were handed out before"
            if start < end:
                yield f"{place}@{start} up to {end}"

    def _deliver(self, taken: Taken) -> list[Delivery]:
        """Return the records that are ours; those that are not there are finished."""
        counts: dict[int, dict[int, int]] = {}
        for number, offset, count in taken.again:
            counts.setdefault(number, {})[offset] = count
        for place, start, end in taken.new:
            counts.setdefault(place.number, {}).update(dict.fromkeys(range(start, end), 1))
        deliveries = self._read(counts, taken.extents)
        there = {(each.partition.number, each.offset) for each in deliveries}
        missing = [
            Held(number, offset, count)
            for number, own in counts.items()
            for offset, count in own.items()
            if (number, offset) not in there
        ]
        if missing:
            self._book.settle("finish", missing)
        return deliveries

    def _read(
        self, counts: Mapping[int, Mapping[int, int]], extents: Mapping[Partition, Extent]
    ) -> list[Delivery]:
        def read(number: int) -> list[Delivery]:
            place = self._place(number)
            table = read_offsets(self._log, place, extents[place], sorted(counts[number]))
            return make_deliveries(place, table, counts[number])

        numbers = sorted(counts)
        if min(len(numbers), self._book.reads_at_once) < 2:
            return [each for number in numbers for each in read(number)]
        with ThreadPoolExecutor(self._book.reads_at_once) as threads:
            return [each for found in threads.map(read, numbers) for each in found]

    def _place(self, number: int) -> Partition:
        return Partition(self._queue.topic, number)

    # Taking back.

    def _settle(self, how: Settling, deliveries: Iterable[Delivery]) -> list[Delivery]:
        self._life.check(self)
        deliveries = list(deliveries)
        check_foreign(self, self._queue.topic, deliveries)
        if not deliveries:
            return []
        held = [Held(each.partition.number, each.offset, each.deliveries) for each in deliveries]
        late = list(self._book.settle(how, held))
        self._bury()
        came_late = []
        for each, record in zip(reversed(deliveries), reversed(held), strict=True):
            if record in late:  # of what is said twice, the second is late
                late.remove(record)
                came_late.append(each)
        return came_late[::-1]

    def _bury(self) -> None:
        """Append what is dead and ours to bury, and forget it.

        In the order of the sequences, since the log takes one for stored when it has a later one.
        """
        for batch in list(self._book.dying()):
            faults.reach("queue_before_dead_letter")
            self._append_dead(batch)
            faults.reach("queue_after_dead_letter")
            self._book.note_buried(batch)

    def _append_dead(self, batch: DeadBatch) -> None:
        place = self._place(batch.number)
        extent = self._log.extents(place.topic)[place]
        table = read_offsets(self._log, place, extent, [row.offset for row in batch.rows])
        if (missing := len(batch.rows) - table.num_rows) > 0:
            logger.warning("%s: %s records of %s died and are gone", self, missing, place)
        if table.num_rows:
            append_dead_letters(
                self._log, self._book.dead_letters, place, table, batch, self._queue.producer_id
            )
