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
from headrace.sinks.paging import publish_pages
from headrace.store.base import Snapshot, Store

__all__ = ["publish_emissions"]


def publish_emissions(log: Log, store: Store, epoch: int) -> int:
    """Publish all rows that wait, and return how many were appended. ProducerFenced."""
    return publish_pages(store, _Emissions(log, store, epoch))


class _Emissions:
    def __init__(self, log: Log, store: Store, epoch: int) -> None:
        self._log = log
        self._store = store
        self._epoch = epoch
        self._store_id = ""

    def read(self, snapshot: Snapshot, *, max_rows: int, max_bytes: int) -> pa.Table:
        self._store_id = snapshot.store_id()
        return snapshot.emissions(max_rows=max_rows, max_bytes=max_bytes)

    def append(self, rows: pa.Table) -> int:
        appended = 0
        for topic in pc.unique(rows["topic"]).to_pylist():
            faults.reach("sink_before_append")
            mine = rows.filter(pc.equal(rows["topic"], topic)).combine_chunks()
            producer_id = f"headrace.sink:{mine['sink'][0]}@{self._store_id}"
            appended += _publish(self._log, topic, mine, producer_id, self._epoch)
        faults.reach("sink_after_append")
        return appended

    def forget(self, rows: pa.Table) -> None:
        # Numbers grow, so the last of a topic is the one that stays.
        self._store.emitted(
            dict(zip(*(rows[each].to_pylist() for each in ("topic", "number")), strict=True))
        )


def _publish(log: Log, topic: str, rows: pa.Table, producer_id: str, epoch: int) -> int:
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
    appended = 0
    for number, share in share_out(batch, partitions=partitions, keyless=0):
        stored = log.last_sequence(Partition(topic, number), producer_id)
        fresh = share["number"].to_numpy() > (-1 if stored is None else stored)
        share = share.filter(pa.array(fresh)) if not np.all(fresh) else share
        if not share.num_rows:
            continue
        producer = Producer(producer_id, epoch, share["number"][-1].as_py())
        table = pa.Table.from_batches([share.select(APPENDS.names)])
        log.append(topic, table, partition=number, producer=producer)
        appended += share.num_rows
    return appended
