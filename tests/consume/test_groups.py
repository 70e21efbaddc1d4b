"""What groups of the embedded log promise beyond the contract: crashes, forks, damage, new topics.

Method: faults are armed in this process, real processes are killed, and the file of the
coordinator is damaged, locked and moved away.
"""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from soaking import seeded, times

from consume.coordinating import coordinator_of
from headrace import faults
from headrace.consume import delete_group, find_group, join_group, list_groups, reset_group
from headrace.consume.embedded import coordinator
from headrace.consume.embedded.group_rows import GroupRows
from headrace.consume.groups import MemberSettings
from headrace.consume.member import Member
from headrace.errors import (
    DiskFull,
    HeadraceError,
    InvalidTopic,
    LogDamaged,
    LogError,
    MemberFenced,
    PositionLost,
    TopicNotFound,
    UsageError,
)
from headrace.log import Append, EmbeddedLog, Partition, TopicSettings, records
from headrace.log.names import GROUPS_TOPIC
from headrace.testing.log.suite import rows, values

PARTITION_0 = Partition("t", 0)
COMMIT_POINTS = {
    "group_before_append": False,
    "log_in_transaction": False,
    "log_before_decision": False,
    "log_after_decision": True,
    "log_in_acknowledgement": True,
    "group_after_append": True,
}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=1)
    log.create_topic("out", partitions=1)
    yield log
    faults.disarm()
    log.close()


def polled(member: Member, *, timeout_s: float = 0.1) -> list[bytes]:
    found = member.poll(timeout_s=timeout_s)
    return [value for each in found for value in each.records.column("value").to_pylist()]


@pytest.mark.parametrize("point", COMMIT_POINTS)
def test_a_commit_that_dies_is_there_whole_or_not_at_all(
    log: EmbeddedLog, tmp_path: Path, point: str
) -> None:
    first = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(first) == [b"a"]
    first.commit([Append("out", records(["a"]), 0)])
    first.close()
    # This log has read the offsets, so it would trust the ends of their partition for a while.
    assert find_group(log, "g").offsets == {PARTITION_0: 1}
    log.append("t", records(["b"]), partition=0)
    dying = EmbeddedLog(tmp_path / "log", sync=False)
    second = join_group(dying, "g", ["t"])
    assert polled(second) == [b"b"]
    faults.arm(point)
    with pytest.raises(faults.Crash):
        second.commit([Append("out", records(["b"]), 0)])
    second.close()
    third = join_group(log, "g", ["t"])
    again = polled(third)
    assert again == ([] if COMMIT_POINTS[point] else [b"b"])
    if again:
        third.commit([Append("out", records(again), 0)])
    assert values(EmbeddedLog(tmp_path / "log"), Partition("out", 0)) == [b"a", b"b"]
    dying.close()


def test_the_topic_of_the_offsets_is_not_for_users(log: EmbeddedLog) -> None:
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(member) == [b"a"]
    member.commit()
    assert [topic.name for topic in log.topics()] == ["out", "t"]
    with pytest.raises(InvalidTopic, match="books of its own"):
        log.create_topic(GROUPS_TOPIC)
    append = Append(GROUPS_TOPIC, records(["x"]), 0)
    for call in (
        lambda: log.append(GROUPS_TOPIC, records(["x"]), partition=0),
        lambda: log.append_all([append]),
        lambda: log.delete_topic(GROUPS_TOPIC),
        lambda: log.change_topic(GROUPS_TOPIC, partitions=2),
        lambda: join_group(log, "g", [GROUPS_TOPIC]),
        lambda: reset_group(log, "g", {Partition(GROUPS_TOPIC, 0): 0}),
        lambda: member.commit([append]),
    ):
        with pytest.raises(TopicNotFound, match="for users"):
            call()


def test_offsets_are_stored_as_their_format_says(log: EmbeddedLog) -> None:
    member = join_group(log, "gü", ["t"])
    log.append("t", records(["a", "b"]), partition=0)
    assert len(polled(member)) == 2
    member.commit()
    member.close()
    delete_group(log, "gü")
    stored, deleted = rows(log, Partition(GROUPS_TOPIC, 0))
    assert stored["key"] == deleted["key"] == b'["g\\u00fc", "t", 0]'
    topic_id = log._stored("t").id
    assert stored["value"] == f'{{"offset": 2, "topic_id": "{topic_id}"}}'.encode()
    assert deleted["value"] is None


