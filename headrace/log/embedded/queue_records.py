"""The records of a queue: read by offset, made into deliveries and dead letters.

Reading is by ranges and columns; rows are made of what is handed out, at the end.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import RECORDS, Partition, Range
from headrace.log.embedded.inside import Inside
from headrace.log.embedded.queue_book import DeadRow
from headrace.log.queues import DEAD_HEADERS, Delivery
from headrace.log.records import records

__all__ = ["make_dead_letters", "make_deliveries", "read_offsets"]

# Reading up to this many records too many costs less than another range.
MAX_GAP_RECORDS = 256


def read_offsets(inside: Inside, partition: Partition, offsets: Sequence[int]) -> pa.Table:
    """Return the records at these offsets, as RECORDS, in order.

    Those that the log has no longer are not among them. The offsets grow; they may be a `range`.
    """
    first, end = inside.extent(partition)
    tables = []
    for run in _runs([offset for offset in offsets if first <= offset < end]):
        batches = inside.log.read(Range(partition, run[0], run[-1] + 1))
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


def make_dead_letters(partition: Partition, table: pa.Table, dead: Sequence[DeadRow]) -> pa.Table:
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
