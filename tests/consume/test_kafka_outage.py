"""Members and queue consumers outlive a broker that goes away: one error, in time, then they go on.

Method: the broker is stopped and started once, with readers in every state.
"""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from broker import Broker

from headrace.consume import Delivery, consume_queue, find_group, join_group
from headrace.consume.member import Member
from headrace.errors import Unreachable
from headrace.log import KafkaLog, Partition, records

from .conftest import MakeKafkaLog

QUICK = {"heartbeat.interval.ms": "100"}


def poll(member: Member, count: int, **options: int) -> list[bytes]:
    """Poll until there are so many values."""
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, f"waited in vain; polled {found}"
        for _, batch in member.poll(timeout_s=0.1, **options):
            found += batch.column("value").to_pylist()
    return found


def forever(poll: Callable[..., object]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        poll(timeout_s=0.1)


@pytest.fixture
def log(make_kafka_log: MakeKafkaLog) -> KafkaLog:
    log = make_kafka_log(QUICK, timeout_s=1)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a", "b", "c"]), partition=0)
    return log


def test_readers_outlive_the_broker(log: KafkaLog, broker: Broker) -> None:
    member, other, idle = (join_group(log, group, ["t"]) for group in ("g", "other", "idle"))
    assert poll(member, 1, max_records=1) == [b"a"]
    member.commit()
    assert poll(member, 1, max_records=1) == [b"b"]
    for each in (other, idle):
        poll(each, 3)
    consumer, leaves = consume_queue(log, "q", "t"), consume_queue(log, "q", "t")
    held: list[Delivery] = []
    while not held:
        held = consumer.poll(max_records=1)
    broker.stop()
    try:
        calls: dict[str, Callable[[], object]] = {
            "a commit": member.commit,
            "a poll after a commit without an answer": lambda: forever(member.poll),
            "another commit": other.commit,
            "a poll of one that has read everything": lambda: forever(idle.poll),
            "a poll of a queue": lambda: forever(consumer.poll),
            "who leaves a queue": leaves.close,
        }
        for name, call in calls.items():
            began = time.monotonic()
            with pytest.raises(Unreachable, match=r"bootstrap\.servers"):
                call()
            assert time.monotonic() - began < 5, name
        began = time.monotonic()
        other.close()
        assert time.monotonic() - began < 3
    finally:
        broker.start()
    found: list[bytes] = []
    while b"c" not in found:
        with suppress(Unreachable):
            found += poll(member, 1)
    # What was not answered was stored by then, or not.
    assert found in ([b"b", b"c"], [b"c"])
    member.commit()
    assert find_group(log, "g").offsets == {Partition("t", 0): 3}
    assert consumer.acknowledge(held) == []
    assert [each.value for each in consumer.poll(timeout_s=10)] == [b"b", b"c"]
