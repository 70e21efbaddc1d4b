"""The book of a queue on Kafka: entries of a topic (queue_entries.py), and the state they make.

Not Kafka's share groups: their client (confluent-kafka 2.16) takes whole batches, however few
records were asked for, so that the other consumers have no work and records count as handed out
that nobody saw; it does not poll while a record is held; and after the brokers' limit of deliveries
a record is gone without a word. See docs/decisions.md.
"""

from collections.abc import Mapping, Sequence

from headrace.consume.kafka.queue_entries import QueueEntries, book_name
from headrace.consume.queue_book import Settling, Taken
from headrace.consume.queue_records import (
    SHOW_EVERY_MS,
    DeadBatch,
    Held,
    find_starts,
)
from headrace.consume.queue_refusals import other_settings
from headrace.consume.queues import Queue
from headrace.log.base import Extent, Partition
from headrace.log.kafka.client import LOGGER
from headrace.log.kafka.inside import Inside

__all__ = ["KafkaQueueBook"]

# The dead are left to who found them for so long, or for the time of a lock if that is shorter.
MAX_BURIAL_MS = 5_000


class KafkaQueueBook:
    """A `QueueBook`."""

    max_pause_s = 0.1  # a look asks the leaders of all partitions for their ends
    reads_at_once = 4  # a read waits for the broker most of its time

    def __init__(self, inside: Inside, queue: Queue, consumer: str) -> None:
        self._inside = inside
        self._queue = queue
        self._consumer = consumer
        self._topic_id = inside.topics.find(queue.topic).id
        self.entries = self._open(self._topic_id)

    @property
    def dead_letters(self) -> str:
        """The queue's dead-letter topic, which may have changed while we were silent."""
        settings = self.entries.state.settings
        assert settings is not None, "we have entered"
        return settings.dead_letters or self._queue.dead_letters

    def _open(self, topic_id: str) -> QueueEntries:
        name = book_name(self._queue.name, self._queue.topic, topic_id)
        entries = QueueEntries(self._inside, name, self._consumer)
        try:
            self._enter(entries)
        except BaseException:
            entries.close()
            raise
        return entries

    def _enter(self, entries: QueueEntries) -> None:
        """Show ourselves, and give every partition that is new a place to begin. UsageError."""
        known = entries.state.cursors
        latest = not known and self._queue.settings.start == "latest"
        starts = find_starts(self._inside.log, self._queue, known, latest=latest)
        refused = entries.write(
            "enter", settings=self._queue.settings._asdict(), starts=starts
        ).refused
        if refused is not None:
            raise other_settings(self._queue, *refused)

    def _follow_topic(self) -> None:
        """Begin anew where the topic was made anew, and with partitions that it got."""
        found = self._inside.topics.find(self._queue.topic)
        if found.id != self._topic_id:
            LOGGER.warning(
                "%s, consumer %s: the topic was made anew, the queue begins anew too",
                self._queue,
                self._consumer,
            )
            entries = self._open(found.id)
            self.entries.close()
            self._topic_id, self.entries = found.id, entries
        elif len(self.entries.state.cursors) < found.topic.partitions:
            self._enter(self.entries)

    # The steps of a poll.

    def catch_up(self) -> None:
        """Go on with the entries that have come. UsageError: others use other settings."""
        self._follow_topic()
        self.entries.catch_up()

    def take(self, max_records: int) -> Taken | None:
        """Hand out records to us: those that are free again, then new ones."""
        extents = self._inside.log.extents(self._queue.topic)
        state = self.entries.state
        if not self._has_more(extents):
            seen_ms = state.consumers.get(self._consumer, 0)
            if self.entries.now_ms - seen_ms > SHOW_EVERY_MS:
                self.entries.write("show")
            return None
        known = {place: each for place, each in extents.items() if place.number in state.cursors}
        taken = self.entries.write(
            "take",
            max=max_records,
            ends=[[place.number, each.end_offset] for place, each in known.items()],
            gone=[
                [place.number, each.first_offset]
                for place, each in known.items()
                if self._is_gone(place.number, each.first_offset)
            ],
        )
        return Taken(taken.again, taken.new, taken.gone, extents)

    def _has_more(self, extents: Mapping[Partition, Extent]) -> bool:
        state = self.entries.state
        ends = [[place.number, extent.end_offset] for place, extent in extents.items()]
        return state.has_free(self.entries.now_ms) or bool(state.unread(ends))

    def _is_gone(self, number: int, first_offset: int) -> bool:
        free = self.entries.state.first_free(number)
        return self.entries.state.cursors[number] < first_offset or (
            free is not None and free < first_offset
        )

    # Taking back.

    def settle(self, how: Settling, held: Sequence[Held]) -> Sequence[Held]:
        """Do so with records that we hold; return those that we do not."""
        return self.entries.write(how, records=held).late

    def dying(self) -> Sequence[DeadBatch]:
        """Return the dead that are ours to bury, and those of the partition that died before."""
        after_ms = min(MAX_BURIAL_MS, self._queue.settings.lock_ms)
        last = {
            dying.batch.number: dying.batch.sequence
            for dying in self.entries.state.dying
            if dying.by == self._consumer or self.entries.now_ms - dying.since_ms > after_ms
        }
        return [
            dying.batch
            for dying in self.entries.state.dying
            if dying.batch.sequence <= last.get(dying.batch.number, 0)
        ]

    def note_buried(self, batch: DeadBatch) -> None:
        """Say that a batch is in the dead-letter topic."""
        self.entries.write("buried", batch=[batch.number, batch.sequence])

    def leave(self) -> None:
        """Release all that we hold, and be no consumer any more."""
        self._inside.cluster.topic_names()  # tells sooner than an append that nobody is there
        self.entries.write("leave")

    def close(self) -> None:
        """End the client that reads the entries."""
        self.entries.close()
