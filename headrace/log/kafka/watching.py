"""Waiting for records on Kafka: one consumer stands at the positions and is told by the brokers.

A broker that has nothing to fetch answers when a record comes, or after a tenth of a second: ten
requests a second to each broker, however many partitions are waited for.

Promises, besides those of `base.Watch`:
- The consumer fetches while somebody waits, and about one batch then: records are not read twice.
- One that missed a record is replaced by another: librdkafka's forget the brokers for good when
  one that stops, or has just started, tells them that there are none (its issue 5301).
"""

import threading
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException

from headrace.errors import UsageError
from headrace.log.base import Partition
from headrace.log.kafka.client import LOGGER, Cluster
from headrace.log.kafka.topics import KafkaTopics

__all__ = ["KafkaWatch"]

# How often a wait looks whether `wake` was called: confluent-kafka has nothing to wait for both.
WAKE_S = 0.1
# A topic that is new to the consumer is asked for at least so long, whatever the timeout.
MEET_S = 0.5
# After an error that the reader may not see.
ERROR_PAUSE_S = 0.25


class KafkaWatch:
    """A `Watch` over the topics under one prefix."""

    def __init__(self, cluster: Cluster, topics: KafkaTopics) -> None:
        self._cluster = cluster
        self._topics = topics
        self._woken = threading.Event()
        self._closed = False
        self._consumer: Consumer | None = None
        self._met: dict[str, set[Partition]] = {}  # partitions that were there when it asked
        self._assigned: dict[Partition, int] = {}
        self._told = True  # of a record at the assigned positions or later
        self._expired = False  # the last wait ended without being told

    def wait(self, positions: Mapping[Partition, int], *, timeout_s: float) -> bool:
        """Wait until a partition may hold a record at its position or later."""
        if self._closed:
            raise UsageError(f"{self._cluster}: this watch is closed; open another one.")
        deadline = time.monotonic() + timeout_s
        try:
            self._stand_at(positions, deadline)
            while not self._woken.is_set() and not self._hears(deadline):
                if time.monotonic() >= deadline:
                    self._expired = True
                    return False
        except KafkaException as error:
            # Whoever looks at the log learns what it is. Until then, no faster than without it.
            LOGGER.info("%s: waiting for records: %s", self._cluster, error.args[0].str())
            self._drop()
            if not self._woken.wait(max(0.0, deadline - time.monotonic())):
                return False
        self._woken.clear()
        return True

    def _hears(self, deadline: float) -> bool:
        """Wait for a moment; say whether the consumer was told of something."""
        pause_s = min(WAKE_S, max(0.0, deadline - time.monotonic()))
        if self._consumer is None:  # there is no partition to wait for
            self._woken.wait(pause_s)
            return False
        message = self._consumer.poll(pause_s)
        self._told = message is not None
        if message is not None:
            # It fetches no more: the reader is about to read by itself what came.
            self._consumer.unassign()
            if message.error() is not None:
                # The reader finds out which topic or position is gone; if none is, this one errs.
                self._met.clear()
                self._woken.wait(min(ERROR_PAUSE_S, max(0.0, deadline - time.monotonic())))
        return self._told

    def _stand_at(self, positions: Mapping[Partition, int], deadline: float) -> None:
        if not self._told and self._assigned == positions:
            return  # it still stands there
        missed = self._expired and any(
            positions.get(place, offset) > offset for place, offset in self._assigned.items()
        )
        self._told = self._expired = False
        if missed or not positions:
            self._drop()
        if not positions:
            return
        if self._consumer is None:
            self._consumer = self._cluster.watcher()
            self._met.clear()
        for topic in {place.topic for place in positions}:
            places = {place for place in positions if place.topic == topic}
            if not places <= self._met.get(topic, set()):
                # Or a consumer that has not met the topic yet looks for it after a second.
                name = self._topics.kafka_name(topic)
                left_s = max(MEET_S, deadline - time.monotonic())
                self._consumer.list_topics(name, timeout=min(left_s, self._cluster.timeout_s))
                self._met[topic] = places
        self._assigned = dict(positions)
        self._consumer.assign(
            [self._topics.kafka_place(place, offset) for place, offset in positions.items()]
        )

    def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._assigned = {}
        if consumer is not None:
            consumer.close()

    def wake(self) -> None:
        """Let the wait under way, or else the next one, return at once."""
        self._woken.set()

    def close(self) -> None:
        """End the consumer."""
        self._closed = True
        self._drop()
