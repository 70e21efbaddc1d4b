"""What `consume/` uses of a log on Kafka, beyond what its users may."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.log.base import Append, Appended, Log
from headrace.log.clients import Clients
from headrace.log.kafka.client import Cluster
from headrace.log.kafka.delivery import Delivery, Share
from headrace.log.kafka.offsets import KafkaOffsets
from headrace.log.kafka.topics import KafkaTopics
from headrace.log.kafka.transactions import GroupOffsets

__all__ = ["Inside"]


@dataclass(frozen=True)
class Inside:
    """The inner side of a log on Kafka."""

    log: Log
    clients: Clients
    cluster: Cluster
    topics: KafkaTopics
    offsets: KafkaOffsets
    prefix: str
    #: UsageError when the log is closed.
    check_open: Callable[[], None]
    #: End what an earlier log of the same name left open.
    take_over: Callable[[], None]
    #: All of these appends and the offsets of a group, or nothing.
    append_with: Callable[[Sequence[Append], GroupOffsets | None], list[Appended]]
    #: To a topic of the log's own.
    append_own: Callable[[Share], Delivery]
