"""Queues on Kafka, where the contract does not look: deaths, the book, markers, what is gone.

Method: a real broker, and processes that are killed at fault points.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from broker import Broker
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.consume import Delivery, QueueSettings, consume_queue
from headrace.consume.kafka import queue_entries
from headrace.consume.queue_consumer import QueueConsumer
from headrace.errors import InvalidTopic, LogError, PositionLost, Unreachable
from headrace.log import Append, KafkaLog, Partition, records
from headrace.testing.log.suite import rows, values

from .conftest import MakeKafkaLog

PARTITION_0 = Partition("t", 0)
LOCK_MS = 1_000

# Gives back what it gets, and so makes a dead letter of it; dies where it is told to.
GIVES_BACK = """
import sys
from headrace.consume import consume_queue
from headrace.consume import QueueSettings
from headrace.log import KafkaLog
log = KafkaLog({"bootstrap.servers": sys.argv[1]}, prefix=sys.argv[2])
settings = QueueSettings(max_deliveries=1, lock_ms=int(sys.argv[3]))
consumer = consume_queue(log, "q", "t", settings=settings)
while True:
    consumer.release(consumer.poll(max_records=2))
"""


@pytest.fixture
def log(make_kafka_log: MakeKafkaLog) -> KafkaLog:
    log = make_kafka_log()
    log.create_topic("t", partitions=1)
    return log


def until(look: Callable[[], Any], patience_s: float = 20) -> Any:
    deadline = time.monotonic() + patience_s
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
    return found


def take(consumer: QueueConsumer, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    until(
        lambda: (
            len(found) >= count
            or found.extend(consumer.poll(timeout_s=0.1, max_records=count - len(found)))
        )
    )
    return found


@pytest.mark.parametrize(
    ("point", "in_work"),
    [("queue_after_take", 0), ("queue_before_dead_letter", 0), ("queue_after_dead_letter", 2)],
)
def test_who_dies_loses_nothing_and_a_dead_letter_is_stored_once(
    log: KafkaLog, broker: Broker, prefix: str, point: str, in_work: int
) -> None:
    log.append("t", records(["a", "b", "c", "d"]), partition=0)
    died = subprocess.run(
        [sys.executable, "-c", GIVES_BACK, broker.bootstrap, prefix, str(LOCK_MS)],
        env={**os.environ, "HEADRACE_FAULT": point},
        timeout=60,
        check=False,
    )
    assert died.returncode == -9
    assert len(values(log, Partition("t.q.dead", 0))) == in_work
    settings = QueueSettings(max_deliveries=1, lock_ms=LOCK_MS)
    with consume_queue(log, "q", "t", settings=settings) as consumer:
        rest = take(consumer, 2)
        assert [each.value for each in rest] == [b"c", b"d"]
        assert consumer.acknowledge(rest) == []
        # What the dead one had taken is dead, too: it was handed out as often as it may be.
        until(lambda: consumer.poll(timeout_s=0.1) or len(rows(log, Partition("t.q.dead", 0))) >= 2)
        assert consumer.poll(timeout_s=0.3) == []
    letters = rows(log, Partition("t.q.dead", 0))
    assert [letter["value"] for letter in letters] == [b"a", b"b"]
    assert letters[0]["headers"][0]["value"] == b"delivered 1 time"


def test_the_book_is_cut_and_who_fell_behind_goes_on(
    log: KafkaLog, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_entries, "SNAPSHOT_ENTRIES", 10)
    log.append("t", records([str(n) for n in range(40)]), partition=0)
    # Nothing is fetched ahead, so that the one that waits really finds the entries gone.
    slow, quick = consume_queue(log, "q", "t"), consume_queue(log, "q", "t")
    (first,) = slow.poll(timeout_s=5, max_records=1)
    slow._book.entries._consumer.pause(
        [TopicPartition(prefix + slow._book.entries._place.topic, 0)]
    )
    for _ in range(12):
        quick.acknowledge(quick.poll(max_records=2))
    slow._book.entries._consumer.resume(
        [TopicPartition(prefix + slow._book.entries._place.topic, 0)]
    )
    book = slow._book.entries._place
    begins = log._offsets.extents([book])[book].first_offset
    assert begins > 10
    # Its word about what it holds still counts, and new ones read a short book.
    assert slow.acknowledge([first]) == []
    third = consume_queue(log, "q", "t")
    assert third._book.entries.state.to_json() == quick_state(slow)
    got = [value for each in (slow, quick, third) for value in drain(each)]
    assert sorted(map(int, got)) == list(range(25, 40))


def test_of_two_snapshots_the_one_of_the_later_state_counts(log: KafkaLog) -> None:
    log.append("t", records(["a", "b", "c"]), partition=0)
    consumer = consume_queue(log, "q", "t")
    book = consumer._book.entries
    older = {"v": 1, "by": "x", "do": "snapshot", "at": book._position - 1}
    older["state"] = book.state.to_json()
    consumer.acknowledge(take(consumer, 1))
    held = take(consumer, 1)
    book._write_snapshot()
    book._append(older)  # by one that was slow; what follows that state is gone
    other = consume_queue(log, "q", "t")
    assert other._book.entries.state.cursors == {0: 2}
    assert [each.value for each in take(other, 1)] == [b"c"]
    assert consumer.acknowledge(held) == []


def test_a_book_without_its_first_entries_is_an_error_that_says_what_to_do(
    log: KafkaLog, broker: Broker, prefix: str
) -> None:
    consumer = consume_queue(log, "q", "t")
    consumer._book.entries.write("show")
    gone = TopicPartition(prefix + consumer._book.entries._place.topic, 0, 1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([gone])[gone].result(10)
    with pytest.raises(LogError, match="does not say what was before its first entry"):
        consume_queue(log, "q", "t")


def quick_state(consumer: QueueConsumer) -> dict[str, Any]:
    until(
        lambda: (
            consumer._book.entries.catch_up() or len(consumer._book.entries.state.consumers) == 3
        )
    )
    return consumer._book.entries.state.to_json()


def drain(consumer: QueueConsumer) -> list[bytes]:
    got = consumer.poll(timeout_s=1, max_records=5)
    assert consumer.acknowledge(got) == []
    return [each.value or b"" for each in got]


def test_markers_and_aborted_records_are_not_handed_out(
    log: KafkaLog, begin: Callable[..., KafkaProducer]
) -> None:
    log.create_topic("u", partitions=1)
    log.append_all([Append(topic, records(["a"]), 0) for topic in ("t", "u")])
    aborted = begin("t", "never", "never")
    aborted.abort_transaction(10)
    log.append("t", records(["b"]), partition=0)
    consumer = consume_queue(log, "q", "t")
    got = take(consumer, 2)
    assert [each.value for each in got] == [b"a", b"b"]
    assert {each.deliveries for each in got} == {1}
    assert consumer.acknowledge(got) == []
    assert consumer._book.entries.state.to_json()["open"] == []


def test_what_retention_removed_is_told_once_and_the_queue_goes_on(
    log: KafkaLog, broker: Broker, prefix: str
) -> None:
    log.append("t", records(["a", "b", "c", "d"]), partition=0)
    consumer = consume_queue(log, "q", "t")
    consumer.release(consumer.poll(timeout_s=5, max_records=1))
    gone = TopicPartition(prefix + "t", 0, 3)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([gone])[gone].result(10)
    with pytest.raises(PositionLost, match=r"1 of t/0 that were handed out before, t/0@1 up to 3"):
        until(lambda: consumer.poll(timeout_s=0.1))
    assert [each.value for each in take(consumer, 1)] == [b"d"]


def test_a_topic_made_anew_has_a_new_queue(log: KafkaLog) -> None:
    log.append("t", records(["old 1", "old 2"]), partition=0)
    consumer = consume_queue(log, "q", "t")
    consumer.acknowledge(take(consumer, 1))
    log.delete_topic("t")
    log.create_topic("t", partitions=2)
    log.append("t", records(["new"]), partition=1)
    assert [each.value for each in take(consumer, 1)] == [b"new"]


def test_books_are_the_logs_own(log: KafkaLog, make_kafka_log: MakeKafkaLog, prefix: str) -> None:
    consume_queue(log, "q", "t")
    assert [topic.name for topic in log.topics()] == ["t", "t.q.dead"]
    everything = {topic.name for topic in make_kafka_log(prefix="").topics()}
    assert not {name for name in everything if name.startswith(prefix + "headrace.")}
    with pytest.raises(InvalidTopic, match="queues"):
        log.create_topic("headrace.queue.mine")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"not JSON", "not an entry"),
        (b"[]", "not an entry"),
        (b'{"v":9,"by":"x","do":"y"}', "newer"),
    ],
)
def test_what_is_not_an_entry_is_an_error_that_names_its_place(
    log: KafkaLog, broker: Broker, prefix: str, value: bytes, why: str
) -> None:
    consumer = consume_queue(log, "q", "t")
    book = consumer._book.entries._place.topic
    foreign = KafkaProducer({"bootstrap.servers": broker.bootstrap})
    foreign.produce(prefix + book, value=value, partition=0)
    assert foreign.flush(10) == 0
    with pytest.raises(LogError, match=f"{book}/0@1: .*{why}.*Kafka's tools"):
        until(lambda: consumer.poll(timeout_s=0.1))


def test_a_book_is_read_on_after_its_client_got_no_answer(make_kafka_log: MakeKafkaLog) -> None:
    log = make_kafka_log(timeout_s=2)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    with consume_queue(log, "q", "t", settings=QueueSettings(lock_ms=LOCK_MS)) as consumer:
        deaf = consumer._book.entries._consumer
        deaf.unassign()  # as one that forgot its brokers, it never gets anything again
        with pytest.raises(Unreachable):
            consumer.poll(timeout_s=0.1)
        assert consumer._book.entries._consumer is not deaf
        (found,) = take(consumer, 1)
        assert found.value == b"a"
