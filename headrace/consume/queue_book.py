"""What a queue needs of its log: a book that decides, once for all consumers, who holds a record.

`embedded/queue_book.py` keeps it in rows of a table, `kafka/queue_book.py` in entries of a topic.

Promises:
- Of consumers that take at the same time no two get the same record, in whatever processes.
- What came of a call is there for all consumers when it returns, and after a crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from headrace.consume.queue_records import DeadBatch, Held
from headrace.consume.queues import Queue
from headrace.log.base import Extent, Partition, Range

__all__ = ["Gone", "QueueBook", "Queues", "Settling", "Taken"]

#: What becomes of a record that a consumer holds: it is done, free again, or dead.
Settling = Literal["finish", "release", "reject"]


class Gone(NamedTuple):
    """What retention took of a partition before it was done."""

    number: int
    free_records: int  # that had been handed out before
    start: int  # and offsets from here on, up to `end`, that had not
    end: int


@dataclass(frozen=True)
class Taken:
    """What a consumer was handed out; nothing while there is something to say about what is gone.

    An offset that holds no record, such as one that was compacted away, is handed out like any
    other; who gets it finds nothing there and finishes it.
    """

    again: Sequence[Held] = ()
    new: Sequence[Range] = ()
    gone: Sequence[Gone] = ()
    #: What the topic's partitions held meanwhile.
    extents: Mapping[Partition, Extent] = field(default_factory=dict)


class QueueBook(Protocol):
    """The book of a queue, open for one of its consumers. For one thread at a time."""

    @property
    def max_pause_s(self) -> float:
        """How long to wait between two looks when there is nothing to hand out."""
        ...

    @property
    def reads_at_once(self) -> int:
        """How many partitions are best read at the same time."""
        ...

    @property
    def dead_letters(self) -> str:
        """The queue's dead-letter topic."""
        ...

    def catch_up(self) -> None:
        """Learn what others did, and what became free or died since."""
        ...

    def take(self, max_records: int) -> Taken | None:
        """Hand out records to us: those that are free again, then new ones. None: there are none.

        UsageError: other consumers use other settings.
        """
        ...

    def settle(self, how: Settling, held: Sequence[Held]) -> Sequence[Held]:
        """Do so with records that we hold; return those that we do not, in their order.

        Of a record that is named twice, the second is one that we do not hold.
        """
        ...

    def dying(self) -> Sequence[DeadBatch]:
        """Return what is ours to append to the dead-letter topic, in this order."""
        ...

    def note_buried(self, batch: DeadBatch) -> None:
        """Forget what is in the dead-letter topic."""
        ...

    def leave(self) -> None:
        """Release all that we hold, and be no consumer any more."""
        ...

    def close(self) -> None:
        """Let go of the book."""
        ...


class Queues(Protocol):
    """What keeps the queues of a log."""

    def open_book(self, queue: Queue, consumer: str) -> QueueBook:
        """Open the book of a queue, which is made if it is not there, and enter it as a consumer.

        TopicNotFound. UsageError: other consumers use other settings.
        """
        ...
