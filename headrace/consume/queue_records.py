"""The records of a queue: read by offset, made into deliveries and dead letters.

Reading is by ranges and columns; rows are made of what is handed out, at the end.

What dies together, of one partition, is one append of the queue's producer, with a sequence of its
own, and sequences are appended in order. So whoever finds the dead appends the same batch, which
the log stores once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.consume.queues import DEAD_HEADERS, Delivery, Queue
from headrace.errors import TopicExists, TopicNotFound
from headrace.log.base import RECORDS, Extent, Log, Partition, Producer, Range
from headrace.log.records import records

__all__ = [
    "CONSUMER_SILENCE_MS",
    "MAX_DEAD_BATCH_RECORDS",
    "MAX_OPEN_RECORDS",
    "SHOW_EVERY_MS",
    "DeadBatch",
    "DeadRow",
    "Held",
    "Start",
    "append_dead_letters",
    "find_starts",
    "make_dead_letter_topic",
    "make_deliveries",
    "read_offsets",
]

#: How many records of a partition are handed out, released or dead at a time.
MAX_OPEN_RECORDS = 2_000
#: A dead-letter append has to fit into one, also with records of the largest size.
MAX_DEAD_BATCH_RECORDS = 256
#: A consumer that has shown itself within this time has a say about the queue's settings.
CONSUMER_SILENCE_MS = 60_000
#: Often enough that a consumer that only waits keeps its say.
SHOW_EVERY_MS = CONSUMER_SILENCE_MS // 4
# Reading up to this many records too many costs less than another range.
MAX_GAP_RECORDS = 256


class Held(NamedTuple):
    """A record that a consumer holds."""

    number: int
    offset: int
    deliveries: int


class Start(NamedTuple):
    """Where a queue begins with a partition: the first record, and the last dead letters."""

    number: int
    offset: int
    dead_sequence: int


class DeadRow(NamedTuple):
    """A record that goes to the dead-letter topic."""

    offset: int
    deliveries: int
    reason: str


class DeadBatch(NamedTuple):
    """What was marked dead together, and is appended together."""

    number: int
    sequence: int
    rows: list[DeadRow]


def read_offsets(
    log: Log, partition: Partition, extent: Extent, offsets: Sequence[int]
) -> pa.Table:
    """Return the records at these offsets, as RECORDS, in order.

    Those that the log has no longer are not among them. The offsets grow; they may be a `range`.
    """
    first, end = extent
    tables = []
    for run in _runs([offset for offset in offsets if first <= offset < end]):
        batches = log.read(Range(partition, run[0], run[-1] + 1))
        table = pa.Table.from_batches(batches, RECORDS)
        if table.num_rows > len(run):
            table = table.filter(pc.is_in(table.column("offset"), pa.array(run, pa.int64())))
        tables.append(table)
    return pa.concat_tables(tables) if tables else RECORDS.empty_table()


def _runs(offsets: Sequence[int]) -> Iterator[Sequence[int]]:
    start = 0
    for index in range(1, len(offsets) + 1):
        if index == len(offsets) or offsets[index] - offsets[index - 1] > MAX_GAP_RECORDS:
            yield offsets[start:index]
            start = index


def make_deliveries(
    partition: Partition, table: pa.Table, counts: Mapping[int, int] | None = None
) -> list[Delivery]:
    """Return records as they are handed out: so often, or for the first time."""
    columns = [table.column(name).to_pylist() for name in RECORDS.names]
    return [
        Delivery(
            partition,
            offset,
            arrival,
            key,
            value,
            [(header["name"], header["value"]) for header in headers or ()],
            1 if counts is None else counts[offset],
        )
        for offset, arrival, key, value, headers in zip(*columns, strict=True)
    ]


def find_starts(log: Log, queue: Queue, known: Collection[int], *, latest: bool) -> list[Start]:
    """Return where a queue begins with partitions that it does not know: at the end if `latest`.

    That is for a new queue; a partition that was added later is read from its start.
    """
    make_dead_letter_topic(log, queue.dead_letters, queue.topic)
    starts = []
    for place, (first, end) in sorted(log.extents(queue.topic).items()):
        if place.number not in known:
            # Should the book be lost, the log still knows which sequences it has stored.
            dead = Partition(queue.dead_letters, place.number)
            last = log.last_sequence(dead, queue.producer_id)
            starts.append(Start(place.number, end if latest else first, last or 0))
    return starts


def make_dead_letter_topic(log: Log, dead_letters: str, topic: str) -> None:
    """Make the dead-letter topic, or give it as many partitions as the topic has."""
    partitions = log.topic(topic).partitions
    try:
        found = log.topic(dead_letters).partitions
    except TopicNotFound:
        with suppress(TopicExists):  # another consumer was faster
            log.create_topic(dead_letters, partitions=partitions)
        return
    if found < partitions:
        log.change_topic(dead_letters, partitions=partitions)


def append_dead_letters(
    log: Log, dead_letters: str, partition: Partition, table: pa.Table, batch: DeadBatch, id: str
) -> None:
    """Append a batch of dead records, unless it is there."""
    make_dead_letter_topic(log, dead_letters, partition.topic)
    letters = _make_dead_letters(partition, table, batch.rows)
    producer = Producer(id, 1, batch.sequence)
    log.append(dead_letters, letters, partition=batch.number, producer=producer)


def _make_dead_letters(partition: Partition, table: pa.Table, dead: Sequence[DeadRow]) -> pa.Table:
    """Return records as they were, with headers that say where they come from and why."""
    rows = {row.offset: row for row in dead}
    letters = make_deliveries(partition, table)
    return records(
        [letter.value for letter in letters],
        keys=[letter.key for letter in letters],
        headers=[[*letter.headers, *_facts(partition, rows[letter.offset])] for letter in letters],
    )


def _facts(partition: Partition, row: DeadRow) -> list[tuple[str, bytes]]:
    values = (row.reason, f"{partition}@{row.offset}", str(row.deliveries))
    return [(name, value.encode()) for name, value in zip(DEAD_HEADERS, values, strict=True)]
