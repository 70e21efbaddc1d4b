"""Logs on the Kafka broker of the run, each test with a prefix of its own; a clock to turn."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker import Broker
from confluent_kafka import Producer

from headrace.log.embedded.upkeep import housekeeping
from headrace.log.kafka import KafkaLog
from log.compacted import Clock

MakeKafkaLog = Callable[..., KafkaLog]
Begin = Callable[..., Producer]


def prefix_of(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:8] + "."


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no append compact, so that a test knows when it happens."""
    monkeypatch.setattr(housekeeping, "CHEAP_BYTES", -1)


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return prefix_of(tmp_path)


@pytest.fixture
def make_kafka_log(broker: Broker, prefix: str) -> Iterator[MakeKafkaLog]:
    """Return what opens logs of this test's prefix; they are closed afterwards."""
    logs = []

    def make(
        properties: dict[str, str] | None = None,
        *,
        prefix: str = prefix,
        name: str | None = None,
        timeout_s: float = 10,
    ) -> KafkaLog:
        reach = {"bootstrap.servers": broker.bootstrap, **(properties or {})}
        logs.append(KafkaLog(reach, prefix=prefix, name=name, timeout_s=timeout_s))
        return logs[-1]

    yield make
    for log in logs:
        log.close()


@pytest.fixture
def kafka_log(make_kafka_log: MakeKafkaLog) -> KafkaLog:
    """Return a log with the topic t of one partition."""
    log = make_kafka_log()
    log.create_topic("t", partitions=1)
    return log


@pytest.fixture
def begin(broker: Broker, prefix: str) -> Begin:
    """Return what begins the transaction of a foreign producer and leaves it open."""

    def begin(
        name: str, *values: str, key: bytes = b"k", transactional_id: str = "foreign"
    ) -> Producer:
        settings = {"bootstrap.servers": broker.bootstrap}
        producer = Producer({**settings, "transactional.id": prefix + transactional_id})
        producer.init_transactions(10)
        producer.begin_transaction()
        for value in values:
            producer.produce(prefix + name, key=key, value=value.encode(), partition=0)
        assert producer.flush(10) == 0
        return producer

    return begin
