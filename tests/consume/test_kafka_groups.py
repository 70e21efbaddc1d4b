"""Groups on Kafka, where the contract does not look: what Kafka's own clients, tools and faults do.

Method: a real broker. Kafka's own consumers and admin client join, reset and remove beside the log.
"""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from broker import SASL_USER, Broker
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.consume import (
    MemberSettings,
    Polled,
    find_group,
    join_group,
    list_groups,
    reset_group,
)
from headrace.consume.member import Member
from headrace.errors import (
    AccessDenied,
    GroupActive,
    MemberFenced,
    PositionLost,
    TopicNotFound,
    UsageError,
)
from headrace.log import Append, KafkaLog, Partition, records
from headrace.testing.log.suite import values

from .conftest import Begin, MakeKafkaLog

PARTITION_0 = Partition("t", 0)
SESSION_MS = 600
QUICK = {"heartbeat.interval.ms": "100", "topic.metadata.refresh.interval.ms": "200"}


def until(member: Member, done: Callable[[], object], patience_s: float = 20) -> list[bytes]:
    """Poll until it is done, and return the values."""
    deadline = time.monotonic() + patience_s
    found: list[bytes] = []
    while not done():
        assert time.monotonic() < deadline, f"waited in vain; polled {found}"
        found += texts(member.poll(timeout_s=0.1))
    return found


def texts(polled: list[Polled]) -> list[bytes]:
    return [value for each in polled for value in each.records.column("value").to_pylist()]


def poll(member: Member, count: int) -> list[bytes]:
    """Poll until there are so many values."""
    found: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(found) < count:
        assert time.monotonic() < deadline, f"waited in vain; polled {found}"
        found += texts(member.poll(timeout_s=0.1))
    return found


@pytest.fixture
def log(make_kafka_log: MakeKafkaLog) -> KafkaLog:
    log = make_kafka_log(QUICK)
    log.create_topic("t", partitions=1)
    return log


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def remove_before(admin: AdminClient, prefix: str, offset: int) -> None:
    asked = TopicPartition(prefix + "t", 0, offset)
    admin.delete_records([asked])[asked].result(10)


# Kafka's own.


def test_groups_are_kafkas_and_those_of_other_prefixes_are_not_seen(
    log: KafkaLog, make_kafka_log: MakeKafkaLog, broker: Broker, prefix: str
) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    foreign = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": prefix + "g",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    foreign.subscribe([prefix + "t"])
    message = foreign.poll(20)
    assert message is not None
    assert message.value() == b"a"
    foreign.commit(message, asynchronous=False)
    (group,) = list_groups(log)
    assert (group.name, group.offsets) == ("g", {PARTITION_0: 1})
    assert [member.partitions for member in group.members] == [(PARTITION_0,)]
    with pytest.raises(GroupActive):
        reset_group(log, "g", {PARTITION_0: 0})
    foreign.close()
    assert list_groups(make_kafka_log(prefix=prefix + "x.")) == []
    with join_group(log, "g", ["t"]) as member:
        assert poll(member, 1) == [b"b"]


def test_the_lag_is_nothing_behind_the_marker_of_a_transaction(log: KafkaLog) -> None:
    log.create_topic("u", partitions=1)
    log.append_all([Append(topic, records(["a"]), 0) for topic in ("t", "u")])
    with join_group(log, "g", ["t"]) as member:
        until(member, lambda: member.commit() or "g" in {group.name for group in list_groups(log)})
        until(member, lambda: member.commit() or find_group(log, "g").offsets == {PARTITION_0: 2})
    assert log.extents("t")[PARTITION_0].end_offset == 2


def test_a_partition_that_is_added_later_is_read_from_its_start(log: KafkaLog) -> None:
    log.append("t", records(["before"]), partition=0)
    member = join_group(log, "g", ["t"], settings=MemberSettings(start="latest"))
    until(member, lambda: "g" in {group.name for group in list_groups(log) if group.offsets})
    log.change_topic("t", partitions=2)
    log.append("t", records(["in the new one"]), partition=1)
    assert poll(member, 1) == [b"in the new one"]


# What is gone.


def test_what_retention_removed_is_position_lost_and_not_skipped(
    log: KafkaLog, admin: AdminClient, prefix: str
) -> None:
    log.append("t", records(["a", "b", "c", "d"]), partition=0)
    with join_group(log, "g", ["t"]) as member:
        member.poll(timeout_s=5, max_records=1)
        member.commit()
    remove_before(admin, prefix, 3)
    with join_group(log, "g", ["t"]) as member:
        for _ in range(2):
            with pytest.raises(PositionLost, match=r"t/0@1: .* begins at 3 and ends at 4.*'g'"):
                until(member, lambda: False)
    reset_group(log, "g", {PARTITION_0: 3})
    with join_group(log, "g", ["t"]) as member:
        assert poll(member, 1) == [b"d"]


