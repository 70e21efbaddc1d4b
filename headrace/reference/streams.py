"""Reading streams: every record of a topic, readable or dead, with its clock and its watermark."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from headrace.log.base import Partition
from headrace.model.definitions import Stream
from headrace.model.nodes import ARRIVAL
from headrace.reference.clocks import Marker, PartitionClock
from headrace.reference.duplicates import Memory
from headrace.reference.scalars import Failed, Scalars
from headrace.reference.windows import to_datetime, to_us
from headrace.schema.codec import DELETED, TRUNCATE_HEADER, Change, Operation
from headrace.schema.formats import decode_record
from headrace.schema.json_text import Dead

__all__ = [
    "Coordinates",
    "Readable",
    "Record",
    "StreamRead",
    "Time",
    "read_stream",
    "split_duplicates",
]

Coordinates = tuple[str, int, int]  # topic, partition, offset
Time = float  # microseconds since 1970, or minus infinity; whole numbers stay exact as int


class Record(NamedTuple):
    """A record of the log, as the reference needs it."""

    offset: int
    arrival_us: int | None  # None: the log did not stamp it
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    produced_us: int | None = None  # by the producer's clock, where the log did not stamp it


class Readable(NamedTuple):
    """A record that the schema can read: where it is, what it says, and when.

    `clock` is what its partition's clock shows before it, `clock_after` what it shows then.
    """

    place: Coordinates
    record: Record
    values: dict[str, object]
    event_us: int | None
    watermark: Time
    clock: Time
    clock_after: Time
    is_second: bool = False  # of a record that has two rows


@dataclass(frozen=True)
class StreamRead:
    """All records of a stream, partition by partition, and its watermark after the last."""

    stream: Stream
    readable: list[Readable]
    dead: list[Coordinates]
    watermark: Time
    operations: Counter[Operation] = field(default_factory=Counter)  # of a table's records


def read_stream(
    stream: Stream,
    records: Mapping[Partition, Sequence[Record]],
    markers: Sequence[Marker],
) -> StreamRead:
    """Return what a stream reads of a log."""
    readable: list[Readable] = []
    dead: list[Coordinates] = []
    watermarks: list[Time] = []
    operations: Counter[Operation] = Counter()
    several = sum(partition.topic == stream.topic for partition in records) > 1
    for partition in sorted(records):
        if partition.topic != stream.topic:
            continue
        clock = PartitionClock(stream, partition, markers)
        truncated = -1
        begun = len(readable)
        for record, change in _changes_of(stream, records[partition], several=several):
            clock.reach(record.offset)
            place = (partition.topic, partition.number, record.offset)
            if change is None:
                dead.append(place)
                continue
            operations[change.operation] += 1
            if change.operation is Operation.TRUNCATE:
                truncated = record.offset
            elif change.operation is not Operation.IGNORE:
                read = _read(stream, clock, place, record, change.values)
                readable.append(read)
                if change.moved is not None:
                    readable.append(read._replace(values=change.moved, is_second=True))
        # What was there before a truncation is gone.
        for at in range(begun, len(readable)):
            if readable[at].record.offset <= truncated:
                values = readable[at].values | {DELETED: True}
                readable[at] = readable[at]._replace(values=values)
        clock.reach(math.inf)
        watermarks.append(clock.watermark)
    return StreamRead(stream, readable, dead, min(watermarks, default=-math.inf), operations)


def _changes_of(
    stream: Stream, records: Sequence[Record], *, several: bool
) -> list[tuple[Record, Change | None]]:
    """Return what each record says, with its event time and unique id; None: it is dead.

    `several`: the topic has more than one partition.
    """
    found: list[Change | None] = []
    for record in records:
        try:
            change = decode_record(stream.encoding, record.key, record.value)
        except Dead:
            found.append(None)
            continue
        told = [name for name, _ in record.headers]
        if change.operation is Operation.TRUNCATE and several and TRUNCATE_HEADER not in told:
            found.append(None)
            continue
        if stream.event_time == ARRIVAL:
            change.values[ARRIVAL] = _log_time(record)
        found.append(change)
    decoded = [change.values for change in found if change is not None]
    if stream.eager and decoded:
        schema = pa.schema([(column.name, column.type.arrow) for column in stream.columns])
        rows = pa.Table.from_pylist(decoded, schema=schema)
        for each in stream.eager:
            [computed] = Scalars().evaluate([each.scalar], rows)
            for values, value in zip(decoded, computed.values, strict=True):
                values[each.name] = None if isinstance(value, Failed) else value
    # A change that deletes a row has no event time.
    optional = () if stream.primary_key else (stream.event_time, stream.unique)
    needed = [name for name in optional if name is not None]
    readable = (
        None if each is None or (each.operation.has_row and _lacks(each, needed)) else each
        for each in found
    )
    return list(zip(records, readable, strict=True))


def _lacks(change: Change, needed: Sequence[str]) -> bool:
    return any(change.values[name] is None for name in needed)


def _log_time(record: Record) -> datetime | None:
    """Return the time of a record as the log has it."""
    time_us = record.produced_us if record.arrival_us is None else record.arrival_us
    return None if time_us is None else to_datetime(time_us)


def _read(
    stream: Stream,
    clock: PartitionClock,
    place: Coordinates,
    record: Record,
    values: dict[str, object],
) -> Readable:
    time = None if stream.event_time is None else values[stream.event_time]
    event_us = to_us(time) if isinstance(time, datetime) else None
    before, watermark = clock.time, clock.watermark
    if event_us is not None:
        arrival_us = math.inf if record.arrival_us is None else record.arrival_us
        clock.move(min(event_us, arrival_us))
    return Readable(place, record, values, event_us, watermark, before, clock.time)


def split_duplicates(
    records: Sequence[Readable], by: str, within_us: int
) -> tuple[list[Readable], list[Readable]]:
    """Return the records that are no duplicates, and those that are."""
    memories: dict[tuple[str, int], Memory] = {}
    kept: list[Readable] = []
    duplicates: list[Readable] = []
    for record in records:
        topic, partition, _ = record.place
        memory = memories.setdefault((topic, partition), Memory(within_us))
        seen = memory.is_duplicate(record.values[by], clock=record.clock, after=record.clock_after)
        (duplicates if seen else kept).append(record)
    return kept, duplicates
