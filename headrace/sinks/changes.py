"""Publish the changes of views to the topics of their sinks: each once, whatever crashes.

A sink reads the changes after the last commit it was told of, as records in its mode. Of one commit
they are always the same: the store keeps it as it is until the sink has it, and where several
commits are told as one, how far is noted first. A record goes to the partition of its key; the
producer's id names sink and store, and its sequence is the record's place: commit, step, ordinal.
The log keeps both, so what of it is already there after a crash is left out.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import faults
from headrace.ledger.following import SinkState
from headrace.log.base import APPENDS, DEFAULT_PARTITIONS, HEADERS, Log, Partition, Producer
from headrace.log.records import share_out
from headrace.schema.envelopes import ORDINALS, Envelope
from headrace.sinks.outbox import ensure_topic
from headrace.store.base import SinkChanges, Snapshot, Store

__all__ = ["publish_changes"]

# What is appended at once, however many rows change.
_PIECE_ROWS = 8_192
_PIECE_BYTES = 16 << 20

# A sequence is commit, step, pass and ordinal; of ordinals there is room for 536 million.
_PASS_BITS = 29
_STEP_BITS = 30
_COMMIT_BITS = 31
_SEQUENCED = APPENDS.append(pa.field("sequence", pa.int64()))


def publish_changes(
    log: Log,
    store: Store,
    epoch: int,
    topics: Collection[str] | None = None,
    *,
    may_wait: bool = False,
) -> set[str]:
    """Publish what sinks wait for, all or those of some topics; return where there was something.

    With `may_wait` it may be noted later that they have it. ProducerFenced, Unreachable.
    """
    with store.open() as snapshot:
        behind = _behind(snapshot, topics)
        as_one = [state for state in behind if state.sink.emit == "every"]
        if not as_one:
            appended = _append(log, snapshot, behind, epoch)
    if as_one:
        return _publish_as_one(log, store, epoch, behind)
    return _note(store, appended, may_wait=may_wait)


def _publish_as_one(log: Log, store: Store, epoch: int, behind: Sequence[SinkState]) -> set[str]:
    """Publish where some sinks are told of several commits as one: how far is noted first."""
    # What a crash left on its way is told first, up to where it was going to.
    left = {state.sink.topic for state in behind if state.until is not None}
    published = _publish(log, store, epoch, left) if left else set()
    store.begin_publishing([state.sink.topic for state in behind if state.sink.emit == "every"])
    return published | _publish(log, store, epoch, {state.sink.topic for state in behind})


class _Appended(NamedTuple):
    """Up to which commit the sinks of topics have all changes, and for which there were some."""

    told: Mapping[str, int]
    changed: set[str]


def _publish(log: Log, store: Store, epoch: int, topics: Collection[str]) -> set[str]:
    with store.open() as snapshot:
        appended = _append(log, snapshot, _behind(snapshot, topics), epoch)
    return _note(store, appended)


def _append(log: Log, snapshot: Snapshot, behind: Sequence[SinkState], epoch: int) -> _Appended:
    told: dict[str, int] = {}
    changed: set[str] = set()
    for state in behind:
        sink = _Sink(log, state, snapshot.store_id(), epoch)
        for changes in snapshot.sink_changes(state):
            if sink.publish(changes):
                changed.add(state.sink.topic)
        told[state.sink.topic] = snapshot.commits() if state.until is None else state.until
    return _Appended(told, changed)


def _note(store: Store, appended: _Appended, *, may_wait: bool = False) -> set[str]:
    if appended.told:
        faults.reach("sink_after_append")
        store.told(appended.told, may_wait=may_wait)
    return appended.changed


def _behind(snapshot: Snapshot, topics: Collection[str] | None) -> list[SinkState]:
    head = snapshot.commits()
    return [
        state
        for state in snapshot.sinks()
        if (topics is None or state.sink.topic in topics)
        and (state.told < head or state.first is not None)
    ]


class _Sink:
    """The way to one sink's topic."""

    def __init__(self, log: Log, state: SinkState, store_id: str, epoch: int) -> None:
        self._log = log
        self._sink = state.sink
        self._source = {"connector": "headrace", "view": state.sink.view}
        self._producer_id = f"headrace.sink:{state.sink.name}@{store_id}"
        self._epoch = epoch
        self._stored: dict[int, int] = {}  # the last sequence of each partition

    def publish(self, changes: SinkChanges) -> int:
        """Append the records of changes that are not in the topic yet."""
        sink = self._sink
        envelope = Envelope(sink.mode, changes.old, changes.new, sink.key)
        source = {**self._source, "version": changes.version, "commit": changes.commit}
        place = (changes.commit << _COMMIT_BITS) | (changes.step << _STEP_BITS)
        return sum(
            self._publish_pass(changes, envelope, source, number, place | (number << _PASS_BITS))
            for number in range(envelope.passes)
        )

    def _publish_pass(
        self,
        changes: SinkChanges,
        envelope: Envelope,
        source: Mapping[str, object],
        number: int,
        first: int,
    ) -> int:
        appended = 0
        for rows in changes.rows():
            records = envelope.encode(rows, source, pass_number=number, is_first=changes.is_first)
            sequence = pc.add(records["ordinal"], first)
            first += rows.num_rows * ORDINALS
            columns = [
                records["key"],
                records["value"],
                pa.nulls(records.num_rows, HEADERS),
                sequence,
            ]
            table = pa.table(columns, schema=_SEQUENCED).combine_chunks()
            for piece in _pieces(table):
                appended += self._append(piece)
        return appended

    def _append(self, piece: pa.RecordBatch) -> int:
        topic = self._sink.topic
        faults.reach("sink_before_append")
        ensure_topic(self._log, topic, DEFAULT_PARTITIONS)
        partitions = self._log.topic(topic).partitions
        appended = 0
        for number, share in share_out(piece, partitions=partitions, keyless=0):
            sequences = share["sequence"].to_numpy()
            fresh = share.filter(pa.array(sequences > self._last_stored(number)))
            if not fresh.num_rows:
                continue
            last = fresh["sequence"][-1].as_py()
            table = pa.Table.from_batches([fresh.select(APPENDS.names)])
            producer = Producer(self._producer_id, self._epoch, last)
            self._log.append(topic, table, partition=number, producer=producer)
            self._stored[number] = last
            appended += fresh.num_rows
        return appended

    def _last_stored(self, number: int) -> int:
        if number not in self._stored:
            partition = Partition(self._sink.topic, number)
            stored = self._log.last_sequence(partition, self._producer_id)
            self._stored[number] = -1 if stored is None else stored
        return self._stored[number]


def _pieces(records: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield records in pieces of bounded size; the last one of a piece may go past the bytes."""
    for batch in records.to_batches(max_chunksize=_PIECE_ROWS):
        sizes = sum(
            pc.fill_null(pc.binary_length(batch[name]), 0).to_numpy(zero_copy_only=False)
            for name in ("key", "value")
        )
        start = 0
        while start < batch.num_rows:
            upto = np.cumsum(sizes[start:])
            count = int(np.searchsorted(upto, _PIECE_BYTES)) + 1
            yield batch.slice(start, count)
            start += count
