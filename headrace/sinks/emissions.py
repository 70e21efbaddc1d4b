"""Publish the rows that sinks are told to their topics: each once, whatever crashes.

Rows wait in the store with numbers that grow. A row goes to the partition of its key; the
producer's id names sink and store, and its sequence is the number of the last row. The log keeps
both, so what of it is already there after a crash is left out.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import faults
from headrace.log.base import APPENDS, DEFAULT_PARTITIONS, HEADERS, Log, Partition, Producer
from headrace.log.records import share_out
from headrace.sinks.outbox import ensure_topic
from headrace.store.base import Store

__all__ = ["publish_emissions"]

# What is held in memory at once, however many rows wait.
_PIECE_ROWS = 8_192
_PIECE_BYTES = 16 << 20


def publish_emissions(log: Log, store: Store, epoch: int) -> int:
    """Publish all rows that wait, and return how many. ProducerFenced."""
    published = 0
    while True:
        with store.open() as snapshot:
            found = snapshot.emissions(max_rows=_PIECE_ROWS, max_bytes=_PIECE_BYTES)
            store_id = snapshot.store_id()
        rows = found.combine_chunks()
        if not rows.num_rows:
            return published
        numbers: dict[str, int] = {}
        for topic in pc.unique(rows["topic"]).to_pylist():
            faults.reach("sink_before_append")
            mine = rows.filter(pc.equal(rows["topic"], topic)).combine_chunks()
            _publish(log, topic, mine, f"headrace.sink:{mine['sink'][0]}@{store_id}", epoch)
            numbers[topic] = mine["number"][-1].as_py()
            published += mine.num_rows
        faults.reach("sink_after_append")
        store.emitted(numbers)


def _publish(log: Log, topic: str, rows: pa.Table, producer_id: str, epoch: int) -> None:
    ensure_topic(log, topic, DEFAULT_PARTITIONS)
    records = pa.table(
        [
            rows["key"].cast(pa.binary()),
            rows["value"].cast(pa.binary()),
            pa.nulls(rows.num_rows, HEADERS),
            rows["number"],
        ],
        schema=APPENDS.append(pa.field("number", pa.int64())),
    ).combine_chunks()
    [batch] = records.to_batches()
    partitions = log.topic(topic).partitions
    for number, share in share_out(batch, partitions=partitions, keyless=0):
        stored = log.last_sequence(Partition(topic, number), producer_id)
        fresh = share["number"].to_numpy() > (-1 if stored is None else stored)
        share = share.filter(pa.array(fresh)) if not np.all(fresh) else share
        if not share.num_rows:
            continue
        producer = Producer(producer_id, epoch, share["number"][-1].as_py())
        table = pa.Table.from_batches([share.select(APPENDS.names)])
        log.append(topic, table, partition=number, producer=producer)
