"""What queues of the embedded log promise beyond the contract: crashes, limits, lost books.

Method: faults are armed in this process and in real ones that are killed; the coordinator's file is
moved away; time passes by writing older times into it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from soaking import seeded, times

from consume.coordinating import coordinator_of
from headrace import faults
from headrace.consume import consume_queue
from headrace.consume.embedded import coordinator, queue_rows
from headrace.consume.queues import QueueSettings
from headrace.errors import DiskFull, PositionLost, UsageError
from headrace.log import EmbeddedLog, Partition, TopicSettings, records
from headrace.testing.log.suite import rows, start_process, values

DEAD = Partition("t.q.dead", 0)
LONG = QueueSettings(max_deliveries=2, lock_ms=600_000)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=1)
    yield log
    faults.disarm()
    log.close()


def pass_time(log: EmbeddedLog) -> None:
    """Let the time of everything that is handed out be over."""
    with coordinator_of(log).step() as connection:
        connection.execute("UPDATE deliveries SET taken_ms = taken_ms - 600000 WHERE taken_ms >= 0")


POINTS = ("queue_before_dead_letter", "queue_after_dead_letter")


@pytest.mark.parametrize("point", POINTS)
def test_a_dead_letter_is_stored_once_whoever_dies(
    log: EmbeddedLog, tmp_path: Path, point: str
) -> None:
    log.append("t", records([str(n) for n in range(6)]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    got = consumer.poll(max_records=6)
    for crash in range(3):
        faults.arm(point)
        with pytest.raises(faults.Crash):
            consumer.reject([got[crash]])
    faults.arm(point)
    other = consume_queue(EmbeddedLog(tmp_path / "log", sync=False), "q", "t", settings=LONG)
    with pytest.raises(faults.Crash):
        other.poll(timeout_s=0)
    assert other.poll(timeout_s=0) == []
    assert values(log, DEAD) == [b"0", b"1", b"2"]
    assert consumer.reject(got[3:]) == []
    letters = rows(log, DEAD)
    assert [letter["value"] for letter in letters] == [str(n).encode() for n in range(6)]
    assert [letter["headers"][1]["value"] for letter in letters] == [
        f"t/0@{n}".encode() for n in range(6)
    ]
    with coordinator_of(log).look() as connection:
        assert connection.execute("SELECT count(*) FROM deliveries").fetchone() == (0,)
        assert connection.execute("SELECT open_records FROM cursors").fetchone() == (0,)


REJECTS = """
import sys
from headrace.consume import consume_queue
from headrace.log import EmbeddedLog
from headrace.consume.queues import QueueSettings
log = EmbeddedLog(sys.argv[1], sync=False)
consumer = consume_queue(log, "q", "t", settings=QueueSettings(max_deliveries=2, lock_ms=600_000))
while got := consumer.poll(max_records=2, timeout_s=0):
    consumer.reject(got)
