"""Whether the records of streams with a unique id stand where their keys put them.

Duplicates are found within a partition, so records of one id must share one. Who appends without
the key, names partitions, uses another partitioner or has added partitions since breaks that, and a
duplicate is then counted as a record.

Looked at are the first and the last SAMPLE_RECORDS of each partition: how producers began, and how
they append now. So it costs the same however long the log is (11 ms for 4 partitions of an embedded
log, 2 cores), and what stands in between is not seen. It follows from the log and the number of its
partitions, not from what an engine has read; an answer is kept for KEPT_S.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.errors import LogError, PositionLost, UsageError
from headrace.log.base import Extent, Log, Partition, Range
from headrace.log.murmur2 import partition_of
from headrace.model.definitions import Stream
from headrace.project.keys import KeyReader, declared_key
from headrace.project.row_keys import RowKeyReader
from headrace.wording import counted

__all__ = ["placing_warnings"]

SAMPLE_RECORDS = 256
KEPT_S = 10.0


class _Found(NamedTuple):
    looked_at: int = 0
    without_key: int = 0
    elsewhere: int = 0  # not in the partition of their key
    other_key: int = 0  # in the partition of a key that is not the declared one


_kept: "WeakKeyDictionary[Log, dict[Stream, tuple[float, object, str | None]]]"
_kept = WeakKeyDictionary()


def placing_warnings(log: Log, streams: Iterable[Stream]) -> tuple[str, ...]:
    """Return a sentence for each stream whose duplicates may not be found.

    Also for one whose records cannot be looked at: status is asked for most when a log is damaged.
    """
    known = {topic.name: topic.partitions for topic in log.topics()}
    asked = [each for each in streams if each.unique and known.get(each.topic, 1) > 1]
    kept = _kept.setdefault(log, {})
    found: list[str | None] = []
    for stream in dict.fromkeys(asked):
        extents = log.extents(stream.topic)
        at_s, before, told = kept.get(stream, (0.0, None, None))
        if before != extents and (before is None or time.monotonic() - at_s > KEPT_S):
            try:
                told = _tell(stream, _look(log, stream, extents))
            except LogError as error:
                told = f"stream {stream.name}: its records cannot be looked at: {error}"
            kept[stream] = (time.monotonic(), extents, told)
        found.append(told)
    return tuple(each for each in found if each is not None)


def _look(log: Log, stream: Stream, extents: Mapping[Partition, Extent]) -> _Found:
    reader = None
    if stream.key is not None:
        with suppress(UsageError):  # a computed key, of which only Spark knows
            reader = declared_key([stream], stream.topic)
    sampled = [
        (place.number, batch.select(["key", "value"]))
        for place, extent in extents.items()
        for batch in _sample(log, place, extent)
    ]
    if not sampled:
        return _Found()
    # Joined, since setting up the decoder costs more than it takes for so few records.
    numbers = np.repeat([number for number, _ in sampled], [len(batch) for _, batch in sampled])
    batch = pa.Table.from_batches([batch for _, batch in sampled]).combine_chunks().to_batches()[0]
    return _count(batch, numbers, len(extents), reader)


def _sample(log: Log, place: Partition, extent: Extent) -> Iterator[pa.RecordBatch]:
    first, end = extent
    head = min(first + SAMPLE_RECORDS, end)
    for start, stop in ((first, head), (max(head, end - SAMPLE_RECORDS), end)):
        if start < stop:
            with suppress(PositionLost):  # retention was faster
                yield from log.read(Range(place, start, stop))


def _count(
    batch: pa.RecordBatch,
    numbers: npt.NDArray[np.int64],
    partitions: int,
    reader: KeyReader | RowKeyReader | None,
) -> _Found:
    keys = batch["key"]
    keyed = keys.is_valid().to_numpy(zero_copy_only=False)
    right = partition_of(keys, partitions) == numbers
    other = np.zeros(len(keys), dtype=bool)
    if reader is not None:
        declared = reader(batch["value"])
        is_read = declared.is_valid().to_numpy(zero_copy_only=False)
        other = is_read & keyed & right & (partition_of(declared, partitions) != numbers)
    return _Found(len(keys), int((~keyed).sum()), int((keyed & ~right).sum()), int(other.sum()))


def _tell(stream: Stream, found: _Found) -> str | None:
    parts = []
    if found.without_key:
        parts.append(f"{found.without_key:,} without a key")
    if found.elsewhere:
        parts.append(f"{found.elsewhere:,} outside of the partition of the key")
    if found.other_key:
        parts.append(f"{found.other_key:,} with another key than {stream.key}")
    if not parts:
        return None
    return (
        f"stream {stream.name}: duplicates can be missed, because records of one {stream.unique} "
        f"may stand in several partitions of {stream.topic}. A look at "
        f"{counted(found.looked_at, 'record')}, the first and last of each partition, found "
        f"{', '.join(parts)}. Append with `headrace append {stream.topic}`, which uses the "
        f"declared key, or the unique id of records without it. Records already in the log are "
        f"not moved, and their counts do not change."
    )
