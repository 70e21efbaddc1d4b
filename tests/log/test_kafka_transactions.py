"""The transactions of the log on Kafka, and those of others beside it.

Method: a real broker. What other programs do on the cluster, such as transactions left open or
aborted, is done with confluent-kafka itself, beside the log that must withstand it.
"""

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from broker import Broker
from confluent_kafka import KafkaException
from confluent_kafka import Producer as RawProducer

from headrace import faults
from headrace.errors import LogError, PositionLost, ProducerFenced, UsageError
from headrace.log import (
    Append,
    Appended,
    Extent,
    KafkaLog,
    Partition,
    Producer,
    Range,
    records,
)
from headrace.log.kafka import offsets, pool, transactions
from headrace.log.kafka.pool import end_client
from headrace.log.kafka.sequences import Claim
from headrace.testing.log.contract import rows, values

from .conftest import Begin, MakeKafkaLog

PARTITION_0 = Partition("t", 0)
AT_ONCE_S = 12


def append(log: KafkaLog, values: list[str], producer: Producer | None = None) -> Appended:
    return log.append("t", records(values), partition=0, producer=producer)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Later(threading.Thread):
    """An append that has to wait for others."""

    def __init__(self, log: KafkaLog, value: str, producer: Producer | None = None) -> None:
        super().__init__()
        self.call = lambda: append(log, [value], producer)
        self.answers: list[Appended] = []
        self.start()
        self.join(0.7)
        assert self.is_alive(), "it did not wait"

    def run(self) -> None:
        self.answers.append(self.call())

    def answer(self) -> Appended:
        self.join(20)
        (answer,) = self.answers
        return answer


def entry(log: KafkaLog, producer: Producer, transaction: str = "x") -> tuple[bytes, bytes]:
    claim = Claim(PARTITION_0, log._topics.find("t").id, producer)
    return claim.key, claim.value(transaction)


# What readers see.


def test_markers_take_offsets_and_are_never_seen(kafka_log: KafkaLog) -> None:
    for sequence in (1, 2):
        append(kafka_log, ["a", "b"], Producer("p", 1, sequence))
        append(kafka_log, ["c"])
    assert [row["offset"] for row in rows(kafka_log, PARTITION_0)] == [0, 1, 3, 4, 5, 7]
    assert kafka_log.extents("t")[PARTITION_0] == Extent(0, 8)
    append(kafka_log, ["d"], Producer("p", 1, 3))
    began = time.monotonic()
    assert list(kafka_log.read(Range(PARTITION_0, 9, 10))) == []  # a marker alone, at the end
    assert time.monotonic() - began < 5


def test_records_of_an_aborted_transaction_are_never_seen(
    kafka_log: KafkaLog, begin: Begin
) -> None:
    append(kafka_log, ["a"])
    begin("t", "never", "ever").abort_transaction(10)
    append(kafka_log, ["b"])
    begin("t", "again").abort_transaction(10)
    wait_for(lambda: kafka_log.extents("t")[PARTITION_0] == Extent(0, 7))
    assert values(kafka_log, PARTITION_0) == [b"a", b"b"]
    (split,) = kafka_log.splits(Range(PARTITION_0, 0, 7), max_records=100)
    assert pa.Table.from_batches(split.read())["value"].to_pylist() == [b"a", b"b"]


def test_an_append_behind_an_open_transaction_returns_when_it_is_seen(
    kafka_log: KafkaLog, begin: Begin
) -> None:
    append(kafka_log, ["a"])
    opened = begin("t", "open")
    later = Later(kafka_log, "behind it")
    assert kafka_log.extents("t")[PARTITION_0] == Extent(0, 1)
    assert values(kafka_log, PARTITION_0) == [b"a"]
    with pytest.raises(PositionLost, match="t/0@1: no record to read up to 2"):
        kafka_log.read(Range(PARTITION_0, 0, 2))
    opened.commit_transaction(10)
    assert later.answer() == Appended([Range(PARTITION_0, 2, 3)])
    assert values(kafka_log, PARTITION_0) == [b"a", b"open", b"behind it"]


