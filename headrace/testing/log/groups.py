"""The log's contract: members of a group share partitions, and come, go and die.

Method: members poll in turn until what must happen has happened or the patience is over, so that a
log whose rebalance takes seconds passes too.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.consume import delete_group, find_group, join_group, list_groups, reset_group
from headrace.consume.groups import Group, MemberSettings, lag
from headrace.consume.member import Member
from headrace.errors import (
    GroupActive,
    GroupNotFound,
    LogError,
    MemberFenced,
    PositionLost,
    TopicNotFound,
    UsageError,
)
from headrace.log.base import Append, Log, Partition
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, start_process, values

__all__ = ["GroupTests", "Reading"]

Join = Callable[..., Member]

JOINS_AND_WAITS = """
import sys
from headrace.consume import join_group
from headrace.consume.groups import MemberSettings
{make_log}
settings = MemberSettings(session_timeout_ms={session_timeout_ms})
member = join_group(log, "g", ["t"], settings=settings)
while not member.assigned:
    member.poll(timeout_s=0.1)
print(len(member.assigned), flush=True)
while True:
    member.poll(timeout_s=0.1)
"""


class Reading:
    """What some members have polled, and how they are made to go on."""

    def __init__(self, members: Sequence[Member], patience_s: float) -> None:
        self.members = list(members)
        self.by_member: list[list[bytes]] = [[] for _ in members]
        self.by_partition: dict[Partition, list[int]] = {}
        self._patience_s = patience_s

    @property
    def values(self) -> list[bytes]:
        """All values, each member's in the order in which it got them."""
        return [value for own in self.by_member for value in own]

    def once(self, **options: Any) -> None:
        """Let every member poll once, shortly."""
        for number, member in enumerate(self.members):
            for place, batch in member.poll(timeout_s=0.05, **options):
                self.by_member[number] += batch.column("value").to_pylist()
                self.by_partition.setdefault(place, []).extend(batch.column("offset").to_pylist())

    def until(self, done: Callable[[], bool], **options: Any) -> "Reading":
        """Let them poll until it is done; fails when the patience is over."""
        deadline = time.monotonic() + self._patience_s
        while not done():
            assert time.monotonic() < deadline, f"waited in vain; polled {self.values}"
            self.once(**options)
        return self

    def until_shared(self, *topics: tuple[str, int]) -> "Reading":
        """Let them poll until every partition of the topics is one's, and all have their share."""
        places = sorted(Partition(topic, n) for topic, count in topics for n in range(count))

        def shared() -> bool:
            own = [member.assigned for member in self.members]
            sizes = [len(each) for each in own]
            everything = sorted(place for each in own for place in each)
            return everything == places and max(sizes) - min(sizes) <= 1

        return self.until(shared)

    def until_values(self, count: int) -> "Reading":
        """Let them poll until they have so many values, and a little longer, for one too many."""
        self.until(lambda: len(self.values) >= count)
        self.once()
        return self


