"""A member of a consumer group: the rules of polling and committing, alike over every log."""

from collections.abc import Sequence
from typing import Self

from headrace.consume.group_refusals import commit_before_poll, poll_within_poll
from headrace.consume.groups import Polled
from headrace.consume.membership import Membership
from headrace.consume.polling import check_poll
from headrace.log.base import Append, Partition
from headrace.log.names import refuse_reserved

__all__ = ["Member"]


class Member:
    """One reader of a group. For one thread at a time, of the process that joined.

    It gives signs of life by itself.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._must_poll = self._polling = False

    @property
    def id(self) -> str:
        """Which member of the group this is, once it has joined; another one after it did anew."""
        return self._membership.id

    @property
    def assigned(self) -> list[Partition]:
        """The partitions that the last `poll` found to be ours."""
        return sorted(self._membership.owned)

    def poll(self, *, timeout_s: float = 1.0, max_records: int = 10_000) -> list[Polled]:
        """Return the next records of our partitions, nothing after `timeout_s` without any.

        Partitions that move elsewhere are given up here, after `on_revoke` was called with them,
        which may still commit. It is not called for those that we lost by being dead for a while;
        then we join anew. MemberFenced: another process joined with our instance id.
        PositionLost: the next record is gone.
        """
        self._check_usable()
        check_poll(self, timeout_s, max_records)
        if self._polling:
            raise poll_within_poll(self)
        self._polling = True
        try:
            if self._must_poll:
                self._membership.begin_anew()
                self._must_poll = False
            return self._membership.poll(timeout_s, max_records)
        finally:
            self._polling = False

    def commit(self, appends: Sequence[Append] = ()) -> None:
        """Store that all that was polled is done and, together with that, append the output.

        MemberFenced: a partition that was polled since the last commit is no longer ours, or was
        not for a while; nothing was stored. What was read of it is polled by its new owner, and
        what was read of ours by us again.
        """
        self._check_usable()
        for append in appends:
            refuse_reserved(append.topic)
        if self._must_poll:
            raise commit_before_poll(self)
        progress = self._membership.progress
        offsets = progress.uncommitted()
        if not (appends or offsets or progress.lost):
            return
        try:
            self._membership.commit(offsets, appends)
        except BaseException:
            # Even of one that failed the outcome may be unknown; what is committed decides.
            self._must_poll = True
            progress.forget_polled()
            raise
        progress.note_committed(offsets)

    def close(self) -> None:
        """Leave the group; without an instance id our partitions are free at once.

        Nothing is committed, and `on_revoke` is not called.
        """
        self._membership.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._membership)

    def _check_usable(self) -> None:
        self._membership.life.check(self)
        self._membership.check_instance()
