"""Topics of a Kafka cluster under a prefix: making, finding, changing and deleting them.

Promises:
- Topic `name` is Kafka's topic `prefix + name`; topics of another prefix, of Kafka itself and the
  log's own are not seen and cannot be made.
- A call that changed something returns once this cluster's brokers tell of it.
- Looking for a topic never makes it, whatever `auto.create.topics.enable` says.
- What another process changes about a topic is seen after CACHE_S.
"""

import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from headrace.errors import InvalidTopic, TopicExists, TopicNotFound
from headrace.log.base import Partition, Topic, TopicSettings
from headrace.log.checks import changed_topic, check_topic, is_topic_name
from headrace.log.kafka.client import LOOK_AGAIN_S, MAX_MESSAGE_BYTES, Cluster

__all__ = ["CACHE_S", "PRODUCERS_TOPIC", "QUEUE_BOOKS", "Found", "KafkaTopics"]

#: The log's own topic: the newest sequence of every producer (sequences.py).
PRODUCERS_TOPIC = "headrace.producers"
#: The names of topics with the books of queues begin so (consume/kafka/queue_entries.py).
QUEUE_BOOKS = "headrace.queue."
CACHE_S = 1.0
MAX_KAFKA_NAME = 249

_THERE = {KafkaError.TOPIC_ALREADY_EXISTS}
_REFUSALS = {
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
}
_UNKNOWN = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE}


def _config_of(settings: TopicSettings) -> dict[str, str]:
    """Return settings as Kafka's own. Compacted, it removes by age or size only if told to."""
    kept = {"retention.ms": settings.retention_ms, "retention.bytes": settings.retention_bytes}
    limited = any(value is not None for value in kept.values())
    policy = "delete" if not settings.compact else "compact,delete" if limited else "compact"
    return {
        **{key: str(-1 if value is None else value) for key, value in kept.items()},
        "cleanup.policy": policy,
        "delete.retention.ms": str(settings.tombstone_ms),
    }


def _settings(config: Mapping[str, ConfigEntry]) -> TopicSettings:
    ms, size = (int(config[key].value or -1) for key in ("retention.ms", "retention.bytes"))
    policy = config["cleanup.policy"].value or ""
    deletes = "delete" in policy
    return TopicSettings(
        None if ms < 0 or not deletes else ms,
        None if size < 0 or not deletes else size,
        "compact" in policy,
        int(config["delete.retention.ms"].value or 0),
    )


def _is_own(name: str) -> bool:
    """Say whether a topic is the log's own, or that of a log whose prefix goes on from ours."""
    return name.endswith(PRODUCERS_TOPIC) or QUEUE_BOOKS in name


class Found(NamedTuple):
    """A topic and the id that Kafka gave it: one made anew under the same name has another."""

    topic: Topic
    id: str
    led: bool  # every partition has a leader: it can be written and read


