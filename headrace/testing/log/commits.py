"""The log's contract: what a group has committed, and the three ways to do so when it crashes.

Method: processes read with each way and die on it; the next member goes on and does the same. What
came out then says whether records were lost, repeated, or neither.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

from pathlib import Path
from typing import Any

import pytest

from headrace.consume import find_group, join_group
from headrace.consume.member import Member
from headrace.errors import RecordTooLarge, UsageError
from headrace.log.base import MAX_RECORD_BYTES, Append, Log, Partition, Producer
from headrace.log.records import records
from headrace.testing.log.groups import GroupTests, Join
from headrace.testing.log.suite import start_process, values

__all__ = ["CommitTests"]

RECORDS = 20

# Dies in its second batch, or where it passes a fault point for the third time; says what it polls.
DIES = """
import os, signal, sys
from headrace.consume import join_group
from headrace.log import Append, records
from headrace.consume.groups import MemberSettings
{make_log}
way, group = sys.argv[1:]
settings = MemberSettings(session_timeout_ms={session_timeout_ms})
member = join_group(log, group, ["in"], settings=settings)
batch = 0
while True:
    values = [v for p in member.poll(max_records=4) for v in p.records.column("value").to_pylist()]
    if not values:
        continue
    batch += 1
    print(*map(bytes.decode, values), flush=True)
    output = records(values)
    if way == "at most once":
        member.commit()
    if way == "exactly once":
        member.commit([Append(group, output, 0)])
        continue
    if batch == 2 and way == "at most once":
        os.kill(os.getpid(), signal.SIGKILL)
    log.append(group, output, partition=0)
    if batch == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    member.commit()
"""


class CommitTests(GroupTests):
    """Commits."""

    def test_a_group_goes_on_where_it_has_committed(self, log: Log, path: Path, join: Join) -> None:
        log.create_topic("t", partitions=2)
        for number in (0, 1):
            log.append("t", records([f"{number}-{n}" for n in range(5)]), partition=number)
        member = join("g", "t")
        reading = self.read(member)
        reading.until(lambda: len(reading.values) >= 4, max_records=2)
        member.commit()
        done = set(reading.values)
        reading.until(lambda: len(reading.values) >= len(done) + 2, max_records=2)
        member.close()  # without a commit
        other = self.make_log(path)
        rest = self.read(join("g", "t")).until_values(10 - len(done))
        assert not done & set(rest.values)
        assert len(done) + len(rest.values) == 10
        rest.members[0].commit()
        rest.members[0].close()
        other.close()
        assert set(find_group(log, "g").offsets) == {Partition("t", 0), Partition("t", 1)}

    def test_a_group_that_begins_at_the_end_misses_nothing_afterwards(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=2)
        for number in (0, 1):
            log.append("t", records(["before"]), partition=number)
        member = join("g", "t", start="latest")
        self.read(member).until_shared(("t", 2)).once()
        member.close()  # it has polled nothing, and committed nothing
        for number in (0, 1):
            log.append("t", records([f"while nobody reads {number}"]), partition=number)
        reading = self.read(join("g", "t", start="latest")).until_values(2)
        assert sorted(reading.values) == [b"while nobody reads 0", b"while nobody reads 1"]

    def test_output_and_offsets_are_committed_together(self, log: Log, join: Join) -> None:
        log.create_topic("t", partitions=1)
        log.create_topic("out", partitions=3)
        log.append("t", records(["a", "b"]), partition=0)
        member = join("g", "t")
        self.read(member).until_values(2)
        keys = [str(n) for n in range(20)]
        member.commit(
            [
                Append("out", records(keys, keys=keys)),
                Append("t", records(["c"]), 0, Producer("p", 1, 1)),
            ]
        )
        stored = [value for n in range(3) for value in values(log, Partition("out", n))]
        assert sorted(map(int, filter(None, stored))) == list(range(20))
        assert set(find_group(log, "g").offsets) == {Partition("t", 0)}
        assert self.read(member).until_values(1).values == [b"c"]

    def test_a_commit_that_fails_stores_nothing_and_is_not_tried_twice(
        self, log: Log, join: Join
    ) -> None:
        log.create_topic("t", partitions=1)
        log.create_topic("out", partitions=2)
        log.append("t", records(["a", "b"]), partition=0)
        member = join("g", "t")
        self.read(member).until_values(2)
        large = records([b"x" * (MAX_RECORD_BYTES + 1)])
        with pytest.raises(RecordTooLarge):
            member.commit([Append("out", records(["small"]), 0), Append("out", large, 1)])
        with pytest.raises(UsageError, match="the last commit failed"):
            member.commit([Append("out", records(["small"]), 0)])
        assert values(log, Partition("out", 0)) == []
        assert self.read(member).until_values(2).values == [b"a", b"b"]
        member.commit([Append("out", records(["small"]), 0)])
        assert values(log, Partition("out", 0)) == [b"small"]
        member.commit()  # nothing to store

    def test_a_crash_loses_repeats_or_does_neither_as_each_way_says(
        self, log: Log, path: Path
    ) -> None:
        self.need("processes")
        log.create_topic("in", partitions=1)
        everything = [str(n) for n in range(RECORDS)]
        log.append("in", records(everything), partition=0)
        cases = [
            ("at most once", "none"),
            ("at least once", "none"),
            *(("exactly once", point) for point in self.commit_faults),
        ]
        processes = []
        for number, (way, point) in enumerate(cases):
            log.create_topic(f"g{number}", partitions=1)
            code = DIES.format(
                make_log=self.make_log_code(path, f"g{number}"),
                session_timeout_ms=self.session_timeout_ms,
            )
            fault = {} if point == "none" else {"HEADRACE_FAULT": f"{point}:3"}
            processes.append(start_process(code, way, f"g{number}", **fault))
        polled: list[list[str]] = []
        for process in processes:
            said, _ = process.communicate(timeout=self.patience_s)
            assert process.returncode == -9
            polled.append(said.splitlines())
        for number, (way, point) in enumerate(cases):
            self._finish(self.opener(path, f"g{number}")(), way, f"g{number}")
            found = [int(value or b"") for value in values(log, Partition(f"g{number}", 0))]
            in_work = [int(value) for value in polled[number][-1].split()]
            counts = {n: found.count(n) for n in range(RECORDS)}
            expected = {"at most once": 0, "at least once": 2, "exactly once": 1}[way]
            wrong = {n: c for n, c in counts.items() if c != (expected if n in in_work else 1)}
            assert not wrong, f"{way}, {point}: {found}; died while working on {in_work}"
            assert len(found) == sum(counts.values())

    def _finish(self, log: Any, way: str, group: str) -> None:
        """Do the rest of the work; the last record is always part of it."""
        member: Member = join_group(log, group, ["in"])

        def commit_what_was_polled() -> bool:
            new, reading.by_member[0] = reading.by_member[0], []
            if way == "exactly once" and new:
                member.commit([Append(group, records(new), 0)])
            elif new:
                log.append(group, records(new), partition=0)
                member.commit()
            return str(RECORDS - 1).encode() in new

        reading = self.read(member)
        reading.until(commit_what_was_polled)
        member.close()
        log.close()
