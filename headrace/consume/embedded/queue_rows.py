"""What a queue has handed out: what each step writes into the coordinator's tables.

A record of the topic is, for a queue, one of:
- not handed out yet: at or past its partition's `next_offset`, and without a row;
- held: a row with an owner, `taken_ms` less than `lock_ms` ago;
- free again: a row that was released, or whose time has passed;
- dead: a row with a `dead_sequence`, on its way to the dead-letter topic;
- done: before `next_offset`, and without a row.

Dead rows that were marked in one step, of one partition, have one sequence (queue_records.py). Rows
of a sequence are removed together, once it is stored.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.consume.embedded.coordinator import now_ms
from headrace.consume.queue_records import (
    CONSUMER_SILENCE_MS,
    MAX_DEAD_BATCH_RECORDS,
    MAX_OPEN_RECORDS,
    DeadBatch,
    DeadRow,
    Held,
)
from headrace.consume.queue_refusals import other_settings
from headrace.consume.queues import Queue, QueueSettings
from headrace.wording import counted

__all__ = ["Cursor", "QueueRow", "QueueRows"]

# Older than any time, so that it has always passed.
RELEASED_MS = -(1 << 62)

_FREE = "(taken_ms <= :now - :lock_ms OR taken_ms > :now)"
_DEAD = "dead_sequence IS NOT NULL"
_HELD = "owner = :owner AND taken_ms <= :now AND taken_ms > :now - :lock_ms"


class QueueRow(NamedTuple):
    """A queue as it stands in the table; its settings name the dead-letter topic."""

    id: int
    topic_id: str
    settings: QueueSettings


class Cursor(NamedTuple):
    """How far a partition was handed out, and how many records of it are open."""

    next_offset: int
    open_records: int

    @property
    def room(self) -> int:
        """How many more may be handed out."""
        return max(0, MAX_OPEN_RECORDS - self.open_records)


class QueueRows:
    """One queue's rows, within one step or one look."""

    def __init__(self, connection: sqlite3.Connection, queue: Queue) -> None:
        self._connection = connection
        self._opened = queue
        self.row = self._find()

    def _find(self) -> QueueRow | None:
        row = self._connection.execute(
            "SELECT id, topic_id, max_deliveries, lock_ms, dead_letters, start FROM queues "
            "WHERE name = ? AND topic = ?",
            (self._opened.name, self._opened.topic),
        ).fetchone()
        return None if row is None else QueueRow(row[0], row[1], QueueSettings(*row[2:]))

    @property
    def _queue(self) -> QueueRow:
        assert self.row is not None, "`enter` makes the row"
        return self.row

    def _run(self, sql: str, **values: Any) -> sqlite3.Cursor:
        row = self._queue
        known = {"queue": row.id, "now": now_ms(), "lock_ms": row.settings.lock_ms}
        return self._connection.execute(sql, {**known, **values})

    # The queue and its consumers.

    def enter(self, consumer: str, topic_id: str) -> bool:
        """Add a consumer; True if the queue is new. UsageError: others use other settings."""
        settings = self._opened.settings
        if new := self.row is None:
            self._connection.execute(
                "INSERT INTO queues VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                (self._opened.name, self._opened.topic, topic_id, *settings),
            )
            self.row = self._find()
        self._run(
            "DELETE FROM consumers WHERE queue_id = :queue "
            "AND (seen_ms <= :now - :silence OR seen_ms > :now)",
            silence=CONSUMER_SILENCE_MS,
        )
        if self._queue.settings != settings:
            (others,) = self._run(
                "SELECT count(*) FROM consumers WHERE queue_id = :queue AND id <> :consumer",
                consumer=consumer,
            ).fetchone()
            if others:
                raise other_settings(self._opened, self._queue.settings, others)
            self._run(
                "UPDATE queues SET max_deliveries = :max_deliveries, lock_ms = :lock, "
                "dead_letters = :dead_letters, start = :start WHERE id = :queue",
                max_deliveries=settings.max_deliveries,
                lock=settings.lock_ms,
                dead_letters=settings.dead_letters,
                start=settings.start,
            )
            self.row = self._find()
        self._run(
            "INSERT OR REPLACE INTO consumers VALUES (:consumer, :queue, :now)", consumer=consumer
        )
        return new

    def leave(self, consumer: str) -> None:
        """Remove a consumer."""
        self._run("DELETE FROM consumers WHERE id = :consumer", consumer=consumer)

    def begin_anew(self, topic_id: str) -> None:
        """Forget all records: the topic is another one of the same name."""
        self._run("DELETE FROM deliveries WHERE queue_id = :queue")
        self._run("DELETE FROM cursors WHERE queue_id = :queue")
        self._run("UPDATE queues SET topic_id = :id WHERE id = :queue", id=topic_id)
        self.row = self._find()

    # Cursors: how far each partition was handed out.

    def cursors(self) -> dict[int, Cursor]:
        """Return how far every partition was handed out that the queue knows."""
        rows = self._run(
            "SELECT number, next_offset, open_records FROM cursors WHERE queue_id = :queue"
        )
        return {number: Cursor(*rest) for number, *rest in rows}

    def add_cursor(self, number: int, next_offset: int, *, dead_sequence: int) -> None:
        """Begin with a partition."""
        self._run(
            "INSERT INTO cursors VALUES (:queue, :number, :next, :sequence, 0)",
            number=number,
            next=next_offset,
            sequence=dead_sequence,
        )

    def move_cursor(self, number: int, next_offset: int) -> None:
        """Say where a partition goes on."""
        self._run(
            "UPDATE cursors SET next_offset = :next WHERE queue_id = :queue AND number = :number",
            number=number,
            next=next_offset,
        )

    def _count(self, number: int, change: int) -> None:
        self._run(
            "UPDATE cursors SET open_records = open_records + :change "
            "WHERE queue_id = :queue AND number = :number",
            number=number,
            change=change,
        )

    def drop_gone(self, number: int, first_offset: int) -> int:
        """Forget free records before an offset, which the log has no longer; return how many."""
        dropped = self._run(
            "DELETE FROM deliveries WHERE queue_id = :queue AND number = :number "
            f"AND offset < :first AND {_FREE}",
            number=number,
            first=first_offset,
        ).rowcount
        if dropped:
            self._count(number, -dropped)
        return dropped

    # Handing out.

    def has_returned(self) -> bool:
        """Whether there are free or dead rows. It may say so where none are."""
        # One question for each range of an index: an OR would look at every row.
        questions = " OR ".join(
            f"EXISTS (SELECT 1 FROM deliveries WHERE queue_id = :queue AND {condition})"
            for condition in ("taken_ms <= :now - :lock_ms", "taken_ms > :now", _DEAD)
        )
        return bool(self._run(f"SELECT {questions}").fetchone()[0])

    def retire(self) -> None:
        """Mark dead what is free and was handed out too often."""
        rows = self._run(
            "SELECT number, offset, deliveries FROM deliveries "
            f"WHERE queue_id = :queue AND deliveries >= :most AND {_FREE}",
            most=self._queue.settings.max_deliveries,
        )
        self._mark_too_often([Held(*row) for row in rows.fetchall()])

    def hand_out(self, consumer: str, number: int, start: int, end: int) -> None:
        """Hand out records for the first time, and go on behind them."""
        queue, now = self._queue.id, now_ms()
        self._connection.executemany(
            "INSERT INTO deliveries VALUES (?, ?, ?, 1, ?, ?, NULL, NULL)",
            [(queue, number, offset, consumer, now) for offset in range(start, end)],
        )
        self.move_cursor(number, end)
        self._count(number, end - start)

    def hand_out_again(self, consumer: str, limit: int) -> list[Held]:
        """Hand out records that are free, but none too often."""
        rows = self._run(
            "SELECT number, offset, deliveries + 1 FROM deliveries "
            f"WHERE queue_id = :queue AND deliveries < :most AND {_FREE} "
            "ORDER BY number, offset LIMIT :limit",
            most=self._queue.settings.max_deliveries,
            limit=limit,
        )
        again = [Held(*row) for row in rows.fetchall()]
        queue, now = self._queue.id, now_ms()
        self._connection.executemany(
            "UPDATE deliveries SET deliveries = ?, owner = ?, taken_ms = ? "
            "WHERE queue_id = ? AND number = ? AND offset = ?",
            [(each.deliveries, consumer, now, queue, *each[:2]) for each in again],
        )
        return again

    # Taking back what a consumer holds.

    def held(self, consumer: str) -> set[Held]:
        """Return what a consumer holds."""
        rows = self._run(
            "SELECT number, offset, deliveries FROM deliveries "
            f"WHERE queue_id = :queue AND {_HELD}",
            owner=consumer,
        )
        return {Held(*row) for row in rows}

    def finish(self, done: Sequence[Held]) -> None:
        """Forget records that are done."""
        self._connection.executemany(
            "DELETE FROM deliveries WHERE queue_id = ? AND number = ? AND offset = ?",
            [(self._queue.id, each.number, each.offset) for each in done],
        )
        for number, count in Counter(each.number for each in done).items():
            self._count(number, -count)

    def release(self, given_back: Iterable[Held]) -> None:
        """Make records free; those that were handed out too often are marked dead."""
        given_back = list(given_back)
        most = self._queue.settings.max_deliveries
        self._mark_too_often([each for each in given_back if each.deliveries >= most])
        self._connection.executemany(
            "UPDATE deliveries SET owner = NULL, taken_ms = ? "
            "WHERE queue_id = ? AND number = ? AND offset = ?",
            [
                (RELEASED_MS, self._queue.id, each.number, each.offset)
                for each in given_back
                if each.deliveries < most
            ],
        )

    # Dead letters.

    def _mark_too_often(self, dead: Iterable[Held]) -> None:
        self.mark_dead([(each, f"delivered {counted(each.deliveries, 'time')}") for each in dead])

    def mark_dead(self, dead: Sequence[tuple[Held, str]]) -> None:
        """Send records to the dead-letter topic, with reasons; they are on their way now."""
        for number in sorted({each.number for each, _ in dead}):
            own = sorted((each, reason) for each, reason in dead if each.number == number)
            for start in range(0, len(own), MAX_DEAD_BATCH_RECORDS):
                (sequence,) = self._run(
                    "UPDATE cursors SET dead_sequence = dead_sequence + 1 "
                    "WHERE queue_id = :queue AND number = :number RETURNING dead_sequence",
                    number=number,
                ).fetchone()
                self._connection.executemany(
                    "UPDATE deliveries SET owner = NULL, taken_ms = NULL, dead_sequence = ?, "
                    "reason = ? WHERE queue_id = ? AND number = ? AND offset = ?",
                    [
                        (sequence, reason, self._queue.id, number, each.offset)
                        for each, reason in own[start : start + MAX_DEAD_BATCH_RECORDS]
                    ],
                )

    def dead_batches(self) -> list[DeadBatch]:
        """Return what is on its way to the dead-letter topic, in the order to append it."""
        rows = self._run(
            "SELECT number, dead_sequence, offset, deliveries, reason FROM deliveries "
            f"WHERE queue_id = :queue AND {_DEAD} "
            "ORDER BY number, dead_sequence, offset"
        )
        batches: list[DeadBatch] = []
        for number, sequence, *row in rows:
            if not batches or batches[-1][:2] != (number, sequence):
                batches.append(DeadBatch(number, sequence, []))
            batches[-1].rows.append(DeadRow(*row))
        return batches

    def remove_dead(self, batch: DeadBatch) -> None:
        """Forget what is in the dead-letter topic."""
        removed = self._run(
            "DELETE FROM deliveries WHERE queue_id = :queue AND number = :number "
            "AND dead_sequence = :sequence",
            number=batch.number,
            sequence=batch.sequence,
        ).rowcount
        self._count(batch.number, -removed)
