"""What a member needs of its log: to be one of its group, records, and commits that hold.

`embedded/membership.py` is our own, over rows of a table; `kafka/membership.py` leaves all it can
to librdkafka and to Kafka's own groups. What both keep is promised in groups.py.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from headrace.consume.groups import Group, MemberSettings, Polled, Revoked
from headrace.consume.lifetime import Lifetime
from headrace.consume.progress import Progress
from headrace.log.base import Append, Partition

__all__ = ["Groups", "Membership"]


class Membership(Protocol):
    """One member's part in a group; prints as who it is. For one thread at a time."""

    @property
    def id(self) -> str:
        """Which member of the group this is, once it has joined; another one after it did anew."""
        ...

    @property
    def owned(self) -> Collection[Partition]:
        """The partitions that the last `poll` found to be ours."""
        ...

    @property
    def progress(self) -> Progress:
        """How far they were polled."""
        ...

    @property
    def life(self) -> Lifetime:
        """Whether it may be used."""
        ...

    def check_instance(self) -> None:
        """Refuse to go on when another process joined with our instance id. MemberFenced."""
        ...

    def begin_anew(self) -> None:
        """Go on, at the next poll, where the group has committed to."""
        ...

    def poll(self, timeout_s: float, max_records: int) -> list[Polled]:
        """Return the next records of our partitions, nothing after `timeout_s` without any.

        MemberFenced, PositionLost.
        """
        ...

    def commit(self, offsets: Mapping[Partition, int], appends: Sequence[Append]) -> None:
        """Store offsets and appends, all of them or nothing. MemberFenced: nothing was."""
        ...

    def close(self) -> None:
        """Leave the group; without an instance id our partitions are free at once."""
        ...


class Groups(Protocol):
    """What keeps the groups of a log."""

    def enter_group(
        self,
        name: str,
        topics: Sequence[str],
        settings: MemberSettings,
        on_revoke: Revoked | None,
    ) -> Membership:
        """Take part in a group that reads the topics. TopicNotFound, UsageError."""
        ...

    def list_groups(self) -> list[Group]:
        """Return all groups that have members or offsets, by name."""
        ...

    def find_group(self, name: str) -> Group:
        """Return one group. GroupNotFound."""
        ...

    def reset_group(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Let a group go on at other offsets; it is made if it is not there.

        GroupActive: it has members. PositionLost: an offset is not in the log.
        """
        ...

    def delete_group(self, name: str) -> None:
        """Forget a group. GroupNotFound, GroupActive."""
        ...
