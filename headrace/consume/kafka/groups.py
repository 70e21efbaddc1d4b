"""Consumer groups as a Kafka cluster knows them: who is in them, and what they have committed.

Promises:
- Group `name` is Kafka's group `prefix + name`; groups of another prefix are not seen.
- Offsets of a transaction that is not decided yet are waited for, PATIENCE_S at most.
- A group is not changed while it has members: Kafka itself refuses it, so nobody comes between.
"""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)

from headrace.consume.group_refusals import group_active, group_not_found
from headrace.consume.groups import Group, GroupMember
from headrace.log.base import Partition
from headrace.log.kafka.client import LOOK_AGAIN_S, PATIENCE_S, Cluster, check_each
from headrace.log.kafka.topics import KafkaTopics

__all__ = ["KafkaGroups"]

_NOT_FOUND = {KafkaError.GROUP_ID_NOT_FOUND, KafkaError.INVALID_GROUP_ID}
# What Kafka says to who changes the offsets of a group that has members.
_ACTIVE = {
    KafkaError.NON_EMPTY_GROUP,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
}


class KafkaGroups:
    """The groups under one prefix. Safe for several threads."""

    def __init__(self, cluster: Cluster, topics: KafkaTopics, prefix: str) -> None:
        self._cluster = cluster
        self._topics = topics
        self._prefix = prefix

    def find_all(self) -> list[Group]:
        """Return all groups that have members or offsets, by name."""
        what = "list groups"
        listed = self._cluster.wait(
            self._cluster.admin.list_consumer_groups(request_timeout=self._cluster.timeout_s), what
        )
        if listed.errors:
            with self._cluster.errors(what):
                raise listed.errors[0]
        # Those of other kinds, such as share groups, have neither members nor offsets of ours.
        names = sorted(
            each.group_id.removeprefix(self._prefix)
            for each in listed.valid
            if each.group_id.startswith(self._prefix)
        )
        # All are asked at once, and answer one by one.
        members = {name: self._ask_members(name) for name in names}
        offsets = {name: self._ask_offsets(name) for name in names}
        found = [
            Group(name, self._members(name, members[name]), self._offsets(name, offsets[name]))
            for name in names
        ]
        return [group for group in found if group.members or group.offsets]

    def find(self, name: str) -> Group:
        """Return one group. GroupNotFound."""
        members, offsets = self._ask_members(name), self._ask_offsets(name)
        group = Group(name, self._members(name, members), self._offsets(name, offsets))
        if not group.members and not group.offsets:
            raise group_not_found(name, self._cluster)
        return group

    def set_offsets(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Store other offsets for a group. GroupActive."""
        if members := self._members(name, self._ask_members(name)):
            raise group_active(name, [member.id for member in members], "reset")
        if not offsets:
            return
        positions = [self._topics.kafka_place(*each) for each in offsets.items()]
        asked = ConsumerGroupTopicPartitions(self._kafka_name(name), positions)
        futures = self._cluster.admin.alter_consumer_group_offsets(
            [asked], request_timeout=self._cluster.timeout_s
        )
        try:
            done = self._wait(futures, f"reset group {name!r}", raw=_ACTIVE)
            check_each(done.topic_partitions)
        except KafkaException as error:
            raise self._refused(name, "reset", error) from error

    def delete(self, name: str) -> None:
        """Forget a group. GroupNotFound, GroupActive."""
        self.find(name)
        futures = self._cluster.admin.delete_consumer_groups(
            [self._kafka_name(name)], request_timeout=self._cluster.timeout_s
        )
        try:
            self._wait(futures, f"delete group {name!r}", raw=_ACTIVE | _NOT_FOUND)
        except KafkaException as error:
            raise self._refused(name, "deleted", error) from error

    def _refused(self, name: str, done: str, error: KafkaException) -> Exception:
        if error.args[0].code() in _NOT_FOUND:
            return group_not_found(name, self._cluster)
        if error.args[0].code() in _ACTIVE:
            members = self._members(name, self._ask_members(name))
            return group_active(name, [member.id for member in members], done)
        return self._cluster.translated(error.args[0], f"have group {name!r} {done}")

    def _kafka_name(self, name: str) -> str:
        return self._prefix + name

    def _ask_members(self, name: str) -> Mapping[Any, Any]:
        return self._cluster.admin.describe_consumer_groups(
            [self._kafka_name(name)], request_timeout=self._cluster.timeout_s
        )

    def _ask_offsets(self, name: str) -> Mapping[Any, Any]:
        return self._cluster.admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self._kafka_name(name))],
            require_stable=True,
            request_timeout=self._cluster.timeout_s,
        )

    def _members(self, name: str, asked: Mapping[Any, Any]) -> tuple[GroupMember, ...]:
        try:
            found = self._wait(asked, f"look for group {name!r}", raw=_NOT_FOUND)
        except KafkaException:  # the one kind that `raw` passes on
            return ()
        return tuple(
            sorted(
                GroupMember(
                    each.member_id,
                    each.group_instance_id,
                    tuple(sorted(map(self._topics.place, each.assignment.topic_partitions))),
                )
                for each in found.members
            )
        )

    def _offsets(self, name: str, asked: Mapping[Any, Any]) -> dict[Partition, int]:
        what = f"find what group {name!r} has committed"
        raw = {KafkaError.UNSTABLE_OFFSET_COMMIT, *_NOT_FOUND}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = self._wait(asked, what, raw=raw).topic_partitions
                check_each(found)
                places = ((self._topics.place(each), each.offset) for each in found)
                return {place: offset for place, offset in sorted(places) if offset >= 0}
            except KafkaException as error:
                code = error.args[0].code()
                if code in _NOT_FOUND:
                    return {}
                if code not in raw or time.monotonic() > deadline:
                    raise self._cluster.translated(error.args[0], what) from error
            time.sleep(LOOK_AGAIN_S)
            asked = self._ask_offsets(name)

    def _wait(self, futures: Mapping[Any, Any], what: str, *, raw: set[int]) -> Any:
        (future,) = futures.values()
        return self._cluster.wait(future, what, raw=raw)
