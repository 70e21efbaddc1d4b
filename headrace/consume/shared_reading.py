"""How readers share a log's topics: in groups, by partition, and through queues, by record.

Promise: closing the log closes what was joined and consumed through it.
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Protocol

from headrace.consume.embedded.shared_reading import EmbeddedSharedReading
from headrace.consume.groups import Group, MemberSettings, Revoked, check_join
from headrace.consume.member import Member
from headrace.consume.membership import Groups
from headrace.consume.queue_book import Queues
from headrace.consume.queue_consumer import QueueConsumer
from headrace.consume.queues import Queue, QueueSettings, check_consume
from headrace.errors import UsageError
from headrace.log.base import Log, Partition
from headrace.log.clients import Clients
from headrace.log.embedded import EmbeddedLog
from headrace.log.names import check_group_name, refuse_reserved

__all__ = [
    "SharedReading",
    "consume_queue",
    "delete_group",
    "find_group",
    "join_group",
    "list_groups",
    "reset_group",
    "shared_reading",
]


class SharedReading(Groups, Queues, Protocol):
    """What keeps the groups and queues of a log."""

    clients: Clients  # of the log


def join_group(
    log: Log,
    group: str,
    topics: Sequence[str],
    *,
    settings: MemberSettings = MemberSettings(),  # noqa: B008 - a frozen value
    on_revoke: Revoked | None = None,
) -> Member:
    """Take part in a group that reads the topics. TopicNotFound, UsageError."""
    shared = shared_reading(log)
    check_join(group, topics, settings)
    membership = shared.enter_group(group, topics, settings, on_revoke)
    # Not the member: a membership that nobody closes lives on without it.
    return Member(shared.clients.add(membership))


def list_groups(log: Log) -> list[Group]:
    """Return all groups that have members or offsets, by name."""
    return shared_reading(log).list_groups()


def find_group(log: Log, name: str) -> Group:
    """Return one group. GroupNotFound."""
    return shared_reading(log).find_group(name)


def reset_group(log: Log, name: str, offsets: Mapping[Partition, int]) -> None:
    """Let a group go on at other offsets; it is made if it is not there.

    GroupActive: it has members. PositionLost: an offset is not in the log.
    """
    shared = shared_reading(log)
    check_group_name(name)
    for place in offsets:
        refuse_reserved(place.topic)
    shared.reset_group(name, offsets)


def delete_group(log: Log, name: str) -> None:
    """Forget a group. GroupNotFound, GroupActive."""
    shared_reading(log).delete_group(name)


def consume_queue(
    log: Log,
    queue: str,
    topic: str,
    *,
    settings: QueueSettings = QueueSettings(),  # noqa: B008 - a frozen value
) -> QueueConsumer:
    """Compete for the records of a topic. TopicNotFound, UsageError."""
    shared = shared_reading(log)
    check_consume(queue, topic, settings)
    opened, consumer = Queue.of(queue, topic, settings), secrets.token_hex(8)
    book = shared.open_book(opened, consumer)
    return shared.clients.add(QueueConsumer(log, opened, consumer, book))


@singledispatch
def shared_reading(log: Log) -> SharedReading:
    """Return what keeps the groups and queues of a log, made once. UsageError: it is closed.

    Another kind of log registers its own, with `@shared_reading.register`.
    """
    from headrace.log.kafka import KafkaLog  # needs confluent-kafka, which is an extra

    if not isinstance(log, KafkaLog):
        raise UsageError(
            f"groups and queues are kept by an EmbeddedLog or a KafkaLog, not by a "
            f"{type(log).__name__}; open one of these."
        )
    from headrace.consume.kafka.shared_reading import KafkaSharedReading

    inside = log.inside
    inside.check_open()
    return inside.clients.share(KafkaSharedReading, lambda: KafkaSharedReading(inside))


@shared_reading.register
def _(log: EmbeddedLog) -> SharedReading:
    inside = log.inside
    inside.check_open()
    return inside.clients.share(EmbeddedSharedReading, lambda: EmbeddedSharedReading(inside))
