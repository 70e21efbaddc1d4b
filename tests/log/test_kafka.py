"""The log on Kafka keeps the contract of every log, and its partitions are Kafka's own."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest
from broker import Broker
from confluent_kafka import Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headrace.log import KafkaLog, Log, records
from headrace.log.kafka.topics import CACHE_S
from headrace.testing.log.contract import LogContract
from headrace.testing.log.suite import FILLER_KEY

from .conftest import prefix_of


class TestKafkaLog(LogContract):
    cannot: ClassVar[Mapping[str, str]] = {
        "dense_offsets": "markers of transactions and what was aborted take offsets",
        "null_headers": "a Kafka record has a list of headers, which may be empty",
    }
    longest_name = 249 - 9  # with the prefix
    session_timeout_ms = 1_500
    lock_ms = 1_500
    patience_s = 30.0
    commit_faults = (
        "group_before_append",
        "log_in_transaction",
        "log_before_decision",
        "log_after_decision",
        "group_after_append",
    )

    @pytest.fixture(autouse=True)
    def _use(self, broker: Broker) -> None:
        # Members hear of each other with their heartbeats, so that these decide how long it takes.
        self.data = broker.data
        self.reach = {"bootstrap.servers": broker.bootstrap, "heartbeat.interval.ms": "100"}

    def make_log(self, path: Path) -> Log:
        return KafkaLog(self.reach, prefix=prefix_of(path))

    def opener(self, path: Path, name: str = "the one that dies") -> Callable[[], Log]:
        return partial(KafkaLog, self.reach, prefix=prefix_of(path), name=name)

    def settle(self) -> None:
        time.sleep(CACHE_S + 0.1)

    def compact(self, path: Path, topic: str) -> None:
        # A segment is sealed by the first record that comes after its time, and then cleaned.
        name = prefix_of(path) + topic
        config = {"segment.ms": "10", "min.cleanable.dirty.ratio": "0"}
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        admin = AdminClient(self.reach)
        admin.incremental_alter_configs([resource])[resource].result(10)
        log = self.make_log(path)
        for _ in range(2):
            time.sleep(0.05)
            sealed = log.extents(topic)
            for number in range(log.topic(topic).partitions):
                log.append(topic, records(["x"], keys=[FILLER_KEY]), partition=number)
        log.close()
        deadline = time.monotonic() + self.patience_s
        while not all(
            self._cleaned_to(name, place.number) >= sealed[place].end_offset for place in sealed
        ):
            assert time.monotonic() < deadline, "Kafka does not compact"
            time.sleep(0.02)

    def _cleaned_to(self, name: str, partition: int) -> int:
        """Return how far Kafka's cleaner has come: what its checkpoint says."""
        lines = (self.data / "cleaner-offset-checkpoint").read_text().splitlines()
        found = [line.split() for line in lines]
        return max((int(f[2]) for f in found if f[:2] == [name, str(partition)]), default=0)

    def kafka_picks(self, keys: Sequence[bytes], partitions: int) -> list[int]:
        picked: dict[bytes | None, int | None] = {}

        def note(_: object, message: Message) -> None:
            picked[message.key()] = message.partition()

        topic = f"picks-{uuid4()}"
        admin = AdminClient(self.reach)
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(10)
        client = Producer({**self.reach, "partitioner": "murmur2_random"})
        for key in keys:
            client.produce(topic, key=key, on_delivery=note)
        assert client.flush(30) == 0
        return [picked[key] for key in keys]
