"""Pages of a topic's records: the last ones, or those after a position.

Promises:
- The page after a position holds the next records of each partition, none left out and none twice;
  its own position is where the next page begins.
- At most MAX_PAGE_RECORDS records, and MAX_PAGE_BYTES of keys, values and headers; one record at
  least, if there is any. Of each partition its share of the bytes is taken from the log's batches,
  or one record.
- Within a partition records are in offset order, between partitions by arrival as far as that can
  be told.
"""

import base64
import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import PositionLost, UsageError
from headrace.log.base import Extent, Log, Partition, Range
from headrace.serve.reading.positions import Position

__all__ = [
    "MAX_PAGE_BYTES",
    "MAX_PAGE_RECORDS",
    "Page",
    "check_position",
    "end_of",
    "read_after",
    "read_last",
]

MAX_PAGE_RECORDS = 1_000
MAX_PAGE_BYTES = 4 << 20
_BATCH_RECORDS = 100


@dataclass(frozen=True)
class Page:
    """Records as JSON, and where the next page begins."""

    records: list[dict[str, Any]]
    position: Position


def end_of(log: Log, topic: str) -> Position:
    """Return the position after the last record. TopicNotFound."""
    return {place: extent.end_offset for place, extent in log.extents(topic).items()}


def check_position(log: Log, topic: str, position: Mapping[Partition, int]) -> None:
    """Refuse a position that is not in the topic, or not any more. UsageError, PositionLost."""
    extents = log.extents(topic)
    for place, offset in position.items():
        if place not in extents:
            raise UsageError(
                f"{place}@{offset}: no such partition; {topic} has {len(extents)}, 0 to "
                f"{len(extents) - 1}."
            )
        _check_offset(place, offset, extents[place])


def _check_offset(place: Partition, offset: int, extent: Extent) -> None:
    if not extent.first_offset <= offset <= extent.end_offset:
        raise PositionLost(
            f"{place}@{offset}: the next record to read is not there; the log begins at "
            f"{extent.first_offset} and ends at {extent.end_offset}. Begin anew: leave out `after`."
        )


def read_last(log: Log, topic: str, count: int) -> Page:
    """Return the newest records, in the order of their arrival. TopicNotFound."""
    extents = log.extents(topic)
    budget = MAX_PAGE_BYTES // max(1, len(extents))
    parts = [
        _rows(place, _read_end(log, place, extent, count, budget))
        for place, extent in extents.items()
    ]
    merged = list(heapq.merge(*parts, key=_order))[-count:]
    fitting = _count_fitting((row.size for row in reversed(merged)), MAX_PAGE_BYTES)
    records = [row.to_json() for row in merged[len(merged) - fitting :]]
    return Page(records, {place: extent.end_offset for place, extent in extents.items()})


