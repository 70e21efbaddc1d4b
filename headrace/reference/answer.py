"""The answer: what a project's tables, sets and counters are, given the log. The definition.

Slow and obvious on purpose: no turns, no state, no merging; every record is looked at once, in
the order of its partition, and then each view is worked out from the records it took.

A record of a stream, in this order:
1. It is *dead* for the stream when its value cannot be read as the schema says. Otherwise it is
   accepted, and its clock `c` is the largest `min(event time, arrival)` of the accepted records
   before it in its partition, and of the markers that act on it; with neither: minus infinity. An
   arrival that the log did not stamp counts as infinite. Its watermark `w` is the largest
   `c - delay` so far, with the delay that held then (`reference/clocks.py`).
2. Every view over the stream sees it. It is *dead* for the view when WHERE fails on it, and
   skipped when WHERE is not true.
3. In a view with windows it belongs to `[s, t)` around its event time. It is *late* when
   `t + allowed_lateness <= w`; then nothing more is evaluated of it.
4. It is *dead* for the view when a key, an argument or (without grouping) an output fails on it.
5. Otherwise it is folded: into the group of its keys and window, or as a row of its own.

A group exists once a record is folded into it: a view without keys has no row over an empty log.
A windowed row is closed when `t <= W`, the smallest watermark of the stream's partitions after
their last records; a row of a view without grouping is closed from the start, since nothing can
change it; an unwindowed group never closes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

from headrace.log.base import Partition
from headrace.model.definitions import Project, Query, Stream, View
from headrace.reference.aggregates import aggregate, result_type
from headrace.reference.clocks import Marker, PartitionClock, read_markers
from headrace.reference.scalars import Failed, Scalars, Values
from headrace.schema.json_strict import Dead, decode_strict

__all__ = ["Answer", "Place", "Record", "Row", "answer"]

Row = dict[str, object]
Place = tuple[str, int, int]  # topic, partition, offset
Time = float  # microseconds since 1970, or minus infinity; whole numbers stay exact as int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])


class Record(NamedTuple):
    """A record of the log, as the reference needs it."""

    offset: int
    arrival_us: int | None  # None: the log did not stamp it
    key: bytes | None
    value: bytes | None


@dataclass
class Answer:
    """All that promise 1 speaks of. Streams and views share their names, so they share dicts.

    `rows` hold a view's outputs, `_events` (records folded into the row) and `_closed`.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    late: dict[str, list[Place]] = field(default_factory=dict)
    dead: dict[str, list[Place]] = field(default_factory=dict)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)


class _Accepted(NamedTuple):
    """A readable record: where it is, what it says, its event time and its watermark."""

    place: Place
    row: Row
    event_us: int | None
    arrival_us: int | None
    watermark: Time


class _Group(NamedTuple):
    """The records of one group: the values of its keys, its window's start, the rows' numbers."""

    keys: tuple[object, ...]
    start_us: int | None
    members: list[int]


def answer(
    project: Project,
    records: Mapping[Partition, Sequence[Record]],
    markers: Sequence[bytes | None] = (),
) -> Answer:
    """Return the answer over a log: every partition, also an empty one, with all its records.

    `markers` are the values in the topic of markers, in order.
    ValueError: an expression over aggregates fails, as reading the view would.
    """
    result = Answer()
    scalars = Scalars()
    valid = read_markers(markers)
    for stream in project.streams:
        accepted: list[_Accepted] = []
        dead: list[Place] = []
        watermarks: list[Time] = [
            _read_partition(stream, partition, records[partition], valid, accepted, dead)
            for partition in sorted(records)
            if partition.topic == stream.topic
        ]
        result.dead[stream.name] = sorted(dead)
        result.counters[stream.name] = {
            "read": len(accepted) + len(dead),
            "accepted": len(accepted),
            "dead": len(dead),
            "duplicate": 0,
            "unguarded": sum(
                record.arrival_us is None for record in accepted if stream.event_time is not None
            ),
        }
        stream_watermark = min(watermarks, default=-math.inf)
        for view in project.views_over(stream.name):
            _answer_view(result, scalars, stream, view, accepted, stream_watermark)
    return result


