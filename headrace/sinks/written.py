"""Publish the rows of streams that are written to topics: each once, whatever crashes.

Rows wait in the store with numbers that grow. The producer's id names the stream and the partition
that the source record stands in, and its sequence is the record's offset and the row's ordinal. All
rows of a producer that are published together are one append, whichever partitions they go to, so
the newest sequence that any partition has tells what is there: after a crash, after an edit, and in
the log of a store that is built anew.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import faults
from headrace.log.base import APPENDS, HEADERS, Append, Log, Partition, Producer
from headrace.log.records import share_out
from headrace.sinks.outbox import (
    HEADER_OFFSET,
    HEADER_PARTITION,
    HEADER_TOPIC,
    HEADER_VERSION,
    ensure_topic,
)
from headrace.sinks.paging import publish_pages
from headrace.store.base import Snapshot, Store

__all__ = ["HEADER_BRANCH", "HEADER_ORDINALS", "HEADER_WATERMARK", "publish_written"]

HEADER_BRANCH = "headrace.branch"
HEADER_ORDINALS = "headrace.ordinals"
HEADER_WATERMARK = "headrace.watermark"

# From the columns of WRITTEN_ROWS; where one is null there is no such header.
_HEADERS = {
    HEADER_VERSION: "version",
    HEADER_TOPIC: "source_topic",
    HEADER_PARTITION: "source_partition",
    HEADER_OFFSET: "source_offset",
    HEADER_BRANCH: "branch",
    HEADER_ORDINALS: "ordinals",
    HEADER_WATERMARK: "watermark_us",
}


def publish_written(log: Log, store: Store, epoch: int) -> int:
    """Publish all rows that wait, and return how many were appended. ProducerFenced."""
    return publish_pages(store, _WrittenRows(log, store, epoch))


class _WrittenRows:
    def __init__(self, log: Log, store: Store, epoch: int) -> None:
        self._log = log
        self._store = store
        self._epoch = epoch

    def read(self, snapshot: Snapshot, *, max_rows: int, max_bytes: int) -> pa.Table:
        return snapshot.written_rows(max_rows=max_rows, max_bytes=max_bytes)

    def append(self, rows: pa.Table) -> int:
        appended = 0
        for topic in pc.unique(rows["topic"]).to_pylist():
            of_topic = rows.filter(pc.equal(rows["topic"], topic))
            for producer_id in pc.unique(of_topic["producer_id"]).to_pylist():
                faults.reach("stream_before_append")
                mine = of_topic.filter(pc.equal(of_topic["producer_id"], producer_id))
                for part in _alike(mine.combine_chunks()):
                    appended += _publish(self._log, topic, producer_id, part, self._epoch)
        faults.reach("stream_after_append")
        return appended

    def forget(self, rows: pa.Table) -> None:
        self._store.wrote(rows["number"][-1].as_py())


def _alike(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield rows in their order, those together that go by their keys, or do not.

    Versions may differ in that, and the rows of one may wait behind those of another.
    """
    by_key = rows["by_key"].to_numpy()
    cuts = [0, *(np.flatnonzero(by_key[1:] != by_key[:-1]) + 1).tolist(), rows.num_rows]
    yield from (rows.slice(start, stop - start) for start, stop in pairwise(cuts))


def _publish(log: Log, topic: str, producer_id: str, rows: pa.Table, epoch: int) -> int:
    source, number = rows["source_topic"][0].as_py(), rows["source_partition"][0].as_py()
    by_key = rows["by_key"][0].as_py()
    wanted = log.topic(source).partitions
    ensure_topic(log, topic, wanted)
    partitions = log.topic(topic).partitions
    if not by_key and partitions <= number:  # some were added to the source
        partitions = log.change_topic(topic, partitions=wanted).partitions
    stored = [log.last_sequence(Partition(topic, each), producer_id) for each in range(partitions)]
    newest = max((each for each in stored if each is not None), default=-1)
    rows = rows.filter(pc.greater(rows["sequence"], newest)).combine_chunks()
    if not rows.num_rows:
        return 0
    columns = [
        rows["key"].combine_chunks(),
        rows["value"].cast(pa.binary()).combine_chunks(),
        _headers(rows),
        rows["sequence"].combine_chunks(),
    ]
    batch = pa.record_batch(columns, schema=APPENDS.append(pa.field("sequence", pa.int64())))
    shares = [(number, batch)]
    if by_key:
        shares = list(share_out(batch, partitions=partitions, keyless=number % partitions))
    appends = [
        Append(
            topic,
            pa.Table.from_batches([share.select(APPENDS.names)]),
            partition,
            Producer(producer_id, epoch, share["sequence"][-1].as_py()),
        )
        for partition, share in shares
    ]
    if len(appends) > 1:
        log.append_all(appends)
    else:
        topic, records, partition, producer = appends[0]
        log.append(topic, records, partition=partition, producer=producer)
    return int(rows.num_rows)


def _headers(rows: pa.Table) -> pa.Array:
    """Return the headers of each row, without a loop over rows."""
    count, width = rows.num_rows, len(_HEADERS)
    values = pa.concat_arrays(
        [
            rows[column].cast(pa.string()).cast(pa.binary()).combine_chunks()
            for column in _HEADERS.values()
        ]
    )
    # Row by row instead of header by header, and without those that a row has not.
    order = (np.arange(count)[:, None] + count * np.arange(width)[None, :]).ravel()
    values = values.take(pa.array(order))
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    names = pa.array(list(_HEADERS), pa.string()).take(pa.array(np.tile(np.arange(width), count)))
    struct = pa.StructArray.from_arrays(
        [names.filter(pa.array(there)), values.filter(pa.array(there))],
        fields=list(HEADERS.value_type),
    )
    ends = np.cumsum(there.reshape(count, width).sum(axis=1))
    return pa.ListArray.from_arrays(np.concatenate(([0], ends)).astype(np.int32), struct)