"""


def test_a_consumer_killed_between_the_steps_of_a_dead_letter(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    log.append("t", records([str(n) for n in range(12)]), partition=0)
    for point in POINTS:
        process = start_process(REJECTS, str(log._path), HEADRACE_FAULT=f"{point}:2")
        process.communicate()
        assert process.returncode == -9
    subprocess.run([sys.executable, "-c", REJECTS, str(log._path)], check=True)
    assert values(log, DEAD) == [str(n).encode() for n in range(12)]


def test_records_in_the_hands_of_the_dead_come_back(log: EmbeddedLog) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    faults.arm("queue_after_take")
    with pytest.raises(faults.Crash):
        consumer.poll()
    assert consumer.poll(timeout_s=0) == []
    pass_time(log)
    assert [each.deliveries for each in consumer.poll()] == [2, 2]
    pass_time(log)
    assert consumer.poll(timeout_s=0) == []
    assert values(log, DEAD) == [b"a", b"b"]


def test_times_from_before_a_reboot_have_passed(log: EmbeddedLog) -> None:
    log.append("t", records(["a"]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    held = consumer.poll()
    with coordinator_of(log).step() as connection:
        connection.execute("UPDATE deliveries SET taken_ms = taken_ms + 10000000")
    assert consumer.acknowledge(held) == held
    assert [each.deliveries for each in consumer.poll()] == [2]


def test_a_queue_without_its_book_begins_anew_and_loses_no_dead_letter(log: EmbeddedLog) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    consumer = consume_queue(log, "q", "t")
    consumer.reject(consumer.poll())
    log.close()
    for file in log._path.glob(f"{coordinator.FILE}*"):
        file.unlink()
    again = EmbeddedLog(log._path, sync=False)
    consumer = consume_queue(again, "q", "t")
    got = consumer.poll()
    assert [each.value for each in got] == [b"a", b"b"]
    consumer.reject(got)
    assert values(again, DEAD) == [b"a", b"b", b"a", b"b"]
    again.close()


def test_records_that_retention_removed_are_said_once(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False, segment_bytes=1)
    log.create_topic("t", partitions=1)
    for value in ("a", "b", "c", "d", "e"):
        log.append("t", records([value]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    held = consumer.poll(max_records=2)
    consumer.release(held[:1])
    log.change_topic("t", settings=TopicSettings(retention_bytes=1))
    log.maintain()
    first = log.extents("t")[Partition("t", 0)].first_offset
    assert first == 4
    with pytest.raises(PositionLost, match=r"1 of t/0 that were .* before, t/0@2 up to 4\. The"):
        consumer.poll()
    got = consumer.poll()
    assert [(each.value, each.deliveries) for each in got] == [(b"e", 1)]
    assert consumer.acknowledge([*held[1:], *got]) == []
    # One that dies after its record is gone is counted, and holds nothing up.
    log.append("t", records(["f"]), partition=0)
    last = consumer.poll()
    for _ in range(2):
        log.append("t", records(["g"]), partition=0)
    log.maintain()
    assert consumer.reject(last) == []
    assert values(log, DEAD) == []
    log.close()


def test_new_partitions_and_new_topics_are_noticed(log: EmbeddedLog) -> None:
    consumer = consume_queue(log, "q", "t", settings=LONG._replace(start="latest"))
    log.change_topic("t", partitions=3)
    log.append("t", records(["a"]), partition=2)
    got = consumer.poll()
    assert [(each.partition.number, each.value) for each in got] == [(2, b"a")]
    consumer.reject(got)
    assert values(log, Partition("t.q.dead", 2)) == [b"a"]
    log.append("t", records(["b", "c"]), partition=0)
    old = consumer.poll()
    log.delete_topic("t")
    log.create_topic("t", partitions=1)
    log.append("t", records(["d"]), partition=0)
    assert [(each.offset, each.value) for each in consumer.poll()] == [(0, b"d")]
    assert consumer.acknowledge(old[1:]) == old[1:]


def test_a_dead_letter_topic_that_was_deleted_is_made_again(log: EmbeddedLog) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    one, two = consumer.poll()
    consumer.reject([one])
    log.delete_topic("t.q.dead")
    consumer.reject([two])
    assert values(log, DEAD) == [b"b"]


def test_a_dead_letter_that_cannot_be_stored_holds_back_new_work(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    (a,) = consumer.poll(max_records=1)

    def refuse(*_: object, **__: object) -> None:
        raise DiskFull("no space left, for the test")

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", refuse)
        for attempt in (lambda: consumer.reject([a]), consumer.poll, consumer.poll):
            with pytest.raises(DiskFull):
                attempt()
    assert [(each.value, each.deliveries) for each in consumer.poll()] == [(b"b", 1)]
    assert values(log, DEAD) == [b"a"]


def test_a_partition_has_so_many_open_records_at_most(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_rows, "MAX_OPEN_RECORDS", 10)
    log.append("t", records([str(n) for n in range(25)]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    got = consumer.poll()
    assert len(got) == 10
    assert consumer.poll(timeout_s=0) == []
    consumer.acknowledge(got[:4])
    assert len(consumer.poll()) == 4
    consumer.release(got[4:6])
    assert [each.deliveries for each in consumer.poll()] == [2, 2]
    assert consumer.poll(timeout_s=0) == []


def test_many_dead_letters_are_appended_in_batches(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_rows, "MAX_DEAD_BATCH_RECORDS", 4)
    log.append("t", records([str(n) for n in range(10)]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    consumer.reject(consumer.poll())
    assert values(log, DEAD) == [str(n).encode() for n in range(10)]
    assert log.last_sequence(DEAD, "queue:q:t") == 3


def test_a_child_process_consumes_for_itself(log: EmbeddedLog) -> None:
    log.append("t", records(["a", "b"]), partition=0)
    consumer = consume_queue(log, "q", "t", settings=LONG)
    held = consumer.poll(max_records=1)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                consumer.acknowledge(held)
            except UsageError as error:
                assert "this is its child" in str(error)  # noqa: PT017 - in the child
                consumer.close()
                own = consume_queue(log, "q", "t", settings=LONG)
                code = own.acknowledge(own.poll()) != []
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert consumer.acknowledge(held) == []
    assert consumer.poll(timeout_s=0) == []


ROUNDS = """
import os, random, signal, sys, time
from headrace.consume import consume_queue
from headrace.log import EmbeddedLog, records
from headrace.consume.queues import QueueSettings
path, rounds = sys.argv[1], int(sys.argv[2])
chance = random.Random(int(sys.argv[3]))
records(["warm"])