def _read_partition(
    stream: Stream,
    partition: Partition,
    records: Sequence[Record],
    markers: Sequence[Marker],
    accepted: list[_Accepted],
    dead: list[Place],
) -> Time:
    """Sort a partition's records into accepted and dead; return its watermark after the last."""
    clock = PartitionClock(stream, partition, markers)
    for record in records:
        clock.reach(record.offset)
        place = (partition.topic, partition.number, record.offset)
        try:
            row = decode_strict(stream.columns, record.value, stream.timestamp_format)
        except Dead:
            dead.append(place)
            continue
        event_us = None if stream.event_time is None else _to_us(row[stream.event_time])
        accepted.append(_Accepted(place, row, event_us, record.arrival_us, clock.watermark))
        if event_us is not None:
            arrival_us = math.inf if record.arrival_us is None else record.arrival_us
            clock.move(min(event_us, arrival_us))
    clock.reach(math.inf)
    return clock.watermark


def _answer_view(
    result: Answer,
    scalars: Scalars,
    stream: Stream,
    view: View,
    accepted: Sequence[_Accepted],
    stream_watermark: Time,
) -> None:
    query = view.query
    dead: list[Place] = []
    late: list[Place] = []
    matched: list[_Accepted] = []
    for record, chosen in zip(accepted, _choose(scalars, stream, query, accepted), strict=True):
        if isinstance(chosen, Failed):
            dead.append(record.place)
        elif chosen is True:
            matched.append(record)
    skipped = len(accepted) - len(dead) - len(matched)

    in_time: list[_Accepted] = []
    for record in matched:
        (late.append(record.place) if _is_late(view, record) else in_time.append(record))

    expressions = (
        [
            *(key.expression for key in query.keys),
            *(call.argument for call in query.calls if call.argument is not None),
        ]
        if query.grouped
        else [output.expression for output in query.outputs]
    )
    columns = scalars.evaluate(expressions, _table(stream, query, in_time))
    sound = [
        at
        for at in range(len(in_time))
        if not any(isinstance(column.values[at], Failed) for column in columns)
    ]
    dead += [record.place for at, record in enumerate(in_time) if at not in set(sound)]

    if query.grouped:
        rows = _grouped_rows(scalars, query, in_time, columns, sound, stream_watermark)
    else:
        names = [output.name for output in query.outputs]
        rows = [
            dict(zip(names, (column.values[at] for column in columns), strict=True))
            | {"_events": 1, "_closed": True}
            for at in sound
        ]
    result.rows[view.name] = rows
    result.late[view.name] = sorted(late)
    result.dead[view.name] = sorted(dead)
    result.counters[view.name] = {
        "seen": len(accepted),
        "skipped": skipped,
        "dead": len(dead),
        "matched": len(sound) + len(late),
        "folded": len(sound),
        "late": len(late),
    }


def _choose(
    scalars: Scalars, stream: Stream, query: Query, accepted: Sequence[_Accepted]
) -> list[object]:
    """Return what WHERE says of each record: true, false, null or Failed."""
    if query.where is None:
        return [True] * len(accepted)
    return scalars.evaluate([query.where], _table(stream, None, accepted))[0].values


def _is_late(view: View, record: _Accepted) -> bool:
    start_us = _window_start(view.query, record)
    if view.query.window is None or start_us is None:
        return False
    end_us = start_us + view.query.window.size_us
    return end_us + view.allowed_lateness_us <= record.watermark


def _window_start(query: Query, record: _Accepted) -> int | None:
    if query.window is None or record.event_us is None:
        return None
    return record.event_us - record.event_us % query.window.size_us


