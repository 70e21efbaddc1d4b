"""What every log refuses, in the same words: wrong topics, partitions, ranges and producers."""

import re
from collections import Counter
from collections.abc import Iterable

from headrace.errors import InvalidTopic, PositionLost, ProducerFenced, UsageError
from headrace.log.base import Extent, Partition, Producer, Range, Topic, TopicSettings
from headrace.log.names import TIME_TOPIC, refuse_closed

__all__ = [
    "MAX_PARTITIONS",
    "MAX_PRODUCER_ID_BYTES",
    "changed_topic",
    "check_once_each",
    "check_partition",
    "check_producer",
    "check_producer_id",
    "check_range",
    "check_time_topic",
    "check_topic",
    "is_stored",
    "is_topic_name",
    "stored_before",
]

# An append by key may go to all of them at once; the embedded log holds two open files for each.
MAX_PARTITIONS = 256
MAX_PRODUCER_ID_BYTES = 1024
# Kafka's rule, so that a topic can move there under the same name.
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Say whether a topic can have this name."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def check_topic(topic: Topic) -> None:
    """Refuse what a topic cannot have as name, partitions or settings. InvalidTopic."""
    name, partitions, settings = topic
    if not is_topic_name(name):
        raise InvalidTopic(
            f"{name!r} cannot be a topic's name. Use 1 to 249 of the letters a-z and A-Z, digits, "
            f"'.', '_' and '-', and neither '.' nor '..' alone."
        )
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise InvalidTopic(
            f"{name}: a topic cannot have {partitions} partitions. Use 1 to {MAX_PARTITIONS}."
        )
    for setting in ("retention_ms", "retention_bytes"):
        value = getattr(settings, setting)
        if value is not None and value < 1:
            raise InvalidTopic(
                f"{name}: {setting} cannot be {value}. Use 1 or more, or leave it out to keep "
                f"everything."
            )
    if settings.tombstone_ms < 0:
        raise InvalidTopic(
            f"{name}: tombstone_ms cannot be {settings.tombstone_ms}. Use 0 or more; a reader that "
            f"is slower than that may miss a deletion."
        )
    if name == TIME_TOPIC:
        check_time_topic(topic)


def check_time_topic(topic: Topic) -> None:
    """Refuse a topic of markers that could lose some, or the order of them. InvalidTopic."""
    settings = topic.settings
    if topic.partitions != 1:
        what = f"it has {topic.partitions} partitions"
    elif settings.retention_ms is not None or settings.retention_bytes is not None:
        what = "it has a retention"
    elif settings.compact:
        what = "it is compacted"
    else:
        return
    raise InvalidTopic(
        f"{topic.name}: {what}, and every answer depends on all of its records in their order. "
        f"Leave it to the engine to make it. If it is there and empty, delete it with Kafka's own "
        f"tools; if not, set retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete there."
    )


def changed_topic(old: Topic, partitions: int | None, settings: TopicSettings | None) -> Topic:
    """Return a topic as it is to become; None changes nothing. InvalidTopic, UsageError."""
    refuse_closed(old.name)
    new = Topic(
        old.name,
        old.partitions if partitions is None else partitions,
        old.settings if settings is None else settings,
    )
    # What stays as it is need not be ours: Kafka has topics that were made elsewhere.
    asked = 1 if partitions is None else partitions
    check_topic(Topic(old.name, asked, settings or TopicSettings()))
    if new.partitions < old.partitions:
        raise InvalidTopic(
            f"{old.name}: it has {old.partitions} partitions, and they cannot become "
            f"{new.partitions}: their records would be lost. Make a topic with fewer, and append "
            f"to that one."
        )
    return new


def check_partition(partition: Partition, topic: Topic) -> None:
    """Refuse a partition that the topic does not have. UsageError."""
    count = topic.partitions
    if not 0 <= partition.number < count:
        raise UsageError(
            f"{partition}: no such partition; the topic has {count}, 0 to {count - 1}."
        )


def check_once_each(places: Iterable[Partition]) -> None:
    """Refuse a transaction that goes to one partition twice. UsageError."""
    for place, count in Counter(places).items():
        if count > 1:
            raise UsageError(
                f"{place}: {count} appends of one transaction go to this partition; put their "
                f"records together in one."
            )


def check_range(range: Range, extent: Extent) -> None:
    """Refuse a range that the partition does not hold. PositionLost, UsageError."""
    if range.start > range.end:
        raise UsageError(
            f"{range.partition}: cannot read [{range.start}, {range.end}), it ends before it "
            f"begins; swap the two."
        )
    first_offset, end_offset = extent
    if not first_offset <= range.start <= end_offset:
        raise PositionLost(
            f"{range.partition}@{range.start}: the next record to read is gone; the log begins at "
            f"{first_offset} and ends at {end_offset}. Retention overtook the reader, or the topic "
            f"was made anew. Raise its retention, then rebuild from what the log still has."
        )
    if range.end > end_offset:
        raise PositionLost(
            f"{range.partition}@{end_offset}: no record to read up to {range.end}; the log begins "
            f"at {first_offset} and ends at {end_offset}. The topic was made anew, or the range "
            f"was not taken from `extents`. Read to {end_offset}, or rebuild from what the log has."
        )


def check_producer(topic: str, producer: Producer, partition: int | None) -> None:
    """Refuse a producer whose retries could not be told from new batches. UsageError."""
    if partition is None:
        raise UsageError(
            f"{topic}: producer {producer.id!r} names no partition, so a retry could not be told; "
            f"pass `partition=`."
        )
    check_producer_id(f"{topic}/{partition}", producer.id)


def check_producer_id(where: str, producer_id: str) -> None:
    """Refuse an empty or an overlong producer id. UsageError."""
    if not 1 <= len(producer_id.encode()) <= MAX_PRODUCER_ID_BYTES:
        raise UsageError(
            f"{where}: a producer id has 1 to {MAX_PRODUCER_ID_BYTES} bytes, this one has "
            f"{len(producer_id.encode())}."
        )


def is_stored(where: object, producer: Producer, newest: Producer | None) -> bool:
    """Say whether a batch is there already, `newest` being the last one that is. ProducerFenced."""
    if newest is None:
        return False
    if producer.epoch < newest.epoch:
        raise ProducerFenced(
            f"{where}: producer {producer.id!r} of epoch {producer.epoch} was replaced by one of "
            f"epoch {newest.epoch}. Nothing was appended; stop this process, the newer one goes on."
        )
    return producer.sequence <= newest.sequence


def stored_before(partition: Partition, producer: Producer) -> UsageError:
    """Return what a transaction raises when a batch of it is there already."""
    return UsageError(
        f"{partition}: producer {producer.id!r} has stored sequence {producer.sequence} already. "
        f"Nothing was appended now; if this is a retry, all of it is there."
    )