def work(own):
    log = EmbeddedLog(path, sync=False)
    consumer = consume_queue(log, "q", "t", settings=QueueSettings(max_deliveries=4, lock_ms=100))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    begun, done = os.open(path + "/../begun", flags), os.open(path + "/../done", flags)
    while True:
        got = consumer.poll(timeout_s=0.05, max_records=own.choice([1, 5, 40]))
        bad = [each for each in got if each.value.endswith(b"7")]
        consumer.reject(bad)
        good = [each for each in got if each not in bad]
        os.write(begun, b"".join(each.value + b"\\n" for each in good))
        late = consumer.acknowledge(good)
        os.write(done, b"".join(each.value + b"\\n" for each in good if each not in late))

for round in range(rounds):
    children = []
    for child in range(3):
        own = random.Random(chance.random())
        pid = os.fork()
        if pid == 0:
            work(own)
        children.append(pid)
    time.sleep(chance.uniform(0.05, 0.3))
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "a child ended by itself"
"""


@pytest.mark.soak
def test_rounds_of_killed_consumers_lose_nothing_and_no_dead_letter_is_stored_twice(
    tmp_path: Path,
) -> None:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=3)
    keys = [str(n) for n in range(times(6_000))]
    log.append("t", records(keys, keys=keys))
    arguments = [tmp_path / "log", times(8), seeded(5).randrange(2**32)]
    subprocess.run([sys.executable, "-c", ROUNDS, *map(str, arguments)], check=True)
    settings = QueueSettings(max_deliveries=4, lock_ms=100)
    consumer = consume_queue(log, "q", "t", settings=settings)
    rest: list[bytes] = []
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.4:
        if got := consumer.poll(timeout_s=0.1):
            late = consumer.acknowledge(got)
            rest += [each.value or b"" for each in got if each not in late]
            quiet_since = time.monotonic()
    dead = [value or b"" for place in log.extents("t.q.dead") for value in values(log, place)]
    done = (tmp_path / "done").read_bytes().split()
    assert len(done) > 100
    assert len(dead) > 10
    assert len(set(dead)) == len(dead)
    assert len(set(done)) == len(done)
    said = [*done, *dead, *rest]
    assert len(set(said)) == len(said)
    # What was acknowledged just before a kill was done, but nobody could write that down.
    begun = set((tmp_path / "begun").read_bytes().split())
    assert {key.encode() for key in keys} - set(said) <= begun
    with coordinator_of(log).look() as connection:
        assert connection.execute("SELECT count(*) FROM deliveries").fetchone() == (0,)
        assert connection.execute("SELECT sum(open_records) FROM cursors").fetchone() == (0,)
    log.close()