def _grouped_rows(
    scalars: Scalars,
    query: Query,
    records: Sequence[_Accepted],
    columns: Sequence[Values],
    sound: Sequence[int],
    stream_watermark: Time,
) -> list[Row]:
    keys = columns[: len(query.keys)]
    arguments = iter(columns[len(query.keys) :])
    groups: dict[object, _Group] = {}
    for at in sound:
        values = tuple(_canonical(column.values[at]) for column in keys)
        start_us = _window_start(query, records[at])
        group = groups.setdefault(_freeze((values, start_us)), _Group(values, start_us, []))
        group.members.append(at)

    # One table with a row per group: the names that outputs and HAVING are written over.
    names = pa.schema([])
    folded: list[Row] = [{} for _ in groups]
    for number, (key, column) in enumerate(zip(query.keys, keys, strict=True)):
        names = names.append(pa.field(key.name, column.type))
        for row, group in zip(folded, groups.values(), strict=True):
            row[key.name] = group.keys[number]
    for call in query.calls:
        argument = next(arguments) if call.argument is not None else None
        type_ = argument.type if argument is not None else pa.int64()
        names = names.append(pa.field(call.name, result_type(call.function, type_)))
        for row, group in zip(folded, groups.values(), strict=True):
            counted = (
                [1] * len(group.members)
                if argument is None
                else [argument.values[at] for at in group.members]
            )
            row[call.name] = aggregate(call.function, counted, type_)
    if query.window is not None:
        for name, shift_us in (("window_start", 0), ("window_end", query.window.size_us)):
            names = names.append(pa.field(name, pa.timestamp("us", "UTC")))
            for row, group in zip(folded, groups.values(), strict=True):
                assert group.start_us is not None
                row[name] = _to_datetime(group.start_us + shift_us)

    expressions = [output.expression for output in query.outputs]
    having = [query.having] if query.having is not None else []
    # A column of its own, because a view may have neither keys, calls nor a window.
    names = names.append(pa.field("_group", pa.int64()))
    table = pa.Table.from_pylist([row | {"_group": 0} for row in folded], schema=names)
    evaluated = scalars.evaluate([*expressions, *having], table)
    rows: list[Row] = []
    for at, group in enumerate(groups.values()):
        found = [column.values[at] for column in evaluated]
        failed = next((value for value in found if isinstance(value, Failed)), None)
        if failed is not None:
            raise ValueError(f"an expression over aggregates fails: {failed.reason}")
        if having and found.pop() is not True:
            continue
        row = dict(zip((output.name for output in query.outputs), found, strict=True))
        end_us = math.inf
        if query.window is not None and group.start_us is not None:
            end_us = group.start_us + query.window.size_us
        rows.append(row | {"_events": len(group.members), "_closed": end_us <= stream_watermark})
    return rows


def _table(stream: Stream, query: Query | None, records: Sequence[_Accepted]) -> pa.Table:
    """Return the records as typed columns; with a windowed query also `window.start`, `.end`."""
    schema = pa.schema([(column.name, column.type.arrow) for column in stream.columns])
    rows = [record.row for record in records]
    if query is not None and query.window is not None:
        schema = schema.append(pa.field("window", _WINDOW))
        rows = []
        for record in records:
            start_us = _window_start(query, record)
            assert start_us is not None
            end_us = start_us + query.window.size_us
            window = {"start": _to_datetime(start_us), "end": _to_datetime(end_us)}
            rows.append(record.row | {"window": window})
    return pa.Table.from_pylist(rows, schema=schema)


def _to_us(time: object) -> int:
    assert isinstance(time, datetime)
    return (time - _EPOCH) // timedelta(microseconds=1)


def _to_datetime(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def _canonical(value: object) -> object:
    """Return a key's value as SQL groups it: all NaN are one, and so are 0.0 and -0.0."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def _freeze(value: object) -> object:
    """Return something hashable that is equal for equal values."""
    if isinstance(value, list | tuple):
        return tuple(_freeze(each) for each in value)
    if isinstance(value, dict):
        return tuple((name, _freeze(each)) for name, each in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN"  # which equals nothing, not even itself; a column of numbers has no texts
    return value
