"""What every log refuses its groups and their members, in the same words."""

from collections.abc import Collection

from headrace.errors import (
    GroupActive,
    GroupNotFound,
    MemberFenced,
    PositionLost,
    UsageError,
)
from headrace.log.base import Extent, Partition
from headrace.wording import counted

__all__ = [
    "check_group_position",
    "check_reset",
    "commit_before_poll",
    "group_active",
    "group_not_found",
    "instance_taken",
    "partitions_lost",
    "poll_within_poll",
]


def check_group_position(group: str, place: Partition, offset: int, extent: Extent) -> None:
    """Refuse to read on where the log has no record, and never will have. PositionLost."""
    first, end = extent
    if not first <= offset <= end:
        raise PositionLost(
            f"{place}@{offset}: the next record of group {group!r} is gone; the log begins at "
            f"{first} and ends at {end}. Raise the topic's retention, close all members, then "
            f"`reset_group(log, {group!r}, {{{place!r}: {first}}})`."
        )


def check_reset(group: str, place: Partition, offset: int, extent: Extent) -> None:
    """Refuse to let a group go on where it could not read. PositionLost."""
    first, end = extent
    if not first <= offset <= end:
        raise PositionLost(
            f"{place}@{offset}: group {group!r} cannot go on there; the log begins at {first} and "
            f"ends at {end}. Nothing was reset; choose an offset between the two."
        )


def group_active(group: str, members: Collection[str], done: str) -> GroupActive:
    """Return why a group cannot be `done` what was asked."""
    return GroupActive(
        f"group {group!r}: it has {counted(len(members), 'member')} ({', '.join(members)}) and "
        f"cannot be {done} now. Close each member, or wait until the sessions of those that died "
        f"have ended."
    )


def group_not_found(group: str, where: object) -> GroupNotFound:
    """Return that a log has no such group."""
    return GroupNotFound(
        f"group {group!r}: no such group in {where}; it has neither members nor offsets. "
        f"`headrace groups` lists the groups, and so does `list_groups(log)`."
    )


def partitions_lost(member: object, gone: Collection[Partition]) -> MemberFenced:
    """Return why a commit is refused; `gone` is what it is about, if that is known."""
    return MemberFenced(
        f"{member}: {', '.join(map(str, sorted(gone))) or 'the group'} went on without this "
        f"member, which was silent for too long or replaced. Nothing was stored; poll again, and "
        f"raise max_poll_ms or session_timeout_ms if the work needs longer."
    )


def instance_taken(member: object, instance: str | None) -> MemberFenced:
    """Return why a member is out for good."""
    return MemberFenced(
        f"{member}: another process joined as instance {instance!r} and took over its partitions. "
        f"Stop this one, or give each process an instance id of its own."
    )


def commit_before_poll(member: object) -> UsageError:
    """Return why a commit that follows a failed one is refused."""
    return UsageError(
        f"{member}: the last commit failed, and what was polled before it will be polled again. "
        f"Nothing was stored now; poll, do the work again, then commit."
    )


def poll_within_poll(member: object) -> UsageError:
    """Return why `on_revoke` may not poll."""
    return UsageError(f"{member}: `on_revoke` cannot poll; it may commit.")
