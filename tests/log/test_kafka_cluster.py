"""The log on Kafka and the cluster around it: topics, time, retention, and what goes wrong.

Method: a real broker; what the log says it did is looked up with Kafka's own admin client.
"""

import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from broker import SASL_PASSWORD, SASL_USER, Broker
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from headrace.errors import (
    AccessDenied,
    InvalidTopic,
    PositionLost,
    TopicNotFound,
    Unreachable,
    UsageError,
)
from headrace.log import (
    Extent,
    KafkaLog,
    Partition,
    Producer,
    Range,
    Topic,
    TopicSettings,
    records,
)
from headrace.log.base import PRODUCED, RECORDS
from headrace.log.kafka.client import Cluster
from headrace.log.kafka.reader import ConsumerPool
from headrace.log.secrets import FromEnvironment
from headrace.testing.log.contract import rows, values

from .conftest import MakeKafkaLog

PARTITION_0 = Partition("t", 0)
Calls = list[Callable[[KafkaLog], object]]
CALLS: Calls = [
    lambda log: log.topics(),
    lambda log: log.topic("t"),
    lambda log: log.create_topic("t"),
    lambda log: log.append("t", records(["a"])),
    lambda log: log.extents("t"),
    lambda log: log.read(Range(PARTITION_0, 0, 1)),
]


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def config(admin: AdminClient, kafka_name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, kafka_name)
    entries = admin.describe_configs([resource])[resource].result(10)
    return {name: entry.value for name, entry in entries.items()}


# Topics.


def test_only_topics_of_the_prefix_are_seen(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog, prefix: str
) -> None:
    kafka_log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, 1))
    assert kafka_log.topics() == [Topic("t", 1)]
    assert make_kafka_log(prefix=prefix + "other.").topics() == []
    everything = {topic.name for topic in make_kafka_log(prefix="").topics()}
    assert prefix + "t" in everything
    # The log's own and Kafka's, among them __transaction_state, which is there by now.
    assert not {name for name in everything if name.endswith("headrace.producers")}
    assert not {name for name in everything if name.startswith("__")}


def test_the_logs_own_topic_is_nobody_elses(kafka_log: KafkaLog) -> None:
    with pytest.raises(InvalidTopic, match="producers' sequences"):
        kafka_log.create_topic("headrace.producers")
    kafka_log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, 1))
    with pytest.raises(TopicNotFound):
        kafka_log.topic("headrace.producers")


def test_looking_for_a_topic_does_not_make_it(
    kafka_log: KafkaLog, admin: AdminClient, prefix: str
) -> None:
    for call in (kafka_log.topic, kafka_log.extents, kafka_log.delete_topic):
        with pytest.raises(TopicNotFound, match=f"'missing'.*prefix '{prefix}'"):
            call("missing")
    assert prefix + "missing" not in admin.list_topics(timeout=10).topics


def test_names_that_kafka_takes_for_one_are_refused(kafka_log: KafkaLog) -> None:
    kafka_log.create_topic("a.b")
    with pytest.raises(InvalidTopic, match="collides"):
        kafka_log.create_topic("a_b")


def test_a_topic_is_set_as_the_promises_need(
    kafka_log: KafkaLog, admin: AdminClient, prefix: str
) -> None:
    kept = config(admin, prefix + "t")
    assert kept["message.timestamp.type"] == "LogAppendTime"
    assert int(kept["max.message.bytes"]) > 2 << 20
    assert (kept["retention.ms"], kept["retention.bytes"]) == ("-1", "-1")
    assert kafka_log.topic("t").settings == TopicSettings()


def test_settings_are_kept_and_changed(
    kafka_log: KafkaLog, admin: AdminClient, prefix: str
) -> None:
    kafka_log.create_topic("u", partitions=1, settings=TopicSettings(60_000, 1 << 20))
    assert kafka_log.topic("u").settings == TopicSettings(60_000, 1 << 20)
    kafka_log.change_topic("u", settings=TopicSettings(retention_ms=90_000))
    assert kafka_log.topic("u").settings == TopicSettings(90_000, None)
    kept = config(admin, prefix + "u")
    assert (kept["retention.ms"], kept["retention.bytes"]) == ("90000", "-1")
    assert kept["message.timestamp.type"] == "LogAppendTime", "what is not changed stays"
    for wrong in (TopicSettings(retention_ms=0), TopicSettings(retention_bytes=-1)):
        with pytest.raises(InvalidTopic, match=r"retention_.* cannot be"):
            kafka_log.change_topic("u", settings=wrong)


