"""Groups and queues of the embedded log.

Promise: a log that nobody joined or consumed has no file for it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from headrace.consume.embedded.coordinator import Coordinator, now_ms
from headrace.consume.embedded.group_rows import GroupRows, is_alive
from headrace.consume.embedded.membership import EmbeddedMembership
from headrace.consume.embedded.offsets import Committed, Offsets
from headrace.consume.embedded.queue_book import EmbeddedQueueBook
from headrace.consume.group_refusals import check_reset, group_active, group_not_found
from headrace.consume.groups import Group, GroupMember, MemberSettings, Revoked
from headrace.consume.queues import Queue
from headrace.errors import (
    GroupNotFound,
    TopicNotFound,
)
from headrace.log.base import Partition
from headrace.log.embedded.inside import Inside

__all__ = ["EmbeddedSharedReading"]


class EmbeddedSharedReading:
    """`Groups` and `Queues`, over the inner side of a log."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.clients = inside.clients
        self.coordinator = Coordinator(inside.path, sync=inside.sync)
        self._offsets = Offsets(inside)

    def enter_group(
        self, name: str, topics: Sequence[str], settings: MemberSettings, on_revoke: Revoked | None
    ) -> EmbeddedMembership:
        """Take part in a group that reads the topics. TopicNotFound, UsageError."""
        for topic in topics:
            self._inside.stored(topic)
        return EmbeddedMembership(
            self._inside,
            self.coordinator,
            self._offsets,
            group=name,
            topics=topics,
            settings=settings,
            on_revoke=on_revoke,
        )

    def open_book(self, queue: Queue, consumer: str) -> EmbeddedQueueBook:
        """Open the book of a queue, and enter it as a consumer. TopicNotFound, UsageError."""
        return EmbeddedQueueBook(self._inside, self.coordinator, queue, consumer)

    def list_groups(self) -> list[Group]:
        """Return all groups that have members or offsets, by name."""
        with self.coordinator.look() as connection:
            named = {name for (name,) in connection.execute("SELECT group_name FROM members")}
        self._offsets.catch_up()
        found = []
        for name in sorted({*named, *self._offsets.groups()}):
            with suppress(GroupNotFound):  # its members are dead
                found.append(self._group(name))
        return found

    def find_group(self, name: str) -> Group:
        """Return one group. GroupNotFound."""
        self._offsets.catch_up()
        return self._group(name)

    def _group(self, name: str) -> Group:
        with self.coordinator.look() as connection:
            rows = GroupRows(connection, name)
            members = rows.members()
            now = now_ms()
            alive = tuple(
                GroupMember(member.id, member.instance, tuple(sorted(rows.owned(member.id))))
                for member in members
                if is_alive(member, now)
            )
        committed = self._offsets.of(name)
        if not alive and not committed:
            raise group_not_found(name, self._inside.path)
        offsets: dict[Partition, int] = {}
        for place, (offset, topic_id) in sorted(committed.items()):
            with suppress(TopicNotFound):
                if self._inside.stored(place.topic).id == topic_id:
                    offsets[place] = offset
        return Group(name, alive, offsets)

    def reset_group(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Let a group go on at other offsets; it is made if it is not there.

        GroupActive: it has members. PositionLost: an offset is not in the log.
        """
        with self.coordinator.step() as connection:
            self._check_inactive(GroupRows(connection, name), name, "reset")
            stored: dict[Partition, Committed] = {}
            for place, offset in offsets.items():
                check_reset(name, place, offset, self._inside.extent(place))
                stored[place] = Committed(offset, self._inside.stored(place.topic).id)
            if stored:
                self._offsets.store(name, stored)

    def delete_group(self, name: str) -> None:
        """Forget a group. GroupNotFound, GroupActive."""
        with self.coordinator.step() as connection:
            rows = GroupRows(connection, name)
            self._check_inactive(rows, name, "deleted")
            self._offsets.catch_up()
            committed = self._offsets.of(name)
            if not committed:
                raise group_not_found(name, self._inside.path)
            self._offsets.store(name, dict.fromkeys(committed))
            rows.delete()

    def _check_inactive(self, rows: GroupRows, name: str, done: str) -> None:
        rows.remove_dead()
        if members := rows.members():
            raise group_active(name, [member.id for member in members], done)

    def close(self) -> None:
        """Let go of the file."""
        self.coordinator.close()