class KafkaTopics:
    """The topics under one prefix. Safe for several threads."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self._cluster = cluster
        self._timeout_s = cluster.timeout_s
        self._prefix = prefix
        self._mutex = threading.Lock()
        self._cache: dict[str, tuple[float, Found]] = {}
        self._counts: dict[str, tuple[float, int]] = {}  # of partitions

    def kafka_name(self, name: str) -> str:
        """Return what Kafka calls a topic."""
        return self._prefix + name

    def kafka_place(self, place: Partition, offset: int = OFFSET_INVALID) -> TopicPartition:
        """Return what Kafka calls a partition, or a position in it."""
        return TopicPartition(self.kafka_name(place.topic), place.number, offset)

    def place(self, found: TopicPartition) -> Partition:
        """Return the partition of ours that Kafka speaks of."""
        return Partition(found.topic.removeprefix(self._prefix), found.partition)

    def create(self, topic: Topic) -> Topic:
        """Make a topic. TopicExists, InvalidTopic."""
        check_topic(topic)
        name = topic.name
        longest = MAX_KAFKA_NAME - len(self._prefix)
        if len(name) > longest:
            raise InvalidTopic(
                f"{name!r} cannot be a topic's name: with the prefix {self._prefix!r} it has over "
                f"{MAX_KAFKA_NAME} characters. Use at most {longest}."
            )
        if _is_own(name):
            raise InvalidTopic(
                f"{name!r} cannot be a topic's name: the log keeps its producers' sequences in "
                f"{PRODUCERS_TOPIC!r}, and its queues in names with {QUEUE_BOOKS!r}. Use another."
            )
        who_says = "CreateTime" if self._cluster.believes_producers else "LogAppendTime"
        config = {
            "message.timestamp.type": who_says,
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            **_config_of(topic.settings),
        }
        self.make(name, topic.partitions, config)
        return topic

    def make(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Make a topic with Kafka's own settings, whatever its name. TopicExists, InvalidTopic."""
        new = NewTopic(self.kafka_name(name), num_partitions=partitions, config=dict(config))
        futures = self._admin.create_topics([new], request_timeout=self._timeout_s)
        try:
            self._agreed(futures[new.topic], f"make topic {name!r}", raw=_THERE)
        except KafkaException as error:
            raise TopicExists(
                f"{name}: the topic is there already, as {new.topic!r} in {self._cluster}. "
                f"Use it, or another name."
            ) from error
        self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Return once a topic that was just made is seen, with a leader for each partition."""

        def is_led() -> bool:
            found = self._look(name)
            return found is not None and found.led

        self._until(is_led, f"see the new topic {name!r}")

    def exists(self, name: str) -> bool:
        """Say whether a topic is there, the log's own included."""
        return self._look(name) is not None

    def find_all(self) -> list[Topic]:
        """Return all topics, by name."""
        names = [
            name.removeprefix(self._prefix)
            for name in self._cluster.topic_names()
            if name.startswith(self._prefix) and not _is_own(name)
        ]
        return sorted(found.topic for found in self._describe(names).values())

    def find(self, name: str, *, fresh: bool = False) -> Found:
        """Return a topic, as it was at most CACHE_S ago unless `fresh`. TopicNotFound."""
        return self.find_each([name], fresh=fresh)[name]

    def find_each(self, names: Iterable[str], *, fresh: bool = False) -> dict[str, Found]:
        """Return several topics, asked for together. TopicNotFound: one is not there."""
        names = list(names)
        since = time.monotonic() - CACHE_S
        with self._mutex:
            known = {name: self._cache.get(name, (float("-inf"), None)) for name in names}
        found = {name: each for name, (at, each) in known.items() if at >= since and not fresh}
        if missing := [name for name in names if name not in found]:
            found |= self._look_for(missing)
        self._check_found(names, {name for name, each in found.items() if each is not None})
        return {name: each for name, each in found.items() if each is not None}

    def partitions_of(self, names: Iterable[str]) -> list[Partition]:
        """Return all partitions of topics, as they were at most CACHE_S ago. TopicNotFound.

        An engine without work asks for them every second, and needs nothing of their settings,
        which are the larger part of what brokers answer.
        """
        names = list(names)
        since = time.monotonic() - CACHE_S
        with self._mutex:
            known = {name: self._counts[name] for name in names if name in self._counts}
        counts = {name: count for name, (at, count) in known.items() if at >= since}
        if missing := [name for name in names if name not in counts]:
            described = self._describe_partitions(missing)
            now = time.monotonic()
            with self._mutex:
                for name in missing:
                    self._counts.pop(name, None)
                    if name in described:
                        self._counts[name] = (now, len(described[name].partitions))
            counts |= {name: len(found.partitions) for name, found in described.items()}
        self._check_found(names, counts)
        return [Partition(name, number) for name in names for number in range(counts[name])]

    def _check_found(self, names: Iterable[str], found: Container[str]) -> None:
        for name in names:
            if name not in found or _is_own(name):
                raise TopicNotFound(
                    f"{name!r}: no such topic in {self._cluster}"
                    + (f", prefix {self._prefix!r}" if self._prefix else "")
                    + f". Make it: `create_topic({name!r})`."
                )

    def change(self, name: str, *, partitions: int | None, settings: TopicSettings | None) -> Topic:
        """Give a topic more partitions, or other settings. TopicNotFound, InvalidTopic."""
        old = self.find(name, fresh=True).topic
        new = changed_topic(old, partitions, settings)
        if new.partitions > old.partitions:
            more = NewPartitions(self.kafka_name(name), new.partitions)
            futures = self._admin.create_partitions([more], request_timeout=self._timeout_s)
            self._agreed(futures[more.topic], f"add partitions to {name!r}")
        if new.settings != old.settings:
            entries = [
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                for key, value in _config_of(new.settings).items()
            ]
            resource = ConfigResource(
                ResourceType.TOPIC, self.kafka_name(name), incremental_configs=entries
            )
            changed = self._admin.incremental_alter_configs(
                [resource], request_timeout=self._timeout_s
            )
            self._agreed(changed[resource], f"change the settings of {name!r}")

        def is_changed() -> bool:
            found = self._look(name)
            return found is not None and found.topic == new and found.led

        self._until(is_changed, f"see the change of {name!r}")
        return new

    def delete(self, name: str) -> None:
        """Remove a topic and its records for good. TopicNotFound."""
        self.find(name, fresh=True)
        kafka_name = self.kafka_name(name)
        futures = self._admin.delete_topics([kafka_name], request_timeout=self._timeout_s)
        self._result(futures[kafka_name], f"delete topic {name!r}")
        self._until(lambda: self._look(name) is None, f"see that {name!r} is gone")

    @property
    def _admin(self) -> AdminClient:
        return self._cluster.admin

    def _look(self, name: str) -> Found | None:
        return self._look_for([name])[name]

    def _look_for(self, names: Sequence[str]) -> dict[str, Found | None]:
        described = self._describe(names)
        now = time.monotonic()
        with self._mutex:
            for name in names:
                if name in described:
                    self._cache[name] = (now, described[name])
                    self._counts[name] = (now, described[name].topic.partitions)
                else:
                    self._cache.pop(name, None)
                    self._counts.pop(name, None)
        return {name: described.get(name) for name in names}

    def _describe(self, names: Iterable[str]) -> dict[str, Found]:
        """Return those of the topics that are there."""
        known = self._kafka_names(names)
        resources = {
            ConfigResource(ResourceType.TOPIC, kafka_name): name
            for kafka_name, name in known.items()
        }
        if not resources:
            return {}
        # Asked at the same time as the partitions are.
        configs = self._admin.describe_configs(list(resources), request_timeout=self._timeout_s)
        topics = self._describe_partitions(known.values())
        found = {}
        for resource, config in configs.items():
            name = resources[resource]
            try:
                what = f"look for topic {name!r}"
                settings = _settings(self._result(config, what, raw=_UNKNOWN))
            except KafkaException:  # the one kind that `raw` passes on: there is no such topic
                continue
            if name in topics:
                topic = topics[name]
                here = Topic(name, len(topic.partitions), settings)
                led = all(each.leader for each in topic.partitions)
                found[name] = Found(here, str(topic.topic_id), led)
        return found

    def _describe_partitions(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the topics that are there, without their settings."""
        known = self._kafka_names(names)
        if not known:
            return {}
        described = self._admin.describe_topics(
            TopicCollection(list(known)), request_timeout=self._timeout_s
        )
        found = {}
        for kafka_name, name in known.items():
            try:
                what = f"look for topic {name!r}"
                topic = self._result(described[kafka_name], what, raw=_UNKNOWN)
            except KafkaException:  # the one kind that `raw` passes on: there is no such topic
                continue
            if not topic.is_internal:
                found[name] = topic
        return found

    def _kafka_names(self, names: Iterable[str]) -> dict[str, str]:
        # Kafka answers for names that no topic can have with other errors than "unknown".
        return {
            kafka_name: name
            for name in names
            if is_topic_name(name) and is_topic_name(kafka_name := self.kafka_name(name))
        }

    def _agreed(self, future: Any, what: str, *, raw: Collection[int] = ()) -> None:
        """Return once the cluster has done it. InvalidTopic: it refuses the topic."""
        try:
            self._result(future, what, raw=_REFUSALS | set(raw))
        except KafkaException as error:
            if error.args[0].code() in raw:
                raise
            if "brokers are currently fenced" in error.args[0].str():
                # They have just started and are about to serve: nothing is wrong with the topic.
                raise self._cluster.unreachable(what) from error
            raise InvalidTopic(
                f"{self._cluster}: refuses to {what}: {error.args[0].str()}. Use another name, or "
                f"partitions and settings that the cluster allows."
            ) from error

    def _result(self, future: Any, what: str, *, raw: Container[int] = ()) -> Any:
        return self._cluster.wait(future, what, raw=raw)

    def _until(self, check: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._cluster.timeout_s
        while not check():
            if time.monotonic() > deadline:
                raise self._cluster.unreachable(what)
            time.sleep(LOOK_AGAIN_S)