class GroupTests(LogSuite):
    """Groups."""

    @pytest.fixture
    def join(self, log: Log) -> Iterator[Join]:
        """Join groups; members that the test leaves open are closed after it."""
        joined: list[Member] = []

        def join(group: str, *topics: str, on_revoke: Any = None, **settings: Any) -> Member:
            member = join_group(
                log, group, topics, settings=MemberSettings(**settings), on_revoke=on_revoke
            )
            joined.append(member)
            return member

        yield join
        for member in joined:
            with suppress(LogError):
                member.close()

    def read(self, *members: Member) -> Reading:
        return Reading(members, self.patience_s)

    def test_every_group_gets_everything_in_order(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=3)
        for n in range(30):
            log.append("t", records([str(n)]), partition=n % 3)
        one, two = join("one", "t"), join("two", "t")
        first, second = self.read(one).until_values(30), self.read(two).until_values(30)
        for reading in (first, second):
            assert sorted(map(int, reading.values)) == list(range(30))
            assert all(offsets == sorted(offsets) for offsets in reading.by_partition.values())
        log.append("t", records(["late"]), partition=1)
        assert first.until_values(31).values[-1] == b"late"
        assert second.until_values(31).values[-1] == b"late"

    def test_within_a_group_each_record_goes_to_one_member(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=6)
        reading = self.read(*(join("g", "t") for _ in range(3))).until_shared(("t", 6))
        for n in range(60):
            log.append("t", records([str(n)]), partition=n % 6)
        reading.until_values(60)
        assert sorted(map(int, reading.values)) == list(range(60))
        assert [len(own) for own in reading.by_member] == [20, 20, 20]
        group = find_group(log, "g")
        assert {member.id: list(member.partitions) for member in group.members} == {
            member.id: member.assigned for member in reading.members
        }

    def test_partitions_of_several_topics_go_to_members_that_read_them(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("a", partitions=2)
        log.create_topic("b", partitions=2)
        reading = self.read(join("g", "a"), join("g", "a", "b"))
        reading.until_shared(("a", 2), ("b", 2))
        a, both = reading.members
        assert {place.topic for place in a.assigned} == {"a"}
        assert {place.topic for place in both.assigned} >= {"b"}
        for topic in ("a", "b"):
            log.append(topic, records([topic]), partition=1)
        assert sorted(reading.until_values(2).values) == [b"a", b"b"]

    def test_who_joins_gets_a_share_and_who_leaves_gives_it_back(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=4)
        revoked: list[Partition] = []
        first = join("g", "t", on_revoke=revoked.extend)
        self.read(first).until_shared(("t", 4))
        assert revoked == []
        second = join("g", "t")
        reading = self.read(first, second).until_shared(("t", 4))
        # Sticky: what moved is what the second has, and nothing else.
        assert sorted(revoked) == second.assigned
        second.close()
        self.read(first).until_shared(("t", 4))
        assert len(revoked) == 2
        with pytest.raises(UsageError, match="closed"):
            second.poll()
        second.close()  # again does no harm
        assert reading.values == []

    def test_what_is_revoked_can_still_be_committed(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=2)
        for number in (0, 1):
            log.append("t", records(["a", "b"]), partition=number)
        first: Member = join("g", "t", on_revoke=lambda _: first.commit())
        self.read(first).until_values(4)
        second = join("g", "t")
        reading = self.read(first, second).until_shared(("t", 2))
        log.append("t", records(["c"]), partition=second.assigned[0].number)
        # Neither `a` nor `b` comes again, which the first had polled.
        assert reading.until_values(1).values == [b"c"]

    def test_what_was_not_committed_when_it_was_revoked_is_polled_by_the_next(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=2)
        log.create_topic("out", partitions=1)
        for number in (0, 1):
            log.append("t", records([f"{number}a", f"{number}b"]), partition=number)
        first = join("g", "t")
        self.read(first).until_values(4)
        second = join("g", "t")
        reading = self.read(first, second).until_shared(("t", 2))
        moved = second.assigned[0].number
        expected = [f"{moved}a".encode(), f"{moved}b".encode()]
        reading.until(lambda: len(reading.by_member[1]) >= 2)
        assert reading.by_member[1] == expected
        # What the first made of them must not be stored, since the second makes it again.
        with pytest.raises(MemberFenced, match="Nothing was stored"):
            first.commit([Append("out", records(["of all four"]), 0)])
        assert values(log, Partition("out", 0)) == []
        second.commit([Append("out", records(["of two"]), 0)])
        assert values(log, Partition("out", 0)) == [b"of two"]
        # Of its own partition the first reads again what it could not commit.
        again = self.read(first).until_values(2)
        assert again.values == [f"{1 - moved}a".encode(), f"{1 - moved}b".encode()]
        first.commit()
        assert sorted(find_group(log, "g").offsets) == [Partition("t", 0), Partition("t", 1)]

    def test_the_partitions_of_a_killed_member_go_to_the_others(
        self, log: Log, path: Path, join: Join
    ) -> None:
        self.need("processes")
        log.create_topic("t", partitions=4)
        code = JOINS_AND_WAITS.format(
            make_log=self.make_log_code(path), session_timeout_ms=self.session_timeout_ms
        )
        with start_process(code) as process:
            survivor = join("g", "t")
            both = self.read(survivor).until(lambda: len(survivor.assigned) == 2)
            log.append("t", records(["before"]), partition=0)
            process.kill()
            process.wait()
        log.append("t", records(["after"]), partition=3)
        killed = time.monotonic()
        both.until_shared(("t", 4))
        assert time.monotonic() - killed < self.patience_s
        assert sorted(both.until_values(2).values) == [b"after", b"before"]
        assert len(find_group(log, "g").members) == 1

    def test_a_member_with_an_instance_id_comes_back_to_its_partitions(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=4)
        moved: list[Partition] = []
        stays = join("g", "t", instance="a", on_revoke=moved.extend)
        leaves = join("g", "t", instance="b")
        reading = self.read(stays, leaves).until_shared(("t", 4))
        before, moved[:] = leaves.assigned, []
        leaves.close()
        reading.members = [stays]
        for _ in range(5):
            reading.once()
        assert {m.instance for m in find_group(log, "g").members} == {"a", "b"}
        back = join("g", "t", instance="b")
        self.read(back, stays).until(lambda: back.assigned == before)
        assert moved == []
        assert stays.assigned == sorted({Partition("t", n) for n in range(4)} - set(before))

    def test_who_joins_with_an_instance_id_that_is_in_use_takes_over(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=2)
        log.create_topic("out", partitions=1)
        log.append("t", records(["x"]), partition=0)
        old = join("g", "t", instance="a")
        self.read(old).until_values(1)
        new = join("g", "t", instance="a")
        assert self.read(new).until_shared(("t", 2)).until_values(1).values == [b"x"]
        with pytest.raises(MemberFenced):
            old.commit([Append("out", records(["old"]), 0)])

        def is_told() -> bool:
            try:
                old.poll(timeout_s=0.1)
            except MemberFenced as error:
                return "instance 'a'" in str(error)
            return False

        self.read().until(is_told)
        new.commit([Append("out", records(["new"]), 0)])
        assert values(log, Partition("out", 0)) == [b"new"]
        with pytest.raises(MemberFenced):
            old.commit()

    def test_long_work_between_polls_does_not_end_a_session(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=2)
        log.append("t", records(["x"]), partition=0)
        slow = join("g", "t", session_timeout_ms=self.session_timeout_ms)
        self.read(slow).until_shared(("t", 2)).until_values(1)
        time.sleep(1.5 * self.session_timeout_ms / 1000)
        other = join("g", "t")
        other.poll(timeout_s=0.2)
        assert other.assigned == []
        slow.commit()
        assert set(find_group(log, "g").offsets) == {Partition("t", 0)}

    def test_a_member_that_does_not_poll_for_too_long_loses_its_partitions(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=2)
        log.create_topic("out", partitions=1)
        log.append("t", records(["x"]), partition=0)
        timeout_ms = self.session_timeout_ms
        stuck = join("g", "t", session_timeout_ms=timeout_ms, max_poll_ms=timeout_ms)
        self.read(stuck).until_values(1)
        other = join("g", "t")
        reading = self.read(other).until_shared(("t", 2)).until_values(1)
        assert reading.values == [b"x"]
        other.commit()
        with pytest.raises(MemberFenced, match="Nothing was stored"):
            stuck.commit([Append("out", records(["x"]), 0)])
        assert values(log, Partition("out", 0)) == []
        # It comes back with its next poll, and goes on where the other one was.
        both = self.read(stuck, other).until_shared(("t", 2))
        log.append("t", records(["y"]), partition=0)
        assert both.until_values(1).values == [b"y"]

    def test_a_poll_is_bounded_and_no_partition_starves(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=3)
        log.append("t", records([f"0-{n}" for n in range(2_000)]), partition=0)
        for number in (1, 2):
            log.append("t", records([f"{number}-{n}" for n in range(3)]), partition=number)
        member = join("g", "t")
        reading = self.read(member)
        sizes = []

        def quiet_ones_are_read() -> bool:
            polled = len(reading.values)
            sizes.append(polled)
            return sum(not value.startswith(b"0-") for value in reading.values) == 6

        reading.until(quiet_ones_are_read, max_records=50)
        assert max(after - before for before, after in pairwise(sizes)) <= 50
        assert len(reading.values) < 2_000
        reading.until_values(2_006)
        assert len(set(reading.values)) == len(reading.values) == 2_006

    def test_the_lag_of_a_group_is_known(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=2)
        log.append("t", records(["a", "b", "c"]), partition=0)
        member = join("g", "t")
        self.read(member).until_values(3)
        member.commit()
        log.append("t", records(["d", "e"]), partition=0)
        log.append("t", records(["f"]), partition=1)
        behind = lag(log, find_group(log, "g"))
        assert [each.partition.number for each in behind] == [0, 1]
        assert {each.member for each in behind} == {member.id}
        self.read(member).until_values(3)
        member.commit()
        level = lag(log, find_group(log, "g"))
        if "dense_offsets" in self.cannot:
            assert all(a.records < b.records for a, b in zip(level, behind, strict=True))
        else:
            assert [each.records for each in behind] == [2, 1]
            assert [each.records for each in level] == [0, 0]
        member.close()
        assert [group.name for group in list_groups(log)] == ["g"]
        assert {each.member for each in lag(log, find_group(log, "g"))} == {None}

    def test_a_group_goes_on_where_it_is_set_to(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=1)
        place = Partition("t", 0)
        log.append("t", records([str(n) for n in range(10)]), partition=0)
        extent = log.extents("t")[place]
        for offset, expected in (
            (extent.first_offset, 10),
            (extent.end_offset, 0),
            (extent.end_offset - 3, 3),
        ):
            reset_group(log, "g", {place: offset})
            assert find_group(log, "g") == Group("g", (), {place: offset})
            member = join("g", "t")
            reading = self.read(member).until_shared(("t", 1)).until_values(expected)
            assert reading.values == [str(n).encode() for n in range(10 - expected, 10)]
            with pytest.raises(GroupActive, match="'g'"):
                reset_group(log, "g", {place: 0})
            with pytest.raises(GroupActive, match="'g'"):
                delete_group(log, "g")
            member.close()
        for offset in (-1, extent.end_offset + 1):
            with pytest.raises(PositionLost, match="t/0@"):
                reset_group(log, "g", {place: offset})
        assert find_group(log, "g").offsets == {place: extent.end_offset - 3}

    def test_a_deleted_group_begins_anew(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"]), partition=0)
        for group in ("kept", "gone"):
            member = join(group, "t")
            self.read(member).until_values(2)
            member.commit()
            member.close()
        delete_group(log, "gone")
        with pytest.raises(GroupNotFound, match="'gone'"):
            find_group(log, "gone")
        with pytest.raises(GroupNotFound):
            delete_group(log, "gone")
        assert [group.name for group in list_groups(log)] == ["kept"]
        assert self.read(join("gone", "t")).until_values(2).values == [b"a", b"b"]

    def test_wrong_calls_are_refused(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(TopicNotFound, match="missing"):
            join("g", "missing")
        for group in ("", "x" * 250, "a\nb", "a\0b"):
            with pytest.raises(UsageError, match="a group's name"):
                join(group, "t")
        for wrong in (
            {"session_timeout_ms": 0},
            {"session_timeout_ms": -1},
            {"session_timeout_ms": 10_000, "max_poll_ms": 9_999},
            {"instance": "a b"},
            {"instance": ""},
            {"start": "middle"},
        ):
            with pytest.raises(UsageError):
                join("g", "t", **wrong)
        with pytest.raises(UsageError, match="at least one"):
            join("g")
        member = join("group with ü", "t")
        for wrong in ({"timeout_s": -1}, {"max_records": 0}):
            with pytest.raises(UsageError, match="at least"):
                member.poll(**wrong)
        with pytest.raises(GroupNotFound, match="'nobody'"):
            find_group(log, "nobody")
