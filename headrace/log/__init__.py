"""The log: topics of partitions of records, embedded or on Kafka.

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
from headrace.log.murmur2 import partition_of
from headrace.log.records import records

if TYPE_CHECKING:
    from headrace.log.kafka import KafkaLog

__all__ = [
    "APPENDS",
    "DEFAULT_PARTITIONS",
    "MAX_RECORD_BYTES",
    "RECORDS",
    "Acks",
    "Append",
    "Appended",
    "EmbeddedLog",
    "Extent",
    "KafkaLog",
    "Log",
    "Partition",
    "Producer",
    "Range",
    "Split",
    "Topic",
    "TopicSettings",
    "partition_of",
    "records",
]


def __getattr__(name: str) -> Any:
    if name == "KafkaLog":
        from headrace.log.kafka import KafkaLog

        return KafkaLog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
