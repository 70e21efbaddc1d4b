"""Publish the outbox to its topics: every record once, whatever crashes.

An entry names records by their place in the source topic; they are read from there and appended,
raw, to the partition of the same number, with the reason and the coordinates as headers. The
producer's id names the set (a version's late or dead records) and its sequence is the source
offset of the last record. The log keeps both, so whatever of an entry is already there is left
out: after a crash between append and note, after a replay into a new store, always.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace import faults
from headrace.errors import TopicExists, TopicNotFound
from headrace.ledger.entries import OutboxEntry
from headrace.log.base import (
    APPENDS,
    HEADERS,
    MAX_RECORD_BYTES,
    RECORDS,
    Log,
    Partition,
    Producer,
    Range,
)
from headrace.log.records import record_bytes
from headrace.log.sharing import PRODUCER_HEADER_BYTES
from headrace.store.base import Store

__all__ = [
    "HEADER_OFFSET",
    "HEADER_REASON",
    "HEADER_VERSION",
    "ensure_topic",
    "publish",
    "publish_entry",
]

HEADER_REASON = "headrace.reason"
HEADER_VERSION = "headrace.version"
HEADER_TOPIC = "headrace.topic"
HEADER_PARTITION = "headrace.partition"
HEADER_OFFSET = "headrace.offset"

# What is held in memory at once, however many records are late or dead.
_PIECE_RECORDS = 8_192
_PIECE_BYTES = 16 << 20
# The largest record that is copied: half of what a producer may add is more than our headers take.
_COPIED_BYTES = MAX_RECORD_BYTES + PRODUCER_HEADER_BYTES // 2


def ensure_topic(log: Log, name: str, partitions: int) -> None:
    """Make a topic unless it is there, with whatever partitions it has."""
    try:
        log.topic(name)
    except TopicNotFound:
        with suppress(TopicExists):  # another process was faster
            log.create_topic(name, partitions=partitions)


def publish(log: Log, store: Store, epoch: int) -> int:
    """Publish all that waits and return how many records were appended. ProducerFenced."""
    appended = 0
    with store.open() as snapshot:
        waiting = snapshot.outbox()
    for number, entry in waiting:
        faults.reach("before_publish")
        appended += publish_entry(log, entry, epoch)
        faults.reach("during_publish")
        store.published([number])
    faults.reach("after_publish")
    return appended


def publish_entry(log: Log, entry: OutboxEntry, epoch: int) -> int:
    """Publish one entry in pieces of bounded size, each with its own sequence."""
    source = entry.source.partition
    partitions = log.topic(source.topic).partitions
    ensure_topic(log, entry.topic, partitions)
    if log.topic(entry.topic).partitions <= source.number:  # some were added to the source
        log.change_topic(entry.topic, partitions=partitions)
    stored = log.last_sequence(Partition(entry.topic, source.number), entry.producer_id)
    fresh = pc.greater(entry.offsets, -1 if stored is None else stored)
    offsets, reasons = entry.offsets.filter(fresh), entry.reasons.filter(fresh)
    if not len(offsets):
        return 0
    done = 0
    for found in _look_up(log, source, offsets):
        for start, stop in _pieces(found):
            piece = found.slice(start, stop - start)
            headers = _headers(piece, entry, reasons.slice(done + start, stop - start))
            table = pa.table([piece["key"], piece["value"], headers], schema=APPENDS)
            producer = Producer(entry.producer_id, epoch, piece["offset"][-1].as_py())
            log.append(entry.topic, table, partition=source.number, producer=producer)
        done += found.num_rows
    return done


def _look_up(log: Log, source: Partition, offsets: pa.Array) -> Iterator[pa.RecordBatch]:
    """Yield the records with these offsets, in order: all of them, in batches of some size.

    One that retention or compaction took away after its turn comes without key and value, so that
    its place and the reason are still told; and so does one that is too large for a record of ours,
    as Kafka may hold from others.
    """
    wanted = offsets.to_numpy()
    first_offset = log.extents(source.topic)[source].first_offset
    start, end = max(int(wanted[0]), first_offset), int(wanted[-1]) + 1
    done = 0
    for batch in log.read(Range(source, start, max(start, end)), max_batch_records=_PIECE_RECORDS):
        there = batch["offset"].to_numpy()
        reached = int(np.searchsorted(wanted, there[-1] + 1))
        yield _take(batch, there, wanted[done:reached])
        done = reached
    nothing = pa.RecordBatch.from_pylist([], RECORDS)
    for start in range(done, len(wanted), _PIECE_RECORDS):
        yield _take(nothing, np.array([], np.int64), wanted[start : start + _PIECE_RECORDS])


def _take(
    batch: pa.RecordBatch, there: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    places = np.searchsorted(there, wanted)
    # Offsets that the log leaves out are not in the batch.
    missing = places == len(there)
    missing[~missing] = there[places[~missing]] != wanted[~missing]
    missing[~missing] = record_bytes(batch)[places[~missing]] > _COPIED_BYTES
    found = batch.take(pa.array(places, pa.int64(), mask=missing))
    return found.set_column(0, RECORDS.field("offset"), pa.array(wanted))


def _pieces(records: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield where to cut records so that no piece is much larger than the limit."""
    sizes = pc.fill_null(pc.binary_length(records["value"]), 0).to_numpy(zero_copy_only=False)
    numbers = np.cumsum(sizes.astype(np.int64)) // _PIECE_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), records.num_rows]
    yield from (pair for pair in pairwise(cuts) if pair[0] < pair[1])


def _headers(records: pa.RecordBatch, entry: OutboxEntry, reasons: pa.Array) -> pa.Array:
    """Return each record's own headers with ours after them, without a loop over records."""
    count = records.num_rows
    source = entry.source.partition
    ours = {
        HEADER_REASON: reasons.cast(pa.binary()),
        HEADER_VERSION: _repeat(entry.producer_id.rpartition("@")[2], count),
        HEADER_TOPIC: _repeat(source.topic, count),
        HEADER_PARTITION: _repeat(str(source.number), count),
        HEADER_OFFSET: records["offset"].cast(pa.string()).cast(pa.binary()),
    }
    own = records["headers"].fill_null([])
    own_counts = pc.list_value_length(own).to_numpy()
    names = [own.flatten().field("name"), *(_repeat(name, count, pa.string()) for name in ours)]
    values = [own.flatten().field("value"), *ours.values()]
    # Where each header goes: a record's own first, then ours in order.
    ends = np.cumsum(own_counts + len(ours))
    starts = ends - own_counts - len(ours)
    rank = np.arange(own_counts.sum()) - np.repeat(np.cumsum(own_counts) - own_counts, own_counts)
    places = [np.repeat(starts, own_counts) + rank]
    places += [starts + own_counts + i for i in range(len(ours))]
    order = np.argsort(np.concatenate(places))
    struct = pa.StructArray.from_arrays(
        [pa.concat_arrays(names).take(order), pa.concat_arrays(values).take(order)],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(np.concatenate(([0], ends)).astype(np.int32), struct)


def _repeat(text: str, count: int, type: pa.DataType | None = None) -> pa.Array:
    array = pa.repeat(pa.scalar(text, pa.string()), count)
    return array if type is not None else array.cast(pa.binary())