def test_partitions_are_added_and_other_logs_use_them(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog
) -> None:
    kafka_log.append("t", records(["a"]), partition=0)
    assert make_kafka_log().change_topic("t", partitions=3) == Topic("t", 3)
    # This log knows the topic as it was; Kafka's client would, too, for minutes.
    deadline = time.monotonic() + 10
    while kafka_log.topic("t").partitions == 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    kafka_log.append("t", records(["b"]), partition=2)
    assert values(kafka_log, Partition("t", 2)) == [b"b"]
    assert values(kafka_log, PARTITION_0) == [b"a"]
    with pytest.raises(InvalidTopic, match="cannot become 2"):
        kafka_log.change_topic("t", partitions=2)


def test_a_topic_made_anew_begins_without_records_and_producers(kafka_log: KafkaLog) -> None:
    kafka_log.append("t", records(["a"]), partition=0)
    kafka_log.append("t", records(["b"]), partition=0, producer=Producer("p", 7, 5))
    kafka_log.delete_topic("t")
    with pytest.raises(TopicNotFound):
        kafka_log.topic("t")
    kafka_log.create_topic("t", partitions=1)
    assert kafka_log.extents("t") == {PARTITION_0: Extent(0, 0)}
    assert kafka_log.last_sequence(PARTITION_0, "p") is None
    kafka_log.append("t", records(["c"]), partition=0)
    done = kafka_log.append("t", records(["d"]), partition=0, producer=Producer("p", 1, 1))
    assert not done.duplicate
    assert values(kafka_log, PARTITION_0) == [b"c", b"d"]


@pytest.mark.parametrize("producer", [None, Producer("p", 1, 1)])
def test_an_append_to_a_topic_that_another_deleted_does_not_make_it(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog, producer: Producer | None
) -> None:
    other = make_kafka_log()
    kafka_log.topic("t")  # known from now on, for a second
    other.delete_topic("t")
    with pytest.raises(TopicNotFound, match="'t': no such topic"):
        kafka_log.append("t", records(["a"]), partition=0, producer=producer)
    assert other.topics() == []


# Time and retention.


def test_what_a_producer_says_is_no_arrival(
    kafka_log: KafkaLog, admin: AdminClient, broker: Broker, prefix: str
) -> None:
    made = NewTopic(f"{prefix}foreign", 1, config={"message.timestamp.type": "CreateTime"})
    admin.create_topics([made])[made.topic].result(10)
    producer = KafkaProducer({"bootstrap.servers": broker.bootstrap})
    time_ms = time.time_ns() // 1_000_000 - 5_000
    producer.produce(made.topic, value=b"a", timestamp=time_ms)
    assert producer.flush(10) == 0
    place = Partition("foreign", 0)
    (row,) = rows(kafka_log, place)
    assert (row["value"], row["arrival"]) == (b"a", None)
    # Who asks for it gets it besides.
    (split,) = kafka_log.splits(Range(place, 0, 1), max_records=1)
    for batches in (kafka_log.read(Range(place, 0, 1), produced=True), split.read()):
        table = pa.Table.from_batches(batches)
        assert table.schema.equals(RECORDS.append(PRODUCED))
        assert table[PRODUCED.name].cast(pa.int64()).to_pylist() == [time_ms * 1000]


def test_a_time_is_found(kafka_log: KafkaLog) -> None:
    before_us = time.time_ns() // 1000
    for value in ("a", "b", "c"):
        kafka_log.append("t", records([value]), partition=0)
        time.sleep(0.005)  # arrival counts milliseconds
    arrivals_us = [round(row["arrival"].timestamp() * 1e6) for row in rows(kafka_log, PARTITION_0)]
    assert before_us - 1000 <= arrivals_us[0] < arrivals_us[1] < arrivals_us[2]
    assert arrivals_us[2] <= time.time_ns() // 1000
    for offset, arrival_us in enumerate(arrivals_us):
        assert kafka_log.offset_at(PARTITION_0, arrival_us) == offset
        assert kafka_log.offset_at(PARTITION_0, arrival_us + 1) == offset + 1
    assert kafka_log.offset_at(PARTITION_0, -1) == 0