def _read_end(
    log: Log, place: Partition, extent: Extent, count: int, budget: int
) -> list[pa.RecordBatch]:
    """Return the last records of a partition; more and more are read, until they are enough."""
    span = extent.end_offset - extent.first_offset
    if span == 0:
        return []
    asked = 1
    while True:
        asked = min(asked, count, span)
        range_ = Range(place, extent.end_offset - asked, extent.end_offset)
        batches, size = _last_fitting(log.read(range_, max_batch_records=_BATCH_RECORDS), budget)
        size = max(1, size)
        if asked in (count, span) or 2 * size > budget:
            return batches
        asked = max(asked + 1, asked * min(16, budget // size))


def _last_fitting(
    batches: Iterable[pa.RecordBatch], budget: int
) -> tuple[list[pa.RecordBatch], int]:
    """Return the last records that fit, one at least, and the bytes of all that were read."""
    total = kept_bytes = 0
    kept: deque[tuple[pa.RecordBatch, list[int]]] = deque()
    for batch in batches:
        sizes = _sizes(batch)
        kept.append((batch, sizes))
        kept_bytes += sum(sizes)
        total += sum(sizes)
        while len(kept) > 1 and kept_bytes - sum(kept[0][1]) >= budget:
            kept_bytes -= sum(kept.popleft()[1])
    newest_first = (size for _, sizes in reversed(kept) for size in reversed(sizes))
    left_out = sum(len(sizes) for _, sizes in kept) - _count_fitting(newest_first, budget)
    # All that do not fit are in the first batch.
    return [batch.slice(left_out if at == 0 else 0) for at, (batch, _) in enumerate(kept)], total


def read_after(log: Log, topic: str, position: Mapping[Partition, int], limit: int) -> Page:
    """Return the records after a position. TopicNotFound, PositionLost.

    Partitions that it does not name are read from their start.
    """
    extents = log.extents(topic)
    reached = {place: position.get(place, extents[place].first_offset) for place in extents}
    for place, offset in reached.items():
        _check_offset(place, offset, extents[place])
    behind = [place for place in extents if reached[place] < extents[place].end_offset]
    while behind:
        page = _read_part(log, reached, extents, behind, limit)
        if page.records:
            return page
        # Offsets without a record, as transactions of Kafka leave them.
        reached = page.position
        behind = [place for place in behind if reached[place] < extents[place].end_offset]
    return Page([], reached)


def _read_part(
    log: Log,
    reached: Position,
    extents: Mapping[Partition, Extent],
    behind: list[Partition],
    limit: int,
) -> Page:
    budget = MAX_PAGE_BYTES // len(behind)
    read_up_to: Position = {}
    parts: list[list[_Row]] = []
    for place in behind:
        end = min(extents[place].end_offset, reached[place] + limit)
        batches, read_up_to[place] = _read_start(log, Range(place, reached[place], end), budget)
        parts.append(list(_rows(place, batches)))
    taken = list(islice(heapq.merge(*parts, key=_order), limit))
    taken = taken[: _count_fitting((row.size for row in taken), MAX_PAGE_BYTES)]
    position = dict(reached)
    counts = dict.fromkeys(behind, 0)
    for row in taken:
        counts[row.place] += 1
        position[row.place] = row.offset + 1
    for place, rows in zip(behind, parts, strict=True):
        if counts[place] == len(rows):
            position[place] = read_up_to[place]
    return Page([row.to_json() for row in taken], position)


def _read_start(log: Log, range_: Range, budget: int) -> tuple[list[pa.RecordBatch], int]:
    """Return the first records of a range that fit, and the offset after them."""
    batches: list[pa.RecordBatch] = []
    count = size = 0
    for batch in log.read(range_, max_batch_records=_BATCH_RECORDS):
        sizes = _sizes(batch)
        fitting = _count_fitting(sizes, budget - size, one=count == 0)
        batches.append(batch.slice(0, fitting))
        if fitting < batch.num_rows:
            return batches, batch.column("offset")[fitting].as_py()
        count += fitting
        size += sum(sizes)
    return batches, range_.end


def _count_fitting(sizes: Iterable[int], budget: int, *, one: bool = True) -> int:
    """Return how many of the first records fit; `one` does, whatever its size."""
    count = total = 0
    for size in sizes:
        total += size
        if total > budget and (count or not one):
            break
        count += 1
    return count


def _sizes(batch: pa.RecordBatch) -> list[int]:
    """Return how many bytes the key, the value and the headers of each record have."""
    keys, values = (pc.binary_length(batch.column(name)).to_pylist() for name in ("key", "value"))
    found = [(key or 0) + (value or 0) for key, value in zip(keys, values, strict=True)]
    headers = batch.column("headers")
    if headers.null_count < len(headers):
        names, texts = (pc.binary_length(each).to_pylist() for each in headers.flatten().flatten())
        sizes = ((name or 0) + (text or 0) for name, text in zip(names, texts, strict=True))
        for at, count in enumerate(pc.list_value_length(headers).to_pylist()):
            found[at] += sum(islice(sizes, count or 0))
    return found


@dataclass(frozen=True)
class _Row:
    place: Partition
    offset: int
    arrival_us: int | None
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, Any]] | None

    @property
    def size(self) -> int:
        """How many bytes its key, its value and its headers have."""
        headers = sum(
            len(each["name"].encode()) + len(each["value"] or b"") for each in self.headers or ()
        )
        return len(self.key or b"") + len(self.value or b"") + headers

    def to_json(self) -> dict[str, Any]:
        """Return the record; bytes that are no text are in base64, under another name."""
        found: dict[str, Any] = {
            "partition": self.place.number,
            "offset": self.offset,
            "arrival_us": self.arrival_us,
        }
        for name, data in (("key", self.key), ("value", self.value)):
            try:
                found[name] = None if data is None else data.decode()
            except UnicodeDecodeError:
                found[name] = None
                found[f"{name}_base64"] = base64.b64encode(data or b"").decode()
        found["headers"] = {
            each["name"]: None if each["value"] is None else each["value"].decode(errors="replace")
            for each in self.headers or ()
        }
        return found


def _rows(place: Partition, batches: list[pa.RecordBatch]) -> Iterator[_Row]:
    for batch in batches:
        arrivals = batch.column("arrival").cast(pa.int64())
        columns = [batch.column(name).to_pylist() for name in ("key", "value", "headers")]
        offsets = batch.column("offset").to_pylist()
        for offset, arrival_us, *rest in zip(offsets, arrivals.to_pylist(), *columns, strict=True):
            yield _Row(place, offset, arrival_us, *rest)


def _order(row: _Row) -> tuple[int, int, int]:
    return row.arrival_us or 0, row.place.number, row.offset
