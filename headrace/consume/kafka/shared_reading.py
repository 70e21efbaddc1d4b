"""Groups and queues of the log on Kafka.

Promise: groups are Kafka's own: other clients, and Kafka's tools, see them and read with them.
"""

from collections.abc import Mapping, Sequence

from headrace.consume.group_refusals import check_reset
from headrace.consume.groups import Group, MemberSettings, Revoked
from headrace.consume.kafka.groups import KafkaGroups
from headrace.consume.kafka.membership import KafkaMembership
from headrace.consume.kafka.queue_book import KafkaQueueBook
from headrace.consume.queues import Queue
from headrace.log.base import Partition
from headrace.log.checks import check_partition
from headrace.log.kafka.inside import Inside

__all__ = ["KafkaSharedReading"]


class KafkaSharedReading:
    """`Groups` and `Queues`, over the inner side of a log."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.clients = inside.clients
        self._groups = KafkaGroups(inside.cluster, inside.topics, inside.prefix)

    def enter_group(
        self, name: str, topics: Sequence[str], settings: MemberSettings, on_revoke: Revoked | None
    ) -> KafkaMembership:
        """Take part in a group that reads the topics. TopicNotFound, UsageError."""
        for topic in topics:
            self._inside.topics.find(topic)
        # What a dead member with our name left undecided would keep the group's offsets from us.
        self._inside.take_over()
        return KafkaMembership(
            self._inside, group=name, topics=topics, settings=settings, on_revoke=on_revoke
        )

    def list_groups(self) -> list[Group]:
        """Return all groups of the prefix that have members or offsets, by name."""
        return self._groups.find_all()

    def find_group(self, name: str) -> Group:
        """Return one group. GroupNotFound."""
        return self._groups.find(name)

    def reset_group(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Let a group go on at other offsets; it is made if it is not there.

        GroupActive: it has members. PositionLost: an offset is not in the log.
        """
        for place in offsets:
            check_partition(place, self._inside.topics.find(place.topic).topic)
        extents = self._inside.offsets.extents(offsets)
        for place, offset in offsets.items():
            check_reset(name, place, offset, extents[place])
        self._groups.set_offsets(name, offsets)

    def delete_group(self, name: str) -> None:
        """Forget a group. GroupNotFound, GroupActive."""
        self._groups.delete(name)

    def open_book(self, queue: Queue, consumer: str) -> KafkaQueueBook:
        """Open the book of a queue, and enter it as a consumer. TopicNotFound, UsageError."""
        return KafkaQueueBook(self._inside, queue, consumer)

    def close(self) -> None:
        """Do nothing: members and consumers close their own clients."""