def test_of_many_commits_the_newest_are_kept(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False, segment_bytes=2_000)
    log.create_topic("t", partitions=2)
    for name in ("gone", "kept"):
        with join_group(log, name, ["t"]) as member:
            for n in range(100):
                log.append("t", records([str(n)]), partition=n % 2)
                assert polled(member)
                member.commit()
    delete_group(log, "gone")
    log.maintain()
    stored = rows(log, Partition(GROUPS_TOPIC, 0))
    assert len(stored) < 60
    for each in (log, EmbeddedLog(tmp_path)):
        assert [group.name for group in list_groups(each)] == ["kept"]
        assert find_group(each, "kept").offsets == {PARTITION_0: 100, Partition("t", 1): 100}
    log.close()


def test_a_topic_made_anew_does_not_inherit_offsets(log: EmbeddedLog, tmp_path: Path) -> None:
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a", "b"]), partition=0)
    assert polled(member) == [b"a", b"b"]
    member.commit()
    log.delete_topic("t")
    assert find_group(log, "g").offsets == {}
    with pytest.raises(TopicNotFound, match="'t'"):
        member.poll()
    log.create_topic("t", partitions=2)
    log.append("t", records(["c"]), partition=0)
    assert polled(member) == [b"c"]
    assert member.assigned == [PARTITION_0, Partition("t", 1)]
    # Also for one that is not at its first topic, and would begin at the end.
    member.commit()
    member.close()
    log.delete_topic("t")
    log.create_topic("t", partitions=1)
    log.append("t", records(["d"]), partition=0)
    assert polled(join_group(log, "g", ["t"], settings=MemberSettings("latest"))) == [b"d"]


def test_what_was_polled_of_a_topic_that_is_gone_is_not_committed(log: EmbeddedLog) -> None:
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(member) == [b"a"]
    log.delete_topic("t")
    log.create_topic("t", partitions=1)
    log.append("t", records(["b"]), partition=0)
    assert polled(member) == [b"b"]
    with pytest.raises(MemberFenced):
        member.commit([Append("out", records(["a and b"]), 0)])
    assert values(log, Partition("out", 0)) == []
    assert polled(member) == [b"b"]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_partitions_that_are_added_are_read_from_their_start(log: EmbeddedLog, start: str) -> None:
    members = [join_group(log, "g", ["t"], settings=MemberSettings(start)) for _ in range(2)]
    for _ in range(3):
        assert [polled(member) for member in members] == [[], []]
    log.change_topic("t", partitions=4)
    for number in range(1, 4):
        log.append("t", records([str(number)]), partition=number)
    found: list[bytes] = []
    for _ in range(6):
        for member in members:
            found += polled(member)
    assert sorted(found) == [b"1", b"2", b"3"]
    assert [len(member.assigned) for member in members] == [2, 2]


def test_an_offset_that_retention_removed_is_said_and_can_be_reset(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False, segment_bytes=1)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    member = join_group(log, "g", ["t"])
    assert polled(member) == [b"a"]
    member.commit()
    for _ in range(4):
        log.append("t", records(["b"]), partition=0)
    log.change_topic("t", settings=TopicSettings(retention_bytes=1))
    log.maintain()
    first = log.extents("t")[PARTITION_0].first_offset
    assert first > 1
    for _ in range(2):
        with pytest.raises(PositionLost, match=f"t/0@1: .* group 'g' is gone.* begins at {first} "):
            member.poll()
    member.close()
    reset_group(log, "g", {PARTITION_0: first})
    assert polled(join_group(log, "g", ["t"])) == [b"b"] * (5 - first)
    log.close()


