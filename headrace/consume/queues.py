"""Queue reading: any number of consumers compete for the records of a topic, one by one.

Promises every implementation keeps, held by `headrace.testing.log.queues`:
- A record is handed to one consumer of a queue at a time. It is done when that one acknowledges
  it, and handed out again when that one releases it, closes, or lets `lock_ms` pass.
- `deliveries` says how often a record was handed out, this time included.
- A record that was handed out `max_deliveries` times and is still not done, or that is rejected,
  goes to the queue's dead-letter topic with the headers of DEAD_HEADERS. None is lost in silence.
- What one queue does with a topic does not show to another queue, group or reader.
- A dead letter is stored once, whoever dies on the way.
Not promised: that records are handed out, or dead letters stored, in the order of the log.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from headrace.errors import UsageError
from headrace.log.base import Partition
from headrace.log.names import check_plain_name, refuse_reserved

__all__ = [
    "DEAD_HEADERS",
    "Delivery",
    "Queue",
    "QueueSettings",
    "check_consume",
    "dead_letter_topic",
]

#: What a dead letter says, after its own headers, in headers of these names.
DEAD_HEADERS = (
    "headrace-reason",  # "rejected", or "delivered N times"
    "headrace-source",  # topic/partition@offset
    "headrace-deliveries",
)


class QueueSettings(NamedTuple):
    """How a queue hands out records; all its consumers use the same.

    Others are refused while the queue has consumers, and taken over once it has none.
    """

    max_deliveries: int = 5
    lock_ms: int = 30_000
    #: The dead-letter topic, made with as many partitions as the topic has; by default
    #: `<topic>.<queue>.dead`.
    dead_letters: str | None = None
    #: Where a new queue begins.
    start: Literal["earliest", "latest"] = "earliest"


class Delivery(NamedTuple):
    """One record, handed to one consumer until `lock_ms` have passed."""

    partition: Partition
    offset: int
    arrival: datetime
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    deliveries: int


@dataclass(frozen=True)
class Queue:
    """A queue of a topic, as one of its consumers opens it."""

    name: str
    topic: str
    #: They name the dead-letter topic.
    settings: QueueSettings

    @classmethod
    def of(cls, name: str, topic: str, settings: QueueSettings) -> "Queue":
        """Return a queue whose settings may leave it to us to name the dead-letter topic."""
        dead_letters = dead_letter_topic(name, topic, settings)
        return cls(name, topic, settings._replace(dead_letters=dead_letters))

    @property
    def dead_letters(self) -> str:
        """The topic of its dead letters."""
        return dead_letter_topic(self.name, self.topic, self.settings)

    @property
    def producer_id(self) -> str:
        """The id of the producer that appends its dead letters."""
        return f"queue:{self.name}:{self.topic}"

    def __str__(self) -> str:
        return f"queue {self.name} of {self.topic}"


def dead_letter_topic(queue: str, topic: str, settings: QueueSettings) -> str:
    """Return where the dead letters of a queue go."""
    return settings.dead_letters or f"{topic}.{queue}.dead"


def check_consume(queue: str, topic: str, settings: QueueSettings) -> None:
    """Refuse what no log can hand out like this. UsageError, TopicNotFound."""
    check_plain_name(queue, "a queue's name")
    refuse_reserved(topic)
    dead_letters = dead_letter_topic(queue, topic, settings)
    check_plain_name(dead_letters, f"the dead-letter topic of queue {queue}")
    refuse_reserved(dead_letters)
    if dead_letters == topic:
        raise UsageError(
            f"queue {queue}: {topic} cannot take its own dead letters, they would be handed out "
            f"again. Name another topic, or none."
        )
    for name, value in (("max_deliveries", settings.max_deliveries), ("lock_ms", settings.lock_ms)):
        if value < 1:
            raise UsageError(f"queue {queue}: {name} cannot be {value}. Use 1 or more.")
    if settings.start not in ("earliest", "latest"):
        raise UsageError(
            f"queue {queue}: cannot start at {settings.start!r}; use 'earliest' or 'latest'."
        )
