"""Handing records to a Kafka client, and where its delivery reports say that they went."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer

from headrace.log.base import Partition, Producer, Range
from headrace.log.kafka.client import LOOK_S, MAX_MESSAGE_BYTES, served

__all__ = ["Delivery", "Share", "flush", "hand_over"]

# What surely fits librdkafka's batch, with what Kafka adds to a record and its headers.
BATCH_RECORDS = 10_000
BATCH_BYTES = MAX_MESSAGE_BYTES - (64 << 10)
RECORD_OVERHEAD_BYTES = 64


class Share(NamedTuple):
    """What an append brings to one partition."""

    place: Partition
    rows: pa.RecordBatch
    producer: Producer | None = None
    arrival_ms: int = 0  # 0: Kafka says when they arrive

    def fits_one_batch(self) -> bool:
        """Say whether Kafka takes it as one batch; a record alone always does."""
        count = int(self.rows.num_rows)
        size = int(self.rows.nbytes) + count * RECORD_OVERHEAD_BYTES
        return count == 1 or (count <= BATCH_RECORDS and size <= BATCH_BYTES)


class Delivery:
    """What became of the records for one partition, from librdkafka's reports."""

    def __init__(self, place: Partition) -> None:
        self.place = place
        self.offsets: list[int] = []  # in the order in which the records were handed over
        self._error: KafkaError | None = None

    def note(self, error: KafkaError | None, message: Message) -> None:
        """Take one report."""
        if error is not None:
            self._error = self._error or error
        else:
            offset = message.offset()
            assert offset is not None
            self.offsets.append(offset)

    def check(self) -> None:
        """Raise the first error that was reported, as a KafkaException."""
        if self._error is not None:
            raise KafkaException(self._error)

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.offsets[-1] + 1

    def ranges(self) -> list[Range]:
        """Return where the records are; those of others split an append into several ranges."""
        offsets = np.array(self.offsets)
        cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
        parts = np.split(offsets, cuts) if len(offsets) else []
        return [Range(self.place, int(part[0]), int(part[-1]) + 1) for part in parts]


def hand_over(client: KafkaProducer, kafka_name: str, share: Share) -> Delivery:
    """Put a share into a client's buffer, in order. KafkaException: the buffer does not empty."""
    delivery = Delivery(share.place)
    produce, note = client.produce, delivery.note
    number, arrival_ms = share.place.number, share.arrival_ms
    columns = (share.rows.column(name).to_pylist() for name in ("key", "value", "headers"))
    # Kafka's client takes records one by one, so this is a loop; positions are what costs least.
    for key, value, headers in zip(*columns, strict=True):
        pairs = [(each["name"], each["value"]) for each in headers] if headers else None
        while True:
            try:
                produce(kafka_name, value, key, number, note, None, arrival_ms, pairs)
                break
            except BufferError:  # room comes with acknowledgements, or with the first error
                served(lambda: client.poll(LOOK_S))
                delivery.check()
    return delivery


def flush(client: KafkaProducer, deliveries: Iterable[Delivery], *, timeout_s: int) -> None:
    """Return once all that was handed over is acknowledged. KafkaException."""
    deliveries = list(deliveries)
    # In slices, so that an interrupt is heard. Every record has its report when its time is over.
    deadline = time.monotonic() + timeout_s + 1
    while served(lambda: client.flush(LOOK_S)) and time.monotonic() < deadline:
        for delivery in deliveries:
            delivery.check()
    for delivery in deliveries:
        delivery.check()
    if len(client):
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