def test_a_child_process_joins_for_itself(log: EmbeddedLog) -> None:
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(member) == [b"a"]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for use in (member.poll, member.commit):
                try:
                    use()
                except UsageError as error:
                    assert "this is its child" in str(error)  # noqa: PT017 - in the child
                else:
                    os._exit(2)
            member.close()
            own = join_group(log, "other", ["t"])
            assert polled(own) == [b"a"]
            own.commit()
            own.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    member.commit()
    assert [group.name for group in list_groups(log)] == ["g", "other"]
    assert find_group(log, "g").members[0].id == member.id


def test_a_fork_while_another_thread_is_in_a_step_does_not_hang(log: EmbeddedLog) -> None:
    join_group(log, "g", ["t"]).close()
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with coordinator_of(log).step():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(10)
    pid = os.fork()
    if pid == 0:
        with coordinator_of(log).look() as connection:
            count = connection.execute("SELECT count(*) FROM members").fetchone()[0]
        os._exit(count)
    assert os.waitpid(pid, 0)[1] == 0
    leave.set()
    thread.join()


def test_a_damaged_file_is_said_and_groups_go_on_without_it(log: EmbeddedLog) -> None:
    path = log._path / coordinator.FILE
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(member) == [b"a"]
    member.commit()
    log.append("t", records(["b"]), partition=0)
    log.close()
    path.write_bytes(b"not a database" * 500)
    log = EmbeddedLog(log._path, sync=False)
    with pytest.raises(LogDamaged, match=r"~groups.sqlite.*move it away") as caught:
        join_group(log, "g", ["t"])
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    path.unlink()
    assert polled(join_group(log, "g", ["t"])) == [b"b"]
    log.close()


def test_a_file_of_a_later_version_is_left_alone(log: EmbeddedLog) -> None:
    with sqlite3.connect(log._path / coordinator.FILE) as other:
        other.execute("PRAGMA user_version = 9")
    other.close()
    with pytest.raises(LogError, match="format version 9"):
        join_group(log, "g", ["t"])


def test_a_locked_file_is_said(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "BUSY_TIMEOUT_S", 0.05)
    member = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(member) == [b"a"]
    other = sqlite3.connect(log._path / coordinator.FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogError, match="another process holds it"):
        member.commit()
    assert polled(member) == [b"a"]  # looking needs no lock
    other.execute("ROLLBACK")
    other.close()
    member.commit()
    assert find_group(log, "g").offsets == {PARTITION_0: 1}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_IOERR | 3 << 8, LogError),
        (sqlite3.SQLITE_CORRUPT | 1 << 8, LogDamaged),
        (sqlite3.SQLITE_READONLY, LogError),
    ],
)
def test_errors_of_sqlite_are_translated(code: int, kind: type[HeadraceError]) -> None:
    error = sqlite3.OperationalError("text")
    error.sqlite_errorcode = code
    found = coordinator.translate(Path("file"), error)
    assert type(found) is kind
    assert "text" in str(found)