def test_what_retention_removes_under_a_reader_is_position_lost(
    make_kafka_log: MakeKafkaLog,
    admin: AdminClient,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So little is fetched ahead that the records are gone before it is their turn.
    monkeypatch.setattr("headrace.consume.kafka.intake.MAX_RECORDS", 1)
    log = make_kafka_log({**QUICK, "queued.min.messages": "1", "max.partition.fetch.bytes": "1000"})
    log.create_topic("t", partitions=1)
    for _ in range(20):
        log.append("t", records([b"x" * 1000]), partition=0)
    with join_group(log, "g", ["t"]) as member:
        assert len(member.poll(timeout_s=10, max_records=1)) == 1
        remove_before(admin, prefix, 19)
        for _ in range(2):
            with pytest.raises(PositionLost, match=r"t/0@\d+: .* begins at 19 and ends at 20"):
                until(member, lambda: False)


def test_a_topic_made_anew_is_read_from_its_start(log: KafkaLog) -> None:
    log.append("t", records(["old"] * 3), partition=0)
    member = join_group(log, "g", ["t"])
    poll(member, 3)
    member.commit()
    log.append("t", records(["old"]), partition=0)
    poll(member, 1)
    log.delete_topic("t")
    log.create_topic("t", partitions=1)
    log.append("t", records(["0", "1", "2", "3", "4", "5"]), partition=0)
    # Before it notices, it may have gone on at its old place.
    found: list[bytes] = []
    while found[-6:] != [b"0", b"1", b"2", b"3", b"4", b"5"]:
        with suppress(TopicNotFound):  # as it was for a moment
            found += poll(member, 1)
    assert len(found) <= 8
    with pytest.raises(MemberFenced, match="t/0"):
        member.commit()  # of one that is gone, too
    assert poll(member, 6) == found[-6:]
    member.commit()
    assert find_group(log, "g").offsets == {PARTITION_0: 6}


# Who is out.


def test_who_was_taken_for_dead_commits_nothing_though_the_group_is_empty(log: KafkaLog) -> None:
    log.create_topic("out", partitions=1)
    log.append("t", records(["a", "b"]), partition=0)
    short = MemberSettings(session_timeout_ms=SESSION_MS, max_poll_ms=SESSION_MS)
    stuck = join_group(log, "g", ["t"], settings=short)
    assert texts(stuck.poll(timeout_s=10, max_records=1)) == [b"a"]
    deadline = time.monotonic() + 20
    while any(group.members for group in list_groups(log)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with join_group(log, "g", ["t"]) as other:
        poll(other, 2)
        other.commit()
    for appends in ([Append("out", records(["a"]), 0)], []):
        with pytest.raises(MemberFenced, match="t/0 went on without"):
            stuck.commit(appends)
        assert find_group(log, "g").offsets == {PARTITION_0: 2}
        # As if it had not been told.
        stuck._must_poll, stuck._membership.progress.moved = False, {PARTITION_0}
    assert values(log, Partition("out", 0)) == []


def test_output_is_committed_when_partitions_are_revoked(log: KafkaLog) -> None:
    log.create_topic("u", partitions=1)
    log.create_topic("out", partitions=1)
    log.append_all([Append(topic, records([topic]), 0) for topic in ("t", "u")])

    def commit(_: object) -> None:
        first.commit([Append("out", records(["of both"]), 0)])

    first = join_group(log, "g", ["t", "u"], on_revoke=commit)
    poll(first, 2)
    second = join_group(log, "g", ["t", "u"])
    until(second, lambda: first.poll(timeout_s=0) or second.assigned)
    assert values(log, Partition("out", 0)) == [b"of both"]
    # Behind the record, or behind the marker after it too.
    offsets = find_group(log, "g").offsets
    assert offsets.keys() == {PARTITION_0, Partition("u", 0)}
    assert set(offsets.values()) <= {1, 2}
    assert [*first.poll(timeout_s=0.3), *second.poll(timeout_s=0.3)] == []


def test_what_on_revoke_raises_is_raised_by_the_poll(log: KafkaLog) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("cannot let go")

    log.create_topic("u", partitions=1)
    first = join_group(log, "g", ["t", "u"], on_revoke=fails)
    until(first, lambda: len(first.assigned) == 2)
    second = join_group(log, "g", ["t", "u"])
    with pytest.raises(RuntimeError, match="cannot let go"):
        until(first, lambda: False)
    # It let go all the same.
    until(second, lambda: first.poll(timeout_s=0) or second.assigned)
    assert sorted([*first.assigned, *second.assigned]) == [PARTITION_0, Partition("u", 0)]


def test_offsets_that_are_not_decided_are_waited_for(
    log: KafkaLog, begin: Begin, broker: Broker, prefix: str
) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    log.create_topic("u", partitions=1)
    open_one = begin("u", "x")
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": prefix + "g"})
    metadata = reader.consumer_group_metadata()
    open_one.send_offsets_to_transaction([TopicPartition(prefix + "t", 0, 1)], metadata, 10)
    with join_group(log, "g", ["t"]) as member:
        until(member, lambda: member.assigned)
        began = time.monotonic()
        assert member.poll(timeout_s=0.2) == []
        assert time.monotonic() - began < 3
        open_one.commit_transaction(10)
        assert poll(member, 1) == [b"b"]
    reader.close()


# The cluster.


def test_a_session_that_the_cluster_does_not_allow_is_refused(log: KafkaLog) -> None:
    member = join_group(log, "g", ["t"], settings=MemberSettings(session_timeout_ms=10))
    with pytest.raises(UsageError, match=r"session_timeout_ms of 10\. Choose one"):
        until(member, lambda: False)


def test_wrong_credentials_are_told_by_join(make_kafka_log: MakeKafkaLog, broker: Broker) -> None:
    wrong = {
        "bootstrap.servers": broker.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": SASL_USER,
        "sasl.password": "wrong",
    }
    log = make_kafka_log(wrong)
    for call in (
        lambda: join_group(log, "g", ["t"]),
        lambda: list_groups(log),
        lambda: find_group(log, "g"),
    ):
        with pytest.raises(AccessDenied, match=r"sasl\.password"):
            call()
