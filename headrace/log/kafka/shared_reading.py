"""The part of the log on Kafka that readers share: groups and queues.

Promises, besides those of `groups.Groups` and `queues.Queues`:
- Groups are Kafka's own: other clients, and Kafka's tools, see them and read with them.
- Closing the log closes what was joined and consumed through it.
"""

import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress

from headrace.errors import HeadraceError
from headrace.log.base import Partition
from headrace.log.checks import check_partition
from headrace.log.group_refusals import check_reset
from headrace.log.groups import Group, MemberSettings, Revoked, check_join
from headrace.log.kafka.groups import KafkaGroups
from headrace.log.kafka.inside import Inside
from headrace.log.kafka.members import KafkaMember
from headrace.log.kafka.queue_consumer import KafkaQueueConsumer
from headrace.log.names import check_group_name, refuse_reserved
from headrace.log.queues import QueueSettings, check_consume

__all__ = ["SharedReading"]


class SharedReading:
    """`Groups` and `Queues`, over the inner side of a log."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._groups = KafkaGroups(inside.cluster, inside.topics, inside.prefix)
        self._readers_open: weakref.WeakSet[KafkaMember | KafkaQueueConsumer] = weakref.WeakSet()

    def join(
        self,
        group: str,
        topics: Sequence[str],
        *,
        settings: MemberSettings = MemberSettings(),  # noqa: B008 - a frozen value
        on_revoke: Revoked | None = None,
    ) -> KafkaMember:
        """Take part in a group that reads the topics. TopicNotFound, UsageError."""
        self._inside.check_open()
        check_join(group, topics, settings)
        for topic in topics:
            self._inside.topics.find(topic)
        # What a dead member with our name left undecided would keep the group's offsets from us.
        self._inside.take_over()
        member = KafkaMember(
            self._inside, group=group, reads=topics, settings=settings, on_revoke=on_revoke
        )
        self._readers_open.add(member)
        return member

    def groups(self) -> list[Group]:
        """Return all groups of the prefix that have members or offsets, by name."""
        self._inside.check_open()
        return self._groups.find_all()

    def group(self, name: str) -> Group:
        """Return one group. GroupNotFound."""
        self._inside.check_open()
        return self._groups.find(name)

    def reset_group(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Let a group go on at other offsets; it is made if it is not there.

        GroupActive: it has members. PositionLost: an offset is not in the log.
        """
        self._inside.check_open()
        check_group_name(name)
        for place in offsets:
            refuse_reserved(place.topic)
            check_partition(place, self._inside.topics.find(place.topic).topic)
        extents = self._inside.offsets.extents(offsets)
        for place, offset in offsets.items():
            check_reset(name, place, offset, extents[place])
        self._groups.set_offsets(name, offsets)

    def delete_group(self, name: str) -> None:
        """Forget a group. GroupNotFound, GroupActive."""
        self._inside.check_open()
        self._groups.delete(name)

    def consume(
        self,
        queue: str,
        topic: str,
        *,
        settings: QueueSettings = QueueSettings(),  # noqa: B008 - a frozen value
    ) -> KafkaQueueConsumer:
        """Compete for the records of a topic. TopicNotFound, UsageError."""
        self._inside.check_open()
        check_consume(queue, topic, settings)
        self._inside.topics.find(topic)
        consumer = KafkaQueueConsumer(self._inside, queue=queue, topic=topic, settings=settings)
        self._readers_open.add(consumer)
        return consumer

    def _close_shared_reading(self) -> None:
        for reader in list(self._readers_open):
            with suppress(HeadraceError):  # its session ends by itself
                reader.close()