def test_patience_with_an_open_transaction_has_an_end(
    kafka_log: KafkaLog, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "PATIENCE_S", 0.5)
    opened = begin("t", "open")
    with pytest.raises(LogError, match=r"t/0@0: an open transaction .* is stored, up to 2"):
        append(kafka_log, ["behind it"])
    opened.abort_transaction(10)
    wait_for(lambda: values(kafka_log, PARTITION_0) == [b"behind it"])


# Producers.


def test_an_open_transaction_of_another_producer_holds_nobody_up(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog, begin: Begin
) -> None:
    append(kafka_log, ["a"], Producer("p", 1, 1))
    key, value = entry(kafka_log, Producer("q", 1, 1))
    opened = begin("headrace.producers", value.decode(), key=key)
    other = make_kafka_log()
    for log, sequence in ((kafka_log, 2), (kafka_log, 3)):
        append(log, [str(sequence)], Producer("p", 1, sequence))
        assert log.last_sequence(PARTITION_0, "p") == sequence
    assert append(kafka_log, ["2"], Producer("p", 1, 2)).duplicate
    # What p wrote after it is not shown to others yet, so they wait rather than store it twice.
    later = Later(other, "3", Producer("p", 1, 3))
    opened.abort_transaction(10)
    assert later.answer() == Appended([], duplicate=True)
    assert values(other, PARTITION_0) == [b"a", b"2", b"3"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_rival_of_the_same_epoch_goes_first(
    kafka_log: KafkaLog, begin: Begin, commits: bool
) -> None:
    append(kafka_log, ["1"], Producer("p", 1, 1))
    key, value = entry(kafka_log, Producer("p", 1, 2))
    opened = begin("headrace.producers", value.decode(), key=key)
    later = Later(kafka_log, "2", Producer("p", 1, 2))
    if commits:
        opened.commit_transaction(10)
    else:
        opened.abort_transaction(10)
    assert later.answer().duplicate == commits
    assert kafka_log.last_sequence(PARTITION_0, "p") == 2


def test_a_rival_of_an_older_epoch_is_ended_at_once(
    kafka_log: KafkaLog, begin: Begin, prefix: str
) -> None:
    append(kafka_log, ["1"], Producer("p", 1, 1))
    key, value = entry(kafka_log, Producer("p", 1, 2), prefix + "zombie")
    zombie = begin("headrace.producers", value.decode(), key=key, transactional_id="zombie")
    began = time.monotonic()
    assert not append(kafka_log, ["2"], Producer("p", 2, 2)).duplicate
    assert time.monotonic() - began < AT_ONCE_S
    with pytest.raises(KafkaException, match=r"fenced|epoch"):
        zombie.commit_transaction(10)


def test_a_producer_that_was_replaced_on_the_way_is_told(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog
) -> None:
    newer = make_kafka_log()
    append(kafka_log, ["1"], Producer("p", 1, 1))
    faults.arm("log_before_decision", lambda: append(newer, ["2"], Producer("p", 2, 2)))
    with pytest.raises(ProducerFenced, match="t/0: producer 'p' of epoch 1 was replaced"):
        append(kafka_log, ["zombie"], Producer("p", 1, 2))
    assert values(kafka_log, PARTITION_0) == [b"1", b"2"]
    for log in (kafka_log, make_kafka_log()):
        with pytest.raises(ProducerFenced, match="replaced by one of epoch 2"):
            append(log, ["zombie"], Producer("p", 1, 3))
    append(newer, ["3"], Producer("p", 2, 3))  # nobody who was refused has harmed it
    append(kafka_log, ["4"], Producer("p", 2, 4))
    assert values(kafka_log, PARTITION_0) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("producer", [None, Producer("q", 1, 1)])
def test_an_append_that_lost_its_client_for_another_one_begins_again(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog, producer: Producer | None
) -> None:
    append(kafka_log, ["1"], Producer("p", 1, 1))
    (idle,) = kafka_log._transactions._clients._idle
    # As if a newer epoch of p had taken it for the one that appends now.
    end_client(kafka_log._transactions._begun(idle.client.transactional_id, 15))
    kafka_log.append_all([Append("t", records(["2"]), 0, producer)])
    assert values(kafka_log, PARTITION_0) == [b"1", b"2"]


def test_what_others_write_while_an_append_commits_is_not_passed_over(
    kafka_log: KafkaLog, begin: Begin
) -> None:
    append(kafka_log, ["1"], Producer("p", 1, 1))

    def meanwhile() -> None:
        opened = []
        for id in ("q", "r"):
            key, value = entry(kafka_log, Producer(id, 1, 1))
            foreign = begin("headrace.producers", value.decode(), key=key, transactional_id=id)
            opened.append(foreign)
        opened[0].commit_transaction(10)
        kept.append(opened[1])

    kept: list[RawProducer] = []
    # Its entry, q's, r's, then the markers of q and of it: for readers the topic ends before r's.
    faults.arm("log_before_decision", meanwhile)
    append(kafka_log, ["2"], Producer("p", 1, 2))
    assert append(kafka_log, ["x"], Producer("q", 1, 1)).duplicate
    kept[0].abort_transaction(10)


def test_of_logs_that_use_the_same_producers_at_once_each_batch_is_stored_once(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog
) -> None:
    kafka_log.create_topic("u", partitions=1)
    stored: list[tuple[int, int]] = []

    def run(thread: int, log: KafkaLog) -> None:
        for sequence in range(1, 9):
            appends = [
                Append(topic, records([f"{sequence}"]), 0, Producer(id, 1, sequence))
                for topic, id in (("t", "p"), ("u", "q"))
            ]
            try:
                log.append_all(appends if thread % 2 else appends[::-1])
            except UsageError:  # another was faster
                continue
            stored.append((sequence, thread))

    logs = [kafka_log, kafka_log, make_kafka_log(), make_kafka_log()]
    threads = [threading.Thread(target=run, args=each) for each in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sequence for sequence, _ in stored) == list(range(1, 9))
    expected = [str(sequence).encode() for sequence in range(1, 9)]
    assert values(kafka_log, PARTITION_0) == values(kafka_log, Partition("u", 0)) == expected


def test_the_sequences_of_a_producer_go_on_in_a_log_opened_anew(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog
) -> None:
    for sequence in range(1, 6):
        append(kafka_log, [str(sequence)], Producer("p", 1, sequence))
    kafka_log.close()
    again = make_kafka_log()
    assert append(again, ["5"], Producer("p", 2, 5)).duplicate
    assert not append(again, ["6"], Producer("p", 2, 6)).duplicate
    assert again.last_sequence(PARTITION_0, "p") == 6
    assert values(again, PARTITION_0) == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_what_is_not_an_entry_is_an_error_that_names_its_place(
    kafka_log: KafkaLog, begin: Begin
) -> None:
    append(kafka_log, ["a"], Producer("p", 1, 1))
    begin("headrace.producers", "{}").commit_transaction(10)
    with pytest.raises(LogError, match=r"headrace\.producers/0@2: .* not an entry"):
        kafka_log.last_sequence(PARTITION_0, "q")


# Clients.


def test_a_later_log_of_the_same_name_takes_over(make_kafka_log: MakeKafkaLog) -> None:
    earlier = make_kafka_log(name="engine")
    earlier.create_topic("t", partitions=2)
    earlier.append_all([Append("t", records(["1"]), n) for n in range(2)])
    later = make_kafka_log(name="engine")
    later.append("t", records(["2"]), partition=0)  # with the first append, plain as it is
    for _ in range(2):  # Kafka tells it once, and it stays so
        with pytest.raises(ProducerFenced, match="the log 'engine' was opened again"):
            earlier.append_all([Append("t", records(["x"]), n) for n in range(2)])
    later.append_all([Append("t", records(["3"]), n) for n in range(2)])
    assert values(later, PARTITION_0) == [b"1", b"2", b"3"]


KILLED = """
import sys
from headrace.log import Append, KafkaLog, records
from headrace.log.kafka import transactions
transactions.TRANSACTION_TIMEOUT_S = 2
log = KafkaLog({"bootstrap.servers": sys.argv[1]}, prefix=sys.argv[2])
log.append_all([Append("t", records(["dies"]), 0)])
"""


def test_a_killed_process_without_a_name_holds_others_up_until_its_time_is_over(
    kafka_log: KafkaLog, broker: Broker, prefix: str
) -> None:
    command = [sys.executable, "-c", KILLED, broker.bootstrap, prefix]
    environment = {**os.environ, "HEADRACE_FAULT": "log_before_decision"}
    assert subprocess.run(command, env=environment).returncode == -9
    assert kafka_log.extents("t")[PARTITION_0] == Extent(0, 0)
    began = time.monotonic()
    append(kafka_log, ["a"])
    assert time.monotonic() - began < AT_ONCE_S
    assert values(kafka_log, PARTITION_0) == [b"a"]


def test_an_append_that_takes_too_long_is_aborted_and_says_so(
    kafka_log: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "TRANSACTION_TIMEOUT_S", 1)
    faults.arm("log_before_decision", lambda: time.sleep(3))
    with pytest.raises(LogError, match=r"took over 1 s, .* Nothing was appended"):
        kafka_log.append_all([Append("t", records(["slow"]), 0)])
    kafka_log.append_all([Append("t", records(["a"]), 0)])
    assert values(kafka_log, PARTITION_0) == [b"a"]


def test_a_large_append_has_a_longer_time(
    kafka_log: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "LONG_RECORDS", 2)
    monkeypatch.setattr(transactions, "TRANSACTION_TIMEOUT_S", 1)
    faults.arm("log_before_decision", lambda: time.sleep(3))
    kafka_log.append_all([Append("t", records(["a", "b", "c"]), 0)])
    assert values(kafka_log, PARTITION_0) == [b"a", b"b", b"c"]


def test_more_threads_than_clients_take_turns(
    kafka_log: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_log.create_topic("many", partitions=3)
    made = []
    begun = kafka_log._transactions._begun
    monkeypatch.setattr(
        kafka_log._transactions, "_begun", lambda *each: made.append(each) or begun(*each)
    )
    keys = [str(n) for n in range(20)]
    threads = [
        threading.Thread(target=lambda: kafka_log.append("many", records(keys, keys=keys)))
        for _ in range(2 * pool.MAX_CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(made) <= pool.MAX_CLIENTS
    stored = sum(len(values(kafka_log, place)) for place in kafka_log.extents("many"))
    assert stored == len(threads) * len(keys)


# Batches.


def stored_batches(broker: Broker, kafka_name: str) -> list[tuple[int, int]]:
    """Return offset and number of records of each batch in Kafka's own file of partition 0."""
    (file,) = (broker.data / f"{kafka_name}-0").glob("*.log")
    data, batches, at = file.read_bytes(), [], 0
    while at < len(data):
        base_offset, length = struct.unpack_from(">qi", data, at)
        (last_offset_delta,) = struct.unpack_from(">i", data, at + 23)
        batches.append((base_offset, last_offset_delta + 1))
        at += 12 + length
    return batches


def test_an_append_that_fits_is_one_batch_of_kafkas(
    kafka_log: KafkaLog, broker: Broker, prefix: str
) -> None:
    ranges = []
    for count, value in ((1, "x" * 1_000_000), (3, "x"), (10_000, "x"), (3000, "x" * 600)):
        headers = [{"name": "value"}] * count if value == "x" else None
        table = records([value] * count, keys=["k"] * count, headers=headers)
        ranges += kafka_log.append("t", table, partition=0).ranges
    assert [each.span for each in ranges] == [1, 3, 10_000, 3000]
    assert stored_batches(broker, prefix + "t") == [(each.start, each.span) for each in ranges]


@pytest.mark.parametrize("producer", [None, Producer("p", 1, 1)])
def test_an_append_of_many_batches_is_whole(kafka_log: KafkaLog, producer: Producer | None) -> None:
    sent = [f"{n:0>200}" for n in range(30_000)]  # 6 MB, three batches of Kafka's
    (done,) = append(kafka_log, sent, producer).ranges
    assert done == Range(PARTITION_0, 0, 30_000)
    assert kafka_log.extents("t")[PARTITION_0] == Extent(0, 30_001)  # one marker: one transaction
    assert values(kafka_log, PARTITION_0) == [value.encode() for value in sent]
    # The estimate of 200 bytes each, from the first of them.
    assert 6_000_000 <= kafka_log.measure(Range(PARTITION_0, 0, 30_000)) < 8_000_000
