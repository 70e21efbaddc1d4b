"""A batch on its way into a log: what it collects, how large that is, where each record went.

Promises:
- What is in a batch can be appended: a record that could not is refused before it goes in, or
  leaves the batch when it gets a key with which it is too large.
- A record's offset is given only where it follows from what the append returned.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.errors import RecordTooLarge, UsageError
from headrace.log.base import MAX_RECORD_BYTES, Partition, Range
from headrace.log.murmur2 import partition_of
from headrace.log.records import DEALT_RECORDS, Bytes, Headers, deal_out, records

__all__ = ["RECORD_OVERHEAD_BYTES", "OutgoingBatch", "ReadKeys", "Record", "Sent", "make_record"]

#: What a record counts beside its own bytes: the objects that carry it, and what a log adds.
RECORD_OVERHEAD_BYTES = 128

Pairs = tuple[tuple[str, bytes | None], ...]
#: Returns the key of each value, in order; null where there is none.
ReadKeys = Callable[[pa.Array], pa.Array]


class Sent(NamedTuple):
    """Where a record is; None where that is not known."""

    partition: Partition | None = None
    offset: int | None = None


class Record(NamedTuple):
    """A record to send: text is bytes by now, and nobody else can change it."""

    key: bytes | None
    value: bytes | None
    headers: Pairs | None
    future: Future[Sent] | None  # None: nobody waits


def make_record(
    topic: str, key: Bytes, value: Bytes, headers: Headers, future: Future[Sent] | None
) -> tuple[Record, int]:
    """Return a record and how many bytes it counts. RecordTooLarge, UsageError."""
    try:
        key_bytes, value_bytes = _to_bytes(key), _to_bytes(value)
        pairs = None if headers is None else _to_pairs(headers)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{topic}: cannot send this record: {error}. Pass bytes, text or None as key, value "
            f"and values of headers, and text as their names."
        ) from error
    size = len(key_bytes or b"") + len(value_bytes or b"")
    for name, header in pairs or ():
        size += len(name.encode()) + len(header or b"")
    if size > MAX_RECORD_BYTES:
        raise _too_large(topic, size)
    return Record(key_bytes, value_bytes, pairs, future), size + RECORD_OVERHEAD_BYTES


def _too_large(topic: str, size: int) -> RecordTooLarge:
    return RecordTooLarge(
        f"{topic}: this record has {size} bytes of key, value and headers, {MAX_RECORD_BYTES} "
        f"is the most. It was not sent; store the payload elsewhere and send a reference to it."
    )


def _to_bytes(value: Bytes) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)  # now, since the caller may change them
    raise TypeError(f"{type(value).__name__} is neither bytes nor text")


def _to_pairs(headers: Headers) -> Pairs:
    assert headers is not None
    pairs = headers.items() if hasattr(headers, "items") else headers
    found = tuple((name, _to_bytes(value)) for name, value in pairs)
    for name, _ in found:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is {type(name).__name__}, not text")
        name.encode()  # what UTF-8 cannot say would fail the whole batch later
    return found


class OutgoingBatch:
    """Records for one append, in the order of their sending. Its user holds a lock."""

    def __init__(self, topic: str, partition: int | None, due_s: float) -> None:
        self.topic = topic
        self.partition = partition
        self.due_s = due_s
        self.records: list[Record] = []
        self.counted_bytes = 0
        self.is_done = False

    def read_keys(self, read: ReadKeys) -> list[tuple[Record, RecordTooLarge]]:
        """Give each record without a key the one that is read from its value.

        Returned, and no longer in the batch, are those that are too large with it.
        """
        places = [
            at
            for at, each in enumerate(self.records)
            if each.key is None and each.value is not None
        ]
        values = pa.array([self.records[at].value for at in places], pa.binary())
        refused: list[tuple[Record, RecordTooLarge]] = []
        for at, key in zip(places, read(values).to_pylist(), strict=True):
            record = self.records[at]._replace(key=key)
            self.records[at] = record
            size = len(key or b"") + len(record.value or b"")
            for name, header in record.headers or ():
                size += len(name.encode()) + len(header or b"")
            if size > MAX_RECORD_BYTES:
                refused.append((record, _too_large(self.topic, size)))
        if refused:
            gone = {id(record) for record, _ in refused}
            self.records = [record for record in self.records if id(record) not in gone]
        return refused

    def table(self) -> pa.Table:
        """Return the records as `append` takes them."""
        keys, values, headers, _ = zip(*self.records, strict=True)
        return records(
            values,
            keys=keys if any(key is not None for key in keys) else None,
            headers=headers if any(pairs is not None for pairs in headers) else None,
        )

    def where(self, ranges: Sequence[Range], partitions: Callable[[], int]) -> list[Sent]:
        """Return where each record is, from the ranges of an append by key or to a partition.

        Within a partition records keep their order, so the n-th is at the n-th offset; unless the
        offsets are not as many as the records, such as where a log skips some. `partitions` gives
        the number of the topic's, and is asked only if it matters.
        """
        offsets: dict[Partition, list[int]] = {}
        for place, start, end in ranges:
            offsets.setdefault(place, []).extend(range(start, end))
        if len(offsets) == 1:
            ((place, own),) = offsets.items()
            if len(own) != len(self.records):
                return [Sent(place)] * len(self.records)
            return [Sent(place, offset) for offset in own]
        spans = {place.number: len(own) for place, own in offsets.items()}
        numbers = self._numbers(spans, partitions())
        if Counter(numbers) != Counter(spans):
            return [Sent()] * len(self.records)
        places = {place.number: (place, iter(own)) for place, own in offsets.items()}
        return [Sent(places[number][0], next(places[number][1])) for number in numbers]

    def _numbers(self, spans: Mapping[int, int], partitions: int) -> list[int]:
        """Return the partition of every record; none if that does not explain the spans."""
        keys = pa.array([record.key for record in self.records], pa.binary())
        numbers = partition_of(keys, partitions)
        keyless = keys.is_null().to_numpy(zero_copy_only=False)
        if keys.null_count >= DEALT_RECORDS:
            numbers[keyless] = deal_out(keys.null_count, partitions)
        elif keys.null_count:
            # They are all in one partition: the one with more offsets than records by key.
            by_key = Counter(numbers[~keyless].tolist())
            holding = [number for number, span in spans.items() if span > by_key[number]]
            if len(holding) != 1:
                return []
            numbers = np.where(keyless, holding[0], numbers)
        found: list[int] = numbers.tolist()
        return found