def test_records_that_are_gone_are_position_lost(
    kafka_log: KafkaLog, admin: AdminClient, prefix: str
) -> None:
    kafka_log.append("t", records(["a", "b", "c", "d", "e"]), partition=0)
    (split,) = kafka_log.splits(Range(PARTITION_0, 0, 5), max_records=10)
    gone = TopicPartition(prefix + "t", 0, 3)
    admin.delete_records([gone])[gone].result(10)
    assert kafka_log.extents("t")[PARTITION_0] == Extent(3, 5)
    with pytest.raises(PositionLost, match=r"t/0@0: .* begins at 3 and ends at 5"):
        kafka_log.read(Range(PARTITION_0, 0, 5))
    with pytest.raises(PositionLost, match=r"t/0@0: .* begins at 3 and ends at 5"):
        list(split.read())  # found out on the way
    assert values(kafka_log, PARTITION_0) == [b"d", b"e"]


# What goes wrong.


def test_an_offset_without_an_answer_is_asked_for_again(
    make_kafka_log: MakeKafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a broker stopped, librdkafka gave -1001 for the offsets of a partition, and no error."""
    log = make_kafka_log(timeout_s=1)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a", "b"]), partition=0)
    unanswered = 0
    wait = Cluster.wait

    def leave_some_unanswered(cluster: Cluster, *call: object, **options: object) -> Any:
        nonlocal unanswered
        found = wait(cluster, *call, **options)
        if unanswered and hasattr(found, "offset"):  # else it is no offset that is asked for
            unanswered -= 1
            return SimpleNamespace(offset=-1001)
        return found

    monkeypatch.setattr(Cluster, "wait", leave_some_unanswered)
    for unanswered in (1, 2, 3):
        assert log.extents("t")[PARTITION_0] == Extent(0, 2)
        assert unanswered == 0
    unanswered = 1
    assert log.offset_at(PARTITION_0, time.time_ns() // 1000 + 1_000_000) == 2
    unanswered = 1_000_000
    with pytest.raises(Unreachable):
        log.extents("t")


@pytest.mark.parametrize("call", CALLS)
def test_an_unreachable_broker_is_one_error(
    call: Callable[[KafkaLog], object], capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        log = KafkaLog({"bootstrap.servers": address}, timeout_s=1)
        began = time.monotonic()
        with pytest.raises(Unreachable, match=f"Kafka at {address}: .*`bootstrap.servers`"):
            call(log)
        assert time.monotonic() - began < 4
        log.close()
    assert capfd.readouterr() == ("", "")


def test_a_client_that_got_no_answer_is_not_asked_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        cluster = Cluster({"bootstrap.servers": address}, timeout_s=0.5)
        admin = cluster.admin
        with pytest.raises(Unreachable):
            cluster.topic_names()
        second = cluster.admin
        assert second is not admin
        topic = ConfigResource(ResourceType.TOPIC, "t")
        (asked,) = second.describe_configs([topic], request_timeout=0.5).values()
        with pytest.raises(Unreachable):
            cluster.wait(asked, "look for a topic")
        assert cluster.admin is not second

        readers: list[Consumer] = []

        class Counting(Cluster):
            def consumer(self, *, committed: bool = True, patient: bool = False) -> Consumer:
                readers.append(super().consumer(committed=committed, patient=patient))
                return readers[-1]

        pool = ConsumerPool(Counting({"bootstrap.servers": address}, timeout_s=0.5))
        for _ in range(2):
            with pytest.raises(Unreachable):
                list(pool.read("t", Range(PARTITION_0, 0, 1), 10))
        assert len(readers) == 2
        pool.close()
        cluster.close()


def sasl(broker: Broker, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": SASL_USER,
        "sasl.password": password,
    }


@pytest.mark.parametrize("call", CALLS)
def test_wrong_credentials_name_the_settings_at_once(
    call: Callable[[KafkaLog], object], broker: Broker, make_kafka_log: MakeKafkaLog
) -> None:
    log = make_kafka_log(sasl(broker, "wrong"), timeout_s=30)
    began = time.monotonic()
    with pytest.raises(AccessDenied, match=r"`sasl\.username`, `sasl\.password`"):
        call(log)
    assert time.monotonic() - began < 10


def test_right_credentials_are_let_in_and_a_split_does_not_show_them(
    broker: Broker, make_kafka_log: MakeKafkaLog
) -> None:
    log = make_kafka_log(sasl(broker, SASL_PASSWORD))
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, 1))
    assert values(log, PARTITION_0) == [b"a"]
    (split,) = log.splits(Range(PARTITION_0, 0, 1), max_records=10)
    assert SASL_PASSWORD not in repr(split)
    (batch,) = pickle.loads(pickle.dumps(split)).read()
    assert batch["value"].to_pylist() == [b"a"]


def test_a_split_logs_in_by_the_environment_of_who_reads_it(
    broker: Broker, make_kafka_log: MakeKafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_KEY", SASL_PASSWORD)
    log = make_kafka_log(sasl(broker, FromEnvironment("${CELLAR_KEY}")))
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    assert log.carried_secrets() == []
    sent = pickle.dumps(log.splits(Range(PARTITION_0, 0, 1), max_records=10))
    assert SASL_PASSWORD.encode() not in sent
    (split,) = pickle.loads(sent)
    (batch,) = split.read()
    assert batch["value"].to_pylist() == [b"a"]
    monkeypatch.delenv("CELLAR_KEY")
    (elsewhere,) = pickle.loads(sent)
    with pytest.raises(AccessDenied, match=r"sasl\.password: the environment of .* no CELLAR_KEY"):
        next(elsewhere.read())


def test_a_wrong_call_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`bootstrap\.servers` is missing"):
        KafkaLog({})
    with pytest.raises(UsageError, match=r"no\.such\.property"):
        KafkaLog({"bootstrap.servers": "127.0.0.1:1", "no.such.property": "x"})
    with pytest.raises(UsageError, match="cannot be a prefix"):
        KafkaLog({"bootstrap.servers": "127.0.0.1:1"}, prefix="a/b")
    with pytest.raises(UsageError, match="cannot be a log's name"):
        KafkaLog({"bootstrap.servers": "127.0.0.1:1"}, name="")


def test_a_broker_that_comes_back_is_used_again(
    kafka_log: KafkaLog, make_kafka_log: MakeKafkaLog, broker: Broker
) -> None:
    impatient = make_kafka_log(timeout_s=2)
    kafka_log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, 1))
    broker.stop()
    try:
        with pytest.raises(Unreachable, match=broker.bootstrap):
            impatient.extents("t")
    finally:
        broker.start()
    kafka_log.append("t", records(["b"]), partition=0, producer=Producer("p", 1, 2))
    kafka_log.append("t", records(["c"]), partition=0)
    for log in (kafka_log, impatient):
        assert values(log, PARTITION_0) == [b"a", b"b", b"c"]


# In a process of its own: here other tests' logs begin and end threads when they please.
COUNT_THREADS = """
import os, sys, time
from pathlib import Path
from headrace.log import KafkaLog, Partition, Producer, Range, records

def threads():
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            found += Path(f"/proc/self/task/{task}/comm").read_text().startswith("rdk:")
        except OSError:  # it ended since
            pass
    return found

log = KafkaLog({"bootstrap.servers": sys.argv[1]}, prefix=sys.argv[2])
log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, 1))
log.append("t", records(["b"]), partition=0)
extent = log.extents("t")[Partition("t", 0)]
assert sum(batch.num_rows for batch in log.read(Range(Partition("t", 0), *extent))) == 2
open_threads = threads()
log.close()
deadline = time.monotonic() + 10  # a thread that was joined stays listed for a moment
while threads() and time.monotonic() < deadline:
    time.sleep(0.01)
print(open_threads, threads())
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs a list of native threads")
def test_a_closed_log_leaves_no_threads(kafka_log: KafkaLog, broker: Broker, prefix: str) -> None:
    counted = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS, broker.bootstrap, prefix],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    while_open, afterwards = map(int, counted.stdout.split())
    assert while_open > 0
    assert afterwards == 0


def test_a_closed_log_says_so(make_kafka_log: MakeKafkaLog) -> None:
    log = make_kafka_log()
    log.close()
    for call in CALLS:
        with pytest.raises(UsageError, match="closed"):
            call(log)