def test_a_heartbeat_that_fails_shows_at_the_next_poll(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.consume.embedded import membership as module

    def fail(*_: object) -> bool:
        raise DiskFull("no space left, for the test")

    with monkeypatch.context() as patched:
        patched.setattr(module, "show_sign_of_life", fail)
        member = join_group(log, "g", ["t"], settings=MemberSettings(session_timeout_ms=100))
        deadline = time.monotonic() + 10
        while member._membership._heartbeat._failure is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with pytest.raises(DiskFull, match="for the test"):
        member.poll()
    assert polled(member) == []
    assert member.assigned == [PARTITION_0]


def test_signs_of_life_from_before_a_reboot_are_of_the_dead(log: EmbeddedLog) -> None:
    old = join_group(log, "g", ["t"])
    assert polled(old) == []
    old._membership._heartbeat.stop()
    with coordinator_of(log).step() as connection:
        future = coordinator.now_ms() + 10_000_000
        connection.execute("UPDATE members SET seen_ms = ?", (future,))
    assert list_groups(log) == []
    new = join_group(log, "g", ["t"])
    assert polled(new) == []
    assert new.assigned == [PARTITION_0]


def test_a_member_of_the_past_does_not_take_a_later_group_for_its_own(log: EmbeddedLog) -> None:
    past = join_group(log, "g", ["t"])
    log.append("t", records(["a"]), partition=0)
    assert polled(past) == [b"a"]
    past._membership._heartbeat.stop()
    with coordinator_of(log).step() as connection:
        GroupRows(connection, "g").remove([past.id])
        GroupRows(connection, "g").delete()
    now = join_group(log, "g", ["t"])
    assert polled(now) == [b"a"]
    assert polled(past) == []
    assert past.assigned == []
    with pytest.raises(MemberFenced):
        past.commit()
    now.commit()
    past.close()
    now.close()
    with coordinator_of(log).look() as connection:
        for table in ("groups", "members", "places"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_member_with_an_instance_id_that_dies_is_kept_until_its_session_ends(
    log: EmbeddedLog,
) -> None:
    settings = MemberSettings(instance="a", session_timeout_ms=400)
    dead = join_group(log, "g", ["t"], settings=settings)
    assert polled(dead) == []
    dead.close()
    other = join_group(log, "g", ["t"])
    assert polled(other) == []
    assert other.assigned == []
    time.sleep(0.5)
    polled(other)
    assert other.assigned == [PARTITION_0]


def test_closing_the_log_closes_its_members(log: EmbeddedLog, tmp_path: Path) -> None:
    member = join_group(log, "g", ["t"])
    assert polled(member) == []
    log.close()
    log.close()
    with pytest.raises(UsageError, match="closed"):
        member.poll()
    with pytest.raises(UsageError, match="closed"):
        join_group(log, "g", ["t"])
    again = EmbeddedLog(tmp_path / "log")
    assert list_groups(again) == []
    again.close()


def test_on_revoke_cannot_poll(log: EmbeddedLog) -> None:
    log.change_topic("t", partitions=2)
    member = join_group(log, "g", ["t"], on_revoke=lambda _: member.poll() and None)
    assert polled(member) == []
    join_group(log, "g", ["t"])
    with pytest.raises(UsageError, match="cannot poll"):
        member.poll()
    assert len(member.assigned) == 2  # what could not be given up is still its own


# Three processes read, work and commit exactly once, and are killed again and again.
ROUNDS = """
import os, random, signal, sys, time
from headrace.consume import join_group
from headrace.errors import MemberFenced
from headrace.log import Append, EmbeddedLog, records
from headrace.consume.groups import MemberSettings
path, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
records(["warm"])

def work(own):
    log = EmbeddedLog(path, sync=False)
    member = join_group(log, "g", ["in"], settings=MemberSettings(session_timeout_ms=150))
    while True:
        polled = member.poll(timeout_s=0.05, max_records=own.choice([1, 3, 50]))
        values = [v for p in polled for v in p.records.column("value").to_pylist()]
        if own.random() < 0.2:
            time.sleep(own.uniform(0, 0.02))
        try:
            member.commit([Append("out", records(values, keys=values))] if values else [])
        except MemberFenced:
            pass

for round in range(rounds):
    children = []
    for child in range(3):
        own = random.Random(chance.random())
        pid = os.fork()
        if pid == 0:
            work(own)
        children.append(pid)
    time.sleep(chance.uniform(0.05, 0.35))
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "a child ended by itself"
"""


@pytest.mark.soak
def test_rounds_of_killed_members_do_everything_exactly_once(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("in", partitions=4)
    log.create_topic("out", partitions=3)
    keys = [str(n) for n in range(times(20_000))]
    log.append("in", records(keys, keys=keys))
    arguments = [tmp_path, times(8), seeded(11).randrange(2**32)]
    subprocess.run([sys.executable, "-c", ROUNDS, *map(str, arguments)], check=True)
    done = [value for place in log.extents("out") for value in values(log, place)]
    assert len(set(done)) == len(done) > 100
    # And what is left is exactly what was not done.
    member = join_group(log, "g", ["in"])
    rest: list[bytes] = []
    deadline = time.monotonic() + times(20)
    while len(done) + len(rest) < len(keys) and time.monotonic() < deadline:
        rest += polled(member)
    assert sorted([*done, *rest]) == sorted(key.encode() for key in keys)
    log.close()
