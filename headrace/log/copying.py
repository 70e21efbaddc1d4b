"""Copy topics from one log into another, embedded or on Kafka: either way, and to go on later.

Promises:
- A topic's copy has its partitions and settings; the n-th record of a partition there is the n-th
  record here, with key, value and headers.
- A copy that was interrupted goes on where it was, and one that is repeated brings what is new:
  every record is copied once. Each batch is appended by a producer whose sequence is the last
  source offset in it, which the target keeps. Not promised with two copies at the same time.
- The embedded log keeps arrivals. Kafka stamps its own, so there the original is a header,
  ARRIVAL_HEADER, in µs since 1970; copied back into an embedded log it becomes the arrival again.
What cannot be kept is told in `CopiedTopic.notes`, and nothing that is not told is lost. Queues are
not copied, nor what producers have stored; groups are, by `consume/copying.py`, and markers, by
`time/copying.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import TopicNotFound, UsageError
from headrace.log.base import APPENDS, HEADERS, RECORDS, Log, Partition, Producer, Range, Topic
from headrace.log.embedded import EmbeddedLog
from headrace.wording import counted

__all__ = ["ARRIVAL_HEADER", "CopiedTopic", "copy_producer", "copy_topic"]

ARRIVAL_HEADER = "headrace.arrival"

BATCH_RECORDS = 8_192

OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class CopiedTopic:
    """What was copied of a topic now, and what its copy does not keep."""

    topic: str
    records: int
    notes: tuple[str, ...]


def copy_producer(topic: str) -> str:
    """Return the id of the producer that copies a topic; its sequences are source offsets."""
    return f"headrace.copy:{topic}"


def copy_topic(
    source: Log, target: Log, name: str, *, on_progress: OnProgress = lambda _: None
) -> CopiedTopic:
    """Copy a topic up to its end as it is now; `on_progress` hears how many records, each time.

    UsageError: the target's topic of this name is no copy of this one.
    """
    topic = source.topic(name)
    producer_id = copy_producer(name)
    extents = source.extents(name)
    _ensure_copy(target, topic, producer_id)
    epoch = target.begin_producer(producer_id)
    copied = 0
    notes: set[str] = set()
    for place, extent in sorted(extents.items()):
        stored = target.last_sequence(place, producer_id)
        start = extent.first_offset if stored is None else max(extent.first_offset, stored + 1)
        if stored is not None and start > stored + 1:
            notes.add(
                f"{place}: records from offset {stored + 1} to {start - 1} were removed from the "
                f"source before they could be copied"
            )
        for batch in source.read(
            Range(place, start, max(start, extent.end_offset)), max_batch_records=BATCH_RECORDS
        ):
            producer = Producer(producer_id, epoch, batch["offset"][-1].as_py())
            notes |= _append(target, place, batch, producer)
            copied += batch.num_rows
            on_progress(batch.num_rows)
    return CopiedTopic(name, copied, tuple(sorted(notes)))


def _ensure_copy(target: Log, topic: Topic, producer_id: str) -> None:
    try:
        found = target.topic(topic.name)
    except TopicNotFound:
        target.create_topic(topic.name, partitions=topic.partitions, settings=topic.settings)
        return
    if found.partitions < topic.partitions and _is_copy(target, found, producer_id):
        target.change_topic(topic.name, partitions=topic.partitions)
    elif found.partitions != topic.partitions:
        raise UsageError(
            f"{topic.name}: it has {counted(topic.partitions, 'partition')} here and "
            f"{found.partitions} there. A copy keeps partitions; delete that topic, or copy to "
            f"another prefix or folder."
        )
    elif not _is_copy(target, found, producer_id):
        raise UsageError(
            f"{topic.name}: the target has records in a topic of this name that were not copied "
            f"from here. Delete that topic, or copy to another prefix or folder."
        )


def _is_copy(target: Log, topic: Topic, producer_id: str) -> bool:
    """Whether each partition of a topic is empty, or has records that were copied."""
    return all(
        extent.first_offset == extent.end_offset
        or target.last_sequence(place, producer_id) is not None
        for place, extent in target.extents(topic.name).items()
    )


def _append(target: Log, place: Partition, batch: pa.RecordBatch, producer: Producer) -> set[str]:
    """Append one batch with its arrivals, as the target can; return what it does not keep."""
    if isinstance(target, EmbeddedLog):
        batch = _restore_arrivals(batch)
        target.append_copied(place, batch, producer.id, producer.epoch)
        if not batch["arrival"].null_count:
            return set()
        return {
            f"{place.topic}: the source did not stamp the arrival of some records; in the copy "
            f"they arrived when they were copied"
        }
    table = pa.table([batch["key"], batch["value"], _with_arrivals(batch)], schema=APPENDS)
    target.append(place.topic, table, partition=place.number, producer=producer)
    return {f"{place.topic}: arrivals are in the header {ARRIVAL_HEADER}; Kafka stamps its own"}


def _with_arrivals(batch: pa.RecordBatch) -> pa.Array:
    """Return the headers of each record with its arrival as one more, if it has one."""
    headers = batch["headers"].fill_null([])
    counts = pc.list_value_length(headers).to_numpy(zero_copy_only=False).astype(np.int64)
    arrivals = batch["arrival"].cast(pa.int64())
    stamped = arrivals.is_valid().to_numpy(zero_copy_only=False)
    ends = np.cumsum(counts + stamped)
    # A record's own headers keep their places; its arrival comes after them.
    places = np.repeat(ends - counts - stamped - (np.cumsum(counts) - counts), counts)
    places = np.concatenate([places + np.arange(counts.sum()), (ends - 1)[stamped]])
    order = pa.array(np.argsort(places))
    own = headers.flatten()
    values = arrivals.drop_null().cast(pa.string()).cast(pa.binary())
    names = pa.repeat(pa.scalar(ARRIVAL_HEADER), len(values))
    struct = pa.StructArray.from_arrays(
        [
            pa.concat_arrays([own.field("name"), names]).take(order),
            pa.concat_arrays([own.field("value"), values]).take(order),
        ],
        fields=list(HEADERS.value_type),
    )
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    return pa.ListArray.from_arrays(offsets, struct).cast(HEADERS)


def _restore_arrivals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records with arrivals that a copy put into headers, and without those headers."""
    headers = batch["headers"]
    flat = headers.flatten()
    ours = pc.equal(flat.field("name"), ARRIVAL_HEADER)
    if not pc.any(ours).as_py():
        return batch
    records = pa.array(np.arange(batch.num_rows))
    # The last, should a producer have sent the header too.
    parents = pc.list_parent_indices(headers).filter(ours)
    found = pc.subtract(len(parents) - 1, pc.index_in(records, parents[::-1]))
    texts = flat.field("value").filter(ours).take(found).cast(pa.string())
    numbers = pc.if_else(pc.match_substring_regex(texts, r"^\d{1,18}$"), texts, None)
    arrivals = pc.coalesce(numbers.cast(pa.int64()), batch["arrival"].cast(pa.int64()))
    rest = [
        [each for each in entry or () if each["name"] != ARRIVAL_HEADER] or None
        for entry in headers.to_pylist()
    ]
    names = batch.schema.names
    field = RECORDS.field("arrival")
    batch = batch.set_column(names.index("arrival"), field, arrivals.cast(field.type))
    return batch.set_column(
        names.index("headers"), RECORDS.field("headers"), pa.array(rest, HEADERS)
    )
