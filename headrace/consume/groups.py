"""Consumer groups: readers that share a topic's partitions, and where each group has read to.

Promises every implementation keeps, held by `headrace.testing.log.groups`:
- A partition belongs to at most one member of a group at a time, and to exactly one soon after
  members stop coming and going. One that moves to another member is first given up by its old one:
  at that member's next `poll`, or when its session ends.
- A member that shows no sign of life for `session_timeout_ms` is dead; so is one that has not
  called `poll` for `max_poll_ms`. What it had not committed is polled again by others.
- A commit of a member that no longer owns a partition is refused with MemberFenced, and none of
  its appends are stored: the new owner's position stands.
- Committed offsets outlive members, processes and restarts. A group that begins at the latest
  records commits that at once, so that it misses none that come while nobody reads.
- After a commit that raised, whatever the reason, `poll` goes on where the group has committed to,
  and until then another commit is refused: so trying again never stores an output twice.

The three ways to commit, for a loop of `poll` and work:
- at most once: `poll`, `commit`, work. A crash loses what was being worked on.
- at least once: `poll`, work, `commit`. A crash does some of the work twice.
- exactly once: `poll`, work, `commit(appends)`: the output and the offsets are stored together or
  not at all.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import pyarrow as pa

from headrace.errors import UsageError
from headrace.log.base import Extent, Log, Partition
from headrace.log.names import check_group_name, check_plain_name, refuse_reserved

__all__ = [
    "Group",
    "GroupMember",
    "Lag",
    "MemberSettings",
    "Polled",
    "Revoked",
    "check_join",
    "lag",
]

Revoked = Callable[[Sequence[Partition]], None]


class MemberSettings(NamedTuple):
    """How a member takes part in its group."""

    #: Where to begin in a partition for which the group has committed nothing.
    start: Literal["earliest", "latest"] = "earliest"
    #: A member with an instance id that closes or dies keeps its partitions until its session
    #: ends, and one that joins with the same id takes them over: a restart moves nothing.
    instance: str | None = None
    session_timeout_ms: int = 45_000
    #: At least the session's time.
    max_poll_ms: int = 300_000


class Polled(NamedTuple):
    """Some records of one partition, as RECORDS, in offset order."""

    partition: Partition
    records: pa.RecordBatch


class GroupMember(NamedTuple):
    """A member as others see it."""

    id: str
    instance: str | None
    partitions: tuple[Partition, ...]


class Group(NamedTuple):
    """A group: who is in it, and the next offset that it will read of every partition."""

    name: str
    members: tuple[GroupMember, ...]
    offsets: Mapping[Partition, int]


def check_join(group: str, topics: Sequence[str], settings: MemberSettings) -> None:
    """Refuse what no log can join with. UsageError, TopicNotFound."""
    check_group_name(group)
    if isinstance(topics, str) or not topics:
        raise UsageError(
            f"group {group!r}: cannot read the topics {topics!r}; pass a list with at least one."
        )
    for topic in topics:
        refuse_reserved(topic)
    if settings.start not in ("earliest", "latest"):
        raise UsageError(
            f"group {group!r}: cannot start at {settings.start!r}; use 'earliest' or 'latest'."
        )
    if settings.instance is not None:
        check_plain_name(settings.instance, "an instance id")
    if settings.session_timeout_ms < 1:
        raise UsageError(
            f"group {group!r}: session_timeout_ms cannot be {settings.session_timeout_ms}. Use 1 "
            f"or more."
        )
    if settings.max_poll_ms < settings.session_timeout_ms:
        raise UsageError(
            f"group {group!r}: max_poll_ms cannot be {settings.max_poll_ms}, less than "
            f"session_timeout_ms, {settings.session_timeout_ms}. Raise the one or lower the other."
        )


class Lag(NamedTuple):
    """How far a group is behind in one partition; None where it never committed."""

    partition: Partition
    offset: int | None
    extent: Extent
    member: str | None

    @property
    def records(self) -> int:
        """How many offsets are still to be read."""
        start = self.extent.first_offset if self.offset is None else self.offset
        return max(0, self.extent.end_offset - start)


def lag(log: Log, group: Group) -> list[Lag]:
    """Return the lag of a group in every partition of its topics, by partition. TopicNotFound."""
    owners = {place: member.id for member in group.members for place in member.partitions}
    topics = sorted({place.topic for place in (*owners, *group.offsets)})
    return [
        Lag(place, group.offsets.get(place), extent, owners.get(place))
        for topic in topics
        for place, extent in sorted(log.extents(topic).items())
    ]
