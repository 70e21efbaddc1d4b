"""Offsets of Kafka partitions: where they begin and end, and where a time is.

Promises:
- Ends are last stable offsets: nothing before them is still undecided, nothing at or past them is
  shown to a reader.
- All partitions of a topic are asked at once, however many they are.
- A leader that has just been chosen, or has just moved, is waited for. So is an offset that
  librdkafka gives as unknown, without an error: it did so once while a broker went down.
- `wait_until_visible` returns once every reader sees what was appended, PATIENCE_S at most.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from headrace.errors import LogError
from headrace.log.base import Extent, Partition
from headrace.log.kafka.client import LOOK_AGAIN_S, PATIENCE_S, Cluster

__all__ = ["KafkaOffsets"]

_MOVING = {
    KafkaError._NOENT,  # librdkafka found no leader to ask, as while a broker goes down
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
}


class KafkaOffsets:
    """The offsets of partitions under one prefix. Safe for several threads."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self._cluster = cluster
        self._prefix = prefix

    def extents(self, places: Iterable[Partition]) -> dict[Partition, Extent]:
        """Return what partitions hold: from the first record kept to the last stable offset."""
        places = list(places)
        first, end = self._ask(places, [OffsetSpec.earliest(), OffsetSpec.latest()])
        return {place: Extent(first[place], end[place]) for place in places}

    def stable_ends(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where partitions end for readers."""
        (end,) = self._ask(list(places), [OffsetSpec.latest()])
        return end

    def written_ends(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where partitions end with what is neither committed nor aborted yet."""
        (end,) = self._ask(list(places), [OffsetSpec.latest()], committed=False)
        return end

    def wait_until_visible(
        self, ends: Mapping[Partition, int], *, beside: Iterable[Partition] = ()
    ) -> dict[Partition, int]:
        """Return the stable ends of partitions once all are at `ends` or past them.

        Those of the partitions `beside` are returned as they are. LogError: a transaction of others
        is still open before one of them.
        """
        places = [*ends, *beside]
        if not places:
            return {}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = self.stable_ends(places)
            held = [place for place, end in ends.items() if found[place] < end]
            if not held:
                return found
            if time.monotonic() > deadline:
                raise LogError(
                    f"{held[0]}@{found[held[0]]}: an open transaction holds back what was appended "
                    f"after it, for over {PATIENCE_S} s now. What this append brought is stored, "
                    f"up to {ends[held[0]]}, and readers see it when that one ends: end its "
                    f"producer, or wait until Kafka does (its `transaction.timeout.ms`)."
                )
            time.sleep(LOOK_AGAIN_S)

    def at_time(self, place: Partition, time_us: int) -> int:
        """Return the first offset that arrived at a time (µs since 1970) or later, or the end."""
        # Arrival is a whole millisecond here: the first one at or after `time_us`.
        time_ms = max(0, -(-time_us // 1000))
        found, end = self._ask([place], [OffsetSpec.for_timestamp(time_ms), OffsetSpec.latest()])
        return end[place] if found[place] < 0 else min(found[place], end[place])

    def _ask(
        self, places: list[Partition], specs: Sequence[Any], *, committed: bool = True
    ) -> list[dict[Partition, int]]:
        """Return the offset of every partition for each spec, all of them asked for at once."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        deadline = time.monotonic() + self._cluster.timeout_s
        while True:
            asked = {p: TopicPartition(self._prefix + p.topic, p.number) for p in places}
            answers = [
                self._cluster.admin.list_offsets(
                    dict.fromkeys(asked.values(), spec),
                    isolation_level=level,
                    request_timeout=self._cluster.timeout_s,
                )
                for spec in specs
            ]
            try:
                return [
                    {place: self._wait(answer[asked[place]], place) for place in places}
                    for answer in answers
                ]
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise self._cluster.unreachable("find the leader of a partition") from error
            time.sleep(LOOK_AGAIN_S)
            # The client believes what it knows of leaders until it is made to ask. Not for these
            # topics alone: where the cluster makes topics that are asked for, that would.
            self._cluster.topic_names()

    def _wait(self, future: Any, place: Partition) -> int:
        what = f"find the offsets of {place}"
        offset = int(self._cluster.wait(future, what, raw=_MOVING).offset)
        if offset == OFFSET_INVALID:
            raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
        return offset
