"""The book of a queue of the embedded log: rows of the coordinator's tables (queue_rows.py).

Each call is one step of the coordinator, so that consumers take one after the other.
"""

import logging
import sqlite3
from collections.abc import Sequence

from headrace.consume.embedded.coordinator import Coordinator, now_ms
from headrace.consume.embedded.queue_rows import QueueRows
from headrace.consume.polling import MAX_PAUSE_S, share_evenly
from headrace.consume.queue_book import Gone, Settling, Taken
from headrace.consume.queue_records import (
    SHOW_EVERY_MS,
    DeadBatch,
    Held,
    find_starts,
    make_dead_letter_topic,
)
from headrace.consume.queues import Queue
from headrace.log.base import Extent, Partition, Range
from headrace.log.embedded.inside import Inside

__all__ = ["EmbeddedQueueBook"]

logger = logging.getLogger("headrace.log")


class EmbeddedQueueBook:
    """A `QueueBook`."""

    max_pause_s = MAX_PAUSE_S
    reads_at_once = 1

    def __init__(
        self, inside: Inside, coordinator: Coordinator, queue: Queue, consumer: str
    ) -> None:
        self._inside = inside
        self._coordinator = coordinator
        self._queue = queue
        self._consumer = consumer
        self.dead_letters = queue.dead_letters
        self._turn = 0
        self._shown_ms = 0
        self._has_work = False
        self._dying: list[DeadBatch] = []
        make_dead_letter_topic(inside.log, queue.dead_letters, queue.topic)
        with coordinator.step() as connection:
            self._enter(self._rows(connection))

    def _rows(self, connection: sqlite3.Connection) -> QueueRows:
        return QueueRows(connection, self._queue)

    def _enter(self, rows: QueueRows) -> None:
        """Show ourselves, and give every partition that is new a cursor. UsageError."""
        stored = self._inside.stored(self._queue.topic)
        new = rows.enter(self._consumer, stored.id)
        self._shown_ms = now_ms()
        self.dead_letters = self._queue.dead_letters
        if rows.row is not None and rows.row.topic_id != stored.id:
            logger.warning(
                "%s, consumer %s: the topic was made anew, the queue begins anew too",
                self._queue,
                self._consumer,
            )
            rows.begin_anew(stored.id)
        known = rows.cursors()
        if len(known) < stored.topic.partitions:
            latest = new and self._queue.settings.start == "latest"
            for start in find_starts(self._inside.log, self._queue, known, latest=latest):
                rows.add_cursor(start.number, start.offset, dead_sequence=start.dead_sequence)

    # The steps of a poll.

    def catch_up(self) -> None:
        """Learn what there is to hand out, and mark dead what was handed out too often."""
        stored = self._inside.stored(self._queue.topic)
        with self._coordinator.look() as connection:
            rows = self._rows(connection)
            known = rows.row is not None and rows.row.topic_id == stored.id
            returned = known and rows.has_returned()
            more = known and not returned and self._has_more(rows, stored.topic.partitions)
            self._has_work = not known or returned or more
        self._dying = []
        if returned:
            with self._coordinator.step() as connection:
                rows = self._rows(connection)
                rows.retire()
                self._note_dying(rows)

    def _has_more(self, rows: QueueRows, partitions: int) -> bool:
        """Whether there is something to hand out for the first time, or to write down anew."""
        if now_ms() - self._shown_ms > SHOW_EVERY_MS:
            return True
        cursors = rows.cursors()
        return len(cursors) < partitions or any(
            cursor.room > 0 and cursor.next_offset < self._extent(number).end_offset
            for number, cursor in cursors.items()
        )

    def take(self, max_records: int) -> Taken | None:
        """Hand out records to us: those that are free again, then new ones. UsageError."""
        if not self._has_work:
            return None
        self._dying = []
        with self._coordinator.step() as connection:
            rows = self._rows(connection)
            self._enter(rows)
            unread, gone, extents = self._unread(rows)
            if gone:
                return Taken(gone=gone)
            again = rows.hand_out_again(self._consumer, max_records)
            new = share_evenly(unread, max_records - len(again), turn=self._turn)
            for place, start, end in new:
                rows.hand_out(self._consumer, place.number, start, end)
        self._turn += 1
        return Taken(again, new, extents=extents)

    def _unread(self, rows: QueueRows) -> tuple[list[Range], list[Gone], dict[Partition, Extent]]:
        """Return what can be handed out for the first time, what is gone, and what there is."""
        unread: list[Range] = []
        gone: list[Gone] = []
        extents: dict[Partition, Extent] = {}
        for number, cursor in sorted(rows.cursors().items()):
            place, next_offset = Partition(self._queue.topic, number), cursor.next_offset
            first, end = extents[place] = self._extent(number)
            dropped = rows.drop_gone(number, first)
            if next_offset < first:
                rows.move_cursor(number, first)
            if dropped or next_offset < first:
                gone.append(Gone(number, dropped, next_offset, max(next_offset, first)))
            if next_offset < end and cursor.room > 0:
                unread.append(Range(place, next_offset, min(end, next_offset + cursor.room)))
        return unread, gone, extents

    def _extent(self, number: int) -> Extent:
        return self._inside.extent(Partition(self._queue.topic, number))

    # Taking back.

    def settle(self, how: Settling, held: Sequence[Held]) -> Sequence[Held]:
        """Do so with records that we hold; return those that we do not."""
        late: list[Held] = []
        ours: list[Held] = []
        self._dying = []
        with self._coordinator.step() as connection:
            rows = self._rows(connection)
            if rows.row is None:
                return held
            still_ours = rows.held(self._consumer)
            for each in held:
                if each in still_ours:
                    still_ours.remove(each)
                    ours.append(each)
                else:
                    late.append(each)
            if how == "finish":
                rows.finish(ours)
                return late
            if how == "release":
                rows.release(ours)
            else:
                rows.mark_dead([(each, "rejected") for each in ours])
            self._note_dying(rows)
        return late

    def dying(self) -> Sequence[DeadBatch]:
        """Return all that is on its way to the dead-letter topic, as we last saw it."""
        return self._dying

    def _note_dying(self, rows: QueueRows) -> None:
        assert rows.row is not None
        self._dying = rows.dead_batches()
        # The queue's, which may have changed while we were silent.
        self.dead_letters = rows.row.settings.dead_letters or self._queue.dead_letters

    def note_buried(self, batch: DeadBatch) -> None:
        """Forget what is in the dead-letter topic."""
        with self._coordinator.step() as connection:
            self._rows(connection).remove_dead(batch)

    def leave(self) -> None:
        """Release all that we hold, and be no consumer any more."""
        self._dying = []
        with self._coordinator.step() as connection:
            rows = self._rows(connection)
            if rows.row is not None:
                rows.release(rows.held(self._consumer))
                rows.leave(self._consumer)
                self._note_dying(rows)

    def close(self) -> None:
        """Do nothing: the file is the log's."""
