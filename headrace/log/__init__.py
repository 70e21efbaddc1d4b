"""The log: topics of partitions of records, and the embedded implementation of it."""

from headrace.log.base import (
    APPENDS,
    DEFAULT_PARTITIONS,
    MAX_RECORD_BYTES,
    RECORDS,
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

__all__ = [
    "APPENDS",
    "DEFAULT_PARTITIONS",
    "MAX_RECORD_BYTES",
    "RECORDS",
    "Append",
    "Appended",
    "EmbeddedLog",
    "Extent",
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
