"""The log's contract: consumers of a queue compete for records, one by one.

Method: consumers poll in turn until what must happen has happened or the patience is over; real
processes die with records in their hands. The answers are worked out by hand.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.consume import consume_queue, list_groups
from headrace.consume.queue_consumer import QueueConsumer
from headrace.consume.queues import DEAD_HEADERS, Delivery, QueueSettings
from headrace.errors import LogError, TopicNotFound, UsageError
from headrace.log.base import Log, Partition
from headrace.log.records import records
from headrace.testing.log.suite import LogSuite, rows, start_process, values

__all__ = ["QueueTests"]

Consume = Callable[..., QueueConsumer]

HOLDS_AND_WAITS = """
import sys, time
from headrace.consume import consume_queue
from headrace.consume.queues import QueueSettings
{make_log}
consumer = consume_queue(log, "q", "t", settings=QueueSettings(lock_ms={lock_ms}))
while not (held := consumer.poll(max_records=3)):
    pass
print(*(delivery.offset for delivery in held), flush=True)
time.sleep(600)
"""


class QueueTests(LogSuite):
    """Queues."""

    @pytest.fixture
    def consume(self, log: Log) -> Iterator[Consume]:
        """Consume queues; consumers that the test leaves open are closed after it."""
        opened: list[QueueConsumer] = []

        def consume(queue: str, topic: str = "t", **settings: Any) -> QueueConsumer:
            consumer = consume_queue(log, queue, topic, settings=QueueSettings(**settings))
            opened.append(consumer)
            return consumer

        yield consume
        for consumer in opened:
            with suppress(LogError):
                consumer.close()

    def take(self, consumer: QueueConsumer, count: int, *, at_once: int = 100) -> list[Delivery]:
        """Poll until so many deliveries are there; fails when the patience is over."""
        deadline = time.monotonic() + self.patience_s
        found: list[Delivery] = []
        while len(found) < count:
            assert time.monotonic() < deadline, f"waited in vain; polled {found}"
            found += consumer.poll(timeout_s=0.1, max_records=min(at_once, count - len(found)))
        return found

    def dead(self, log: Log, topic: str, count: int) -> list[Any]:
        """Return the records of a dead-letter topic once there are so many."""
        deadline = time.monotonic() + self.patience_s
        while True:
            found = [row for place in log.extents(topic) for row in rows(log, place)]
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, f"waited in vain; dead are {found}"
            time.sleep(0.05)

    def idle(self, consumer: QueueConsumer) -> bool:
        return not consumer.poll(timeout_s=0.2)

    def test_more_consumers_than_partitions_all_get_work(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=2)
        for number in (0, 1):
            log.append("t", records([f"{number}-{n}" for n in range(50)]), partition=number)
        consumers = [consume("q") for _ in range(5)]
        held = [self.take(consumer, 20, at_once=5) for consumer in consumers]
        got = [delivery for each in held for delivery in each]
        # All are still held, so none was handed to two.
        assert len({(each.partition, each.offset) for each in got}) == 100
        assert len({each.value for each in got}) == 100
        assert {each.deliveries for each in got} == {1}
        for consumer, own in zip(consumers, held, strict=True):
            assert consumer.acknowledge(own) == []
        assert all(self.idle(consumer) for consumer in consumers)

    def test_a_delivery_is_the_whole_record(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=2)
        headers = [[("n", b"1"), ("n", None)], None]
        log.append("t", records([b"\xff", None], keys=[b"k", None], headers=headers), partition=1)
        place = Partition("t", 1)
        stored = rows(log, place)
        one, two = sorted(self.take(consume("q"), 2), key=lambda each: each.offset)
        assert one == Delivery(
            place, stored[0]["offset"], stored[0]["arrival"], b"k", b"\xff",
            [("n", b"1"), ("n", None)], 1,
        )  # fmt: skip
        assert (two.key, two.value, two.headers) == (None, None, [])

    def test_what_is_acknowledged_is_done_and_what_is_released_comes_again(
        self, log: Log, consume: Consume, path: Path
    ) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b", "c", "d"]), partition=0)
        first, second = consume("q"), consume("q")
        a, b, c, d = self.take(first, 4)
        assert first.acknowledge([a, c]) == []
        assert first.release([b, d]) == []
        again = sorted(self.take(second, 2), key=lambda each: each.offset)
        assert [(each.value, each.deliveries) for each in again] == [(b"b", 2), (b"d", 2)]
        assert second.acknowledge(again) == []
        for consumer in (first, second):
            assert self.idle(consumer)
            consumer.close()
        # Also for who comes later, with a log of its own.
        other = self.make_log(path)
        late: QueueConsumer = consume_queue(other, "q", "t")
        assert self.idle(late)
        log.append("t", records(["e"]), partition=0)
        assert [each.value for each in self.take(late, 1)] == [b"e"]
        late.close()
        other.close()

    def test_a_record_is_handed_out_again_when_its_time_has_passed(
        self, log: Log, consume: Consume
    ) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"]), partition=0)
        first, second = consume("q", lock_ms=self.lock_ms), consume("q", lock_ms=self.lock_ms)
        a, b = self.take(first, 2)
        taken = time.monotonic()
        assert first.acknowledge([a]) == []
        (again,) = self.take(second, 1)
        assert time.monotonic() - taken > 0.5 * self.lock_ms / 1000
        assert (again.value, again.deliveries) == (b.value, 2)
        # Too late: it is another's now. That one's word counts.
        assert first.acknowledge([b]) == [b]
        assert first.release([b]) == [b]
        assert first.reject([b]) == [b]
        assert second.acknowledge([again]) == []
        assert self.idle(first)
        assert all(not values(log, place) for place in log.extents("t.q.dead"))

    def test_what_is_said_twice_is_late_the_second_time(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"]), partition=0)
        consumer = consume("q")
        a, b = self.take(consumer, 2)
        assert consumer.acknowledge([a]) == []
        assert consumer.acknowledge([a, b]) == [a]
        assert consumer.acknowledge([]) == []
        assert consumer.release([b]) == [b]
        assert self.idle(consumer)

    def test_what_a_killed_consumer_held_is_handed_out_again(
        self, log: Log, path: Path, consume: Consume
    ) -> None:
        self.need("processes")
        log.create_topic("t", partitions=1)
        log.append("t", records([str(n) for n in range(5)]), partition=0)
        code = HOLDS_AND_WAITS.format(make_log=self.make_log_code(path), lock_ms=self.lock_ms)
        with start_process(code) as process:
            assert process.stdout is not None
            held = {int(offset) for offset in process.stdout.readline().split()}
            process.kill()
            process.wait()
        assert held
        got = self.take(consume("q", lock_ms=self.lock_ms), 5)
        assert sorted(int(each.value or b"") for each in got) == list(range(5))
        assert {each.offset for each in got if each.deliveries == 2} == held

    def test_who_closes_gives_back_at_once(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"]), partition=0)
        first = consume("q")
        a, _ = self.take(first, 2)
        first.acknowledge([a])
        first.close()
        first.close()  # again does no harm
        (again,) = self.take(consume("q"), 1)
        assert (again.value, again.deliveries) == (b"b", 2)
        with pytest.raises(UsageError, match="closed"):
            first.poll()

    def test_a_record_that_is_handed_out_too_often_is_a_dead_letter(
        self, log: Log, consume: Consume
    ) -> None:
        log.create_topic("t", partitions=2)
        headers = [[("own", b"1")]]
        log.append("t", records(["poison"], keys=["k"], headers=headers), partition=1)
        consumer = consume("q", max_deliveries=3)
        counts = []
        for _ in range(3):
            (delivery,) = self.take(consumer, 1)
            counts.append(delivery.deliveries)
            consumer.release([delivery])
        assert counts == [1, 2, 3]
        (letter,) = self.dead(log, "t.q.dead", 1)
        assert (letter["key"], letter["value"]) == (b"k", b"poison")
        said = {header["name"]: header["value"] for header in letter["headers"]}
        source = f"t/1@{delivery.offset}".encode()
        assert said == {
            "own": b"1",
            **dict(zip(DEAD_HEADERS, (b"delivered 3 times", source, b"3"), strict=True)),
        }
        assert letter["headers"][0]["name"] == "own"
        assert self.idle(consumer)
        assert len(self.dead(log, "t.q.dead", 1)) == 1

    def test_a_record_whose_time_passes_too_often_is_a_dead_letter(
        self, log: Log, consume: Consume
    ) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["poison"]), partition=0)
        consumer = consume("q", max_deliveries=2, lock_ms=self.lock_ms, dead_letters="letters")
        assert [self.take(consumer, 1)[0].deliveries for _ in range(2)] == [1, 2]
        deadline = time.monotonic() + self.patience_s
        while not any(values(log, place) for place in log.extents("letters")):
            assert time.monotonic() < deadline
            assert consumer.poll(timeout_s=0.1) == []
        (letter,) = self.dead(log, "letters", 1)
        assert letter["value"] == b"poison"
        assert letter["headers"][0]["value"] == b"delivered 2 times"

    def test_a_rejected_record_is_a_dead_letter_at_once(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=3)
        for number in range(3):
            log.append("t", records([f"{number}-{n}" for n in range(10)]), partition=number)
        consumer = consume("q")
        got = self.take(consumer, 30)
        bad = [each for each in got if (each.value or b"").endswith(b"7")]
        assert consumer.reject(bad) == []
        assert consumer.reject(bad) == bad
        assert consumer.acknowledge(each for each in got if each not in bad) == []
        letters = self.dead(log, "t.q.dead", 3)
        assert sorted(letter["value"] for letter in letters) == [b"0-7", b"1-7", b"2-7"]
        assert {letter["headers"][0]["value"] for letter in letters} == {b"rejected"}
        assert {letter["headers"][2]["value"] for letter in letters} == {b"1"}
        assert self.idle(consumer)

    def test_queues_groups_and_readers_do_not_disturb_each_other(
        self, log: Log, consume: Consume
    ) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b", "c"]), partition=0)
        one, two = consume("one"), consume("two")
        got = self.take(one, 3)
        one.acknowledge(got[:1])
        one.reject(got[1:])
        assert [each.value for each in self.take(two, 3)] == [b"a", b"b", b"c"]
        assert values(log, Partition("t", 0)) == [b"a", b"b", b"c"]
        assert not any(values(log, place) for place in log.extents("t.two.dead"))
        assert list_groups(log) == []

    def test_a_queue_begins_where_it_is_told(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["before"]), partition=0)
        late = consume("late", start="latest")
        assert self.idle(late)
        log.append("t", records(["after"]), partition=0)
        assert [each.value for each in self.take(late, 1)] == [b"after"]
        assert [each.value for each in self.take(consume("all"), 2)] == [b"before", b"after"]

    def test_all_consumers_use_the_same_settings(self, log: Log, consume: Consume) -> None:
        self.need("queue_settings")
        log.create_topic("t", partitions=1)
        first = consume("q", max_deliveries=3)
        with pytest.raises(UsageError, match="max_deliveries is 3 there and 4 here"):
            consume("q", max_deliveries=4)
        consume("other", max_deliveries=4)
        first.close()
        consume("q", max_deliveries=4)

    def test_threads_compete_and_each_record_is_done_once(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=3)
        for number in range(3):
            log.append("t", records([f"{number}-{n}" for n in range(100)]), partition=number)
        done: list[bytes | None] = []
        late: list[Delivery] = []
        logs = [log, self.make_log(path)]
        deadline = time.monotonic() + self.patience_s

        def work(number: int) -> None:
            consumer: QueueConsumer = consume_queue(logs[number % 2], "q", "t")
            while len(done) < 300 and time.monotonic() < deadline:
                got = consumer.poll(timeout_s=0.1, max_records=7)
                # One of them gives back what it gets for the first time.
                given_back = [each for each in got if number == 0 and each.deliveries == 1]
                kept = [each for each in got if each not in given_back]
                late.extend(consumer.release(given_back) + consumer.acknowledge(kept))
                done.extend(each.value for each in kept)
            consumer.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert late == []
        assert sorted(filter(None, done)) == sorted(
            f"{number}-{n}".encode() for number in range(3) for n in range(100)
        )
        logs[1].close()

    def test_wrong_ways_to_consume_are_refused(self, log: Log, consume: Consume) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(TopicNotFound, match="missing"):
            consume("q", "missing")
        for queue in ("", "a b", "ü", "a/b", "x" * 250, "x" * 244):
            with pytest.raises(UsageError, match="cannot be"):
                consume(queue)
        for wrong in (
            {"max_deliveries": 0},
            {"lock_ms": -1},
            {"start": "middle"},
            {"dead_letters": "a b"},
            {"dead_letters": "t"},
        ):
            with pytest.raises(UsageError, match="queue q"):
                consume("q", **wrong)
        consumer = consume("q")
        for wrong in ({"timeout_s": -1}, {"max_records": 0}):
            with pytest.raises(UsageError, match="at least"):
                consumer.poll(**wrong)
        log.create_topic("u", partitions=1)
        log.append("u", records(["x"]), partition=0)
        foreign = self.take(consume("q", "u"), 1)
        with pytest.raises(UsageError, match="another queue"):
            consumer.acknowledge(foreign)
