"""Reading streams: every record of a topic, readable or dead, with its clock and its watermark."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from headrace.schema.codec import Operation
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

#: In place of the values of a record without effect.
_IGNORED: dict[str, object] = {}

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


@dataclass(frozen=True)
class StreamRead:
    """All records of a stream, partition by partition, and its watermark after the last."""

    stream: Stream
    readable: list[Readable]
    dead: list[Coordinates]
    watermark: Time
    ignored: int = 0  # records of a table without effect, by their form


def read_stream(
    stream: Stream,
    records: Mapping[Partition, Sequence[Record]],
    markers: Sequence[Marker],
) -> StreamRead:
    """Return what a stream reads of a log."""
    readable: list[Readable] = []
    dead: list[Coordinates] = []
    watermarks: list[Time] = []
    ignored = 0
    for partition in sorted(records):
        if partition.topic != stream.topic:
            continue
        clock = PartitionClock(stream, partition, markers)
        for record, values in _values_of(stream, records[partition]):
            clock.reach(record.offset)
            place = (partition.topic, partition.number, record.offset)
            if values is None:
                dead.append(place)
            elif values is _IGNORED:
                ignored += 1
            else:
                readable.append(_read(stream, clock, place, record, values))
        clock.reach(math.inf)
        watermarks.append(clock.watermark)
    return StreamRead(stream, readable, dead, min(watermarks, default=-math.inf), ignored)


def _values_of(
    stream: Stream, records: Sequence[Record]
) -> list[tuple[Record, dict[str, object] | None]]:
    """Return the values of each record with its event time and unique id; None: it is dead."""
    found: list[dict[str, object] | None] = []
    for record in records:
        try:
            change = decode_record(stream.encoding, record.key, record.value)
        except Dead:
            found.append(None)
            continue
        if change.operation is Operation.IGNORE:
            found.append(_IGNORED)
            continue
        values = change.values
        if stream.event_time == ARRIVAL:
            values[ARRIVAL] = _log_time(record)
        found.append(values)
    decoded = [values for values in found if values is not None]
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
        None if values is None or any(values[name] is None for name in needed) else values
        for values in found
    )
    return list(zip(records, readable, strict=True))


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
