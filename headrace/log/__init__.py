"""The log: topics of partitions of records, embedded or on Kafka; groups and queues.

`KafkaLog` is loaded when it is asked for: it brings the package confluent-kafka, which the embedded
log does without.
"""

from typing import TYPE_CHECKING, Any

from headrace.log.base import (
    APPENDS,
    DEFAULT_PARTITIONS,
    MAX_RECORD_BYTES,
    RECORDS,
    Acks,
    Append,
    Appended,
    Extent,
    Log,
    Partition,
    Producer,
    Range,
    Split,
    Topic,
    TopicSettings,
)
from headrace.log.embedded import EmbeddedLog
from headrace.log.groups import Group, GroupMember, Lag, Member, MemberSettings, Polled, lag
from headrace.log.murmur2 import partition_of
from headrace.log.queues import DEAD_HEADERS, Delivery, QueueConsumer, QueueSettings
from headrace.log.records import records
from headrace.log.sender import Sender, SenderStatus, Sent

if TYPE_CHECKING:
    from headrace.log.kafka import KafkaLog

__all__ = [
    "APPENDS",
    "DEAD_HEADERS",
    "DEFAULT_PARTITIONS",
    "MAX_RECORD_BYTES",
    "RECORDS",
    "Acks",
    "Append",
    "Appended",
    "Delivery",
    "EmbeddedLog",
    "Extent",
    "Group",
    "GroupMember",
    "KafkaLog",
    "Lag",
    "Log",
    "Member",
    "MemberSettings",
    "Partition",
    "Polled",
    "Producer",
    "QueueConsumer",
    "QueueSettings",
    "Range",
    "Sender",
    "SenderStatus",
    "Sent",
    "Split",
    "Topic",
    "TopicSettings",
    "lag",
    "partition_of",
    "records",
]


def __getattr__(name: str) -> Any:
    if name == "KafkaLog":
        from headrace.log.kafka import KafkaLog

        return KafkaLog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
