"""The answer: what a project's tables, sets and counters are, given the log. The definition.

Slow and obvious on purpose: no turns, no state, no merging; every record is looked at once, in
the order of its partition, and then each view is worked out from the records it took.

A record of a stream, in this order:
1. It is *dead* for the stream when its value cannot be read as the schema says. Otherwise it is
   accepted, and its clock `c` is the largest `min(event time, arrival)` of the accepted records
   before it in its partition, and of the markers that act on it; with neither: minus infinity. An
   arrival that the log did not stamp counts as infinite. Its watermark `w` is the largest
   `c - delay` so far, with the delay that held then (`reference/clocks.py`). Where the stream has
   a unique id it may be a *duplicate* instead (`reference/duplicates.py`): it moves the clock all
   the same, and no view sees it.
2. Every view over the stream sees it. It is *dead* for the view when WHERE fails on it, and
   skipped when WHERE is not true.
3. In a view with windows it belongs to every `[s, t)` around its event time, or around the time
   that the view derives from it. It is *dead* for the view when that time fails, is null, or has a
   window that reaches outside of the years 1 to 9999. It is *late* for a window when
   `t + allowed_lateness <= w` (a view that folds late records allows its retention, or for ever);
   if it is so for all of them, nothing more is evaluated of it. In a view of sessions its window
   is `[e, e + gap)`, the session that it would be alone.
4. It is *dead* for the view when a key, an argument or (without grouping) an output fails on it; an
   argument is evaluated where its FILTER is true.
5. Otherwise it is folded: into the group of its keys and each window that it is not late for, or as
   a row of its own. That is a correction where `t <= w`. In a view of sessions it is folded into
   the session of its keys that it is in: a longest chain of such records, in the order of their
   times, each at most the gap after the one before it; `[s, t)` of the row is from the first of
   them to the gap after the last.

A group exists once a record is folded into it: a view without keys has no row over an empty log.
The counters seen, skipped, dead and matched count records; pairs, folded, late and corrected count
pairs of record and window. A windowed row leaves when `t + retention <= W`; a view that drops its
late records has no late set.
A windowed row is closed when `t <= W`, the smallest watermark of the stream's partitions after
their last records; a row of a view without grouping is closed from the start, since nothing can
change it; an unwindowed group never closes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from headrace.log.base import Partition
from headrace.model.definitions import Call, Project, Query, Stream, View
from headrace.reference.aggregates import Taken, aggregate, result_type
from headrace.reference.clocks import Marker, PartitionClock, read_markers
from headrace.reference.duplicates import Memory
from headrace.reference.scalars import Failed, Scalars, Values
from headrace.reference.windows import OutOfRange, Span, to_datetime, to_us, windows_around
from headrace.schema.json_strict import Dead, decode_strict

__all__ = ["Answer", "Place", "Record", "Row", "answer"]

Row = dict[str, object]
Place = tuple[str, int, int]  # topic, partition, offset
Time = float  # microseconds since 1970, or minus infinity; whole numbers stay exact as int

# Over aggregates, as in Spark, a small number beside a larger one is computed with as that.
_WIDER = {pa.int8(): pa.int32(), pa.int16(): pa.int32(), pa.float32(): pa.float64()}
_WINDOW = pa.struct([(part, pa.timestamp("us", "UTC")) for part in ("start", "end", "time")])


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
    duplicates: dict[str, list[Place]] = field(default_factory=dict)  # of streams
    counters: dict[str, dict[str, int]] = field(default_factory=dict)


class _Accepted(NamedTuple):
    """A readable record: where it is, what it says, its event time and its watermark."""

    place: Place
    row: Row
    event_us: int | None
    arrival_us: int | None
    watermark: Time


class _Placed(NamedTuple):
    """A record that WHERE took, and its windows: those it is late for, those it is folded into.

    Without windows it is folded into the one group there is, None.
    """

    record: _Accepted
    late: list[Span]
    open: Sequence[Span | None]


class _Group(NamedTuple):
    """The records of one group: the values of its keys, its window, the rows' numbers."""

    keys: tuple[object, ...]
    window: Span | None
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
        duplicates: list[_Accepted] = []
        watermarks: list[Time] = [
            _read_partition(
                stream, partition, records[partition], valid, accepted, dead, duplicates
            )
            for partition in sorted(records)
            if partition.topic == stream.topic
        ]
        result.dead[stream.name] = sorted(dead)
        result.duplicates[stream.name] = sorted(record.place for record in duplicates)
        result.counters[stream.name] = {
            "read": len(accepted) + len(dead) + len(duplicates),
            "accepted": len(accepted),
            "dead": len(dead),
            "duplicate": len(duplicates),
            "unguarded": sum(
                record.arrival_us is None
                for record in [*accepted, *duplicates]
                if stream.event_time is not None
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
    duplicates: list[_Accepted],
) -> Time:
    """Sort a partition's records into three; return its watermark after the last."""
    clock = PartitionClock(stream, partition, markers)
    memory = Memory(stream.unique_within_us)
    for record in records:
        clock.reach(record.offset)
        place = (partition.topic, partition.number, record.offset)
        try:
            row = decode_strict(stream.columns, record.value, stream.timestamp_format)
        except Dead:
            dead.append(place)
            continue
        time = None if stream.event_time is None else row[stream.event_time]
        event_us = to_us(time) if isinstance(time, datetime) else None
        before, watermark = clock.time, clock.watermark
        if event_us is not None:
            arrival_us = math.inf if record.arrival_us is None else record.arrival_us
            clock.move(min(event_us, arrival_us))
        found = _Accepted(place, row, event_us, record.arrival_us, watermark)
        seen = stream.unique is not None and memory.is_duplicate(
            row[stream.unique], clock=before, after=clock.time
        )
        (duplicates if seen else accepted).append(found)
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
    matched: list[_Accepted] = []
    for record, chosen in zip(accepted, _choose(scalars, stream, query, accepted), strict=True):
        if isinstance(chosen, Failed):
            dead.append(record.place)
        elif chosen is True:
            matched.append(record)
    skipped = len(accepted) - len(dead) - len(matched)

    placed: list[_Placed] = []
    for found in _place(scalars, stream, view, matched):
        if isinstance(found, _Placed):
            placed.append(found)
        else:
            dead.append(found)
    in_time = [each for each in placed if each.open]
    throughout = [each for each in placed if not each.open]

    expressions = (
        [
            *(key.expression for key in query.keys),
            *(expression for call in query.calls for expression in _asked(call)),
        ]
        if query.grouped
        else [output.expression for output in query.outputs]
    )
    columns = scalars.evaluate(expressions, _placed_table(stream, query, in_time))
    sound = [
        at
        for at in range(len(in_time))
        if not any(isinstance(column.values[at], Failed) for column in columns)
    ]
    dead += [each.record.place for at, each in enumerate(in_time) if at not in set(sound)]

    if query.grouped:
        rows = _grouped_rows(scalars, view, in_time, columns, sound, stream_watermark)
    else:
        names = [output.name for output in query.outputs]
        rows = [
            dict(zip(names, (column.values[at] for column in columns), strict=True))
            | {"_events": 1, "_closed": True}
            for at in sound
        ]
    result.rows[view.name] = rows
    counted = [*throughout, *(in_time[at] for at in sound)]
    late = [each.record.place for each in counted if each.late]
    result.late[view.name] = [] if view.late == "drop" else sorted(late)
    result.dead[view.name] = sorted(dead)
    result.counters[view.name] = {
        "seen": len(accepted),
        "skipped": skipped,
        "dead": len(dead),
        "matched": len(counted),
        "pairs": sum(len(each.late) + len(each.open) for each in counted),
        "folded": sum(len(each.open) for each in counted),
        "late": sum(len(each.late) for each in counted),
        "corrected": sum(
            window is not None and window.end_us <= each.record.watermark
            for each in counted
            for window in each.open
        ),
    }


def _choose(
    scalars: Scalars, stream: Stream, query: Query, accepted: Sequence[_Accepted]
) -> list[object]:
    """Return what WHERE says of each record: true, false, null or Failed."""
    if query.where is None:
        return [True] * len(accepted)
    return scalars.evaluate([query.where], _table(stream, accepted))[0].values


def _place(
    scalars: Scalars, stream: Stream, view: View, matched: Sequence[_Accepted]
) -> Iterator[_Placed | Place]:
    """Yield every record with its windows, or only its place when it is dead."""
    window = view.query.window
    if window is None:
        yield from (_Placed(record, [], [None]) for record in matched)
        return
    times: Sequence[object] = [record.row[stream.event_time or ""] for record in matched]
    if window.time is not None:
        times = scalars.evaluate([window.time], _table(stream, matched))[0].values
    for record, time in zip(matched, times, strict=True):
        if not isinstance(time, datetime):  # null, or it failed
            yield record.place
            continue
        try:
            windows = windows_around(window, to_us(time))
        except OutOfRange:
            yield record.place
            continue
        lateness = math.inf if view.lateness_us is None else view.lateness_us
        late = [each for each in windows if each.end_us + lateness <= record.watermark]
        yield _Placed(record, late, [each for each in windows if each not in late])


def _grouped_rows(
    scalars: Scalars,
    view: View,
    records: Sequence[_Placed],
    columns: Sequence[Values],
    sound: Sequence[int],
    stream_watermark: Time,
) -> list[Row]:
    query = view.query
    keys = columns[: len(query.keys)]
    arguments = iter(columns[len(query.keys) :])
    groups: dict[object, _Group] = {}
    for at in sound:
        values = tuple(_canonical(column.values[at]) for column in keys)
        for window in records[at].open:
            together = None if query.window is not None and query.window.gap_us else window
            group = groups.setdefault(_freeze((values, together)), _Group(values, window, []))
            group.members.append(at)
    if query.window is not None and query.window.gap_us is not None:
        groups = dict(enumerate(_sessions(groups.values(), records, query.window.gap_us)))

    # One table with a row per group: the names that outputs and HAVING are written over.
    names = pa.schema([])
    folded: list[Row] = [{} for _ in groups]
    for number, (key, column) in enumerate(zip(query.keys, keys, strict=True)):
        names = names.append(pa.field(key.name, column.type))
        for row, group in zip(folded, groups.values(), strict=True):
            row[key.name] = group.keys[number]
    for call in query.calls:
        chosen, argument, by = next(arguments), next(arguments), next(arguments)
        names = names.append(pa.field(call.name, result_type(call.function, argument.type)))
        for row, group in zip(folded, groups.values(), strict=True):
            taken = [
                Taken(argument.values[at], by.values[at], _standing(records[at].record))
                for at in group.members
                if chosen.values[at] is True
            ]
            row[call.name] = aggregate(call, taken, argument.type)
    if query.window is not None:
        for part in _WINDOW:
            names = names.append(pa.field(f"window_{part.name}", part.type))
        for row, group in zip(folded, groups.values(), strict=True):
            parts = _window_parts(group.window)
            row.update({f"window_{name}": time for name, time in parts.items()})

    expressions = [output.expression for output in query.outputs]
    having = [query.having] if query.having is not None else []
    # A column of its own, because a view may have neither keys, calls nor a window.
    names = names.append(pa.field("_group", pa.int64()))
    names = pa.schema([each.with_type(_WIDER.get(each.type, each.type)) for each in names])
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
        end_us = math.inf if group.window is None else group.window.end_us
        if view.retention_us is not None and end_us + view.retention_us <= stream_watermark:
            continue
        rows.append(row | {"_events": len(group.members), "_closed": end_us <= stream_watermark})
    return rows


def _sessions(
    groups: Iterable[_Group], records: Sequence[_Placed], gap_us: int
) -> Iterator[_Group]:
    """Yield the sessions of all groups: their records in the order of time, cut at every gap."""
    for group in groups:
        # The only window of a record begins at its time.
        times = {at: span.start_us for at in group.members for span in records[at].open if span}
        chain: list[int] = []
        for at in sorted(times, key=times.__getitem__):
            if chain and times[at] - times[chain[-1]] > gap_us:
                yield _Group(group.keys, Span(times[chain[0]], times[chain[-1]] + gap_us), chain)
                chain = []
            chain.append(at)
        yield _Group(group.keys, Span(times[chain[0]], times[chain[-1]] + gap_us), chain)


def _asked(call: Call) -> tuple[str, str, str]:
    """Return what is asked of a record for a call: FILTER, its argument, what it orders by."""
    condition = call.condition or "true"

    def chosen(expression: str | None) -> str:
        return f"CASE WHEN {condition} THEN {expression or 'true'} END"

    return condition, chosen(call.argument), chosen(call.by)


def _standing(record: _Accepted) -> tuple[int, ...]:
    """Return where a record stands among the others of its stream: by time, then by place."""
    _, partition, offset = record.place
    return (record.event_us or 0, partition, offset)


def _table(stream: Stream, records: Sequence[_Accepted]) -> pa.Table:
    """Return the records as typed columns."""
    schema = pa.schema([(column.name, column.type.arrow) for column in stream.columns])
    table = pa.Table.from_pylist([record.row for record in records], schema=schema)
    watermarks = [None if math.isinf(each.watermark) else int(each.watermark) for each in records]
    return table.append_column("__watermark", pa.array(watermarks, pa.int64()))


def _placed_table(stream: Stream, query: Query, placed: Sequence[_Placed]) -> pa.Table:
    """Return records as typed columns, in a view with windows also `window.start` and so on.

    Where a record has several windows, nothing that is evaluated of it may name them.
    """
    table = _table(stream, [each.record for each in placed])
    if query.window is None:
        return table
    windows = pa.array([_window_parts(each.open[0]) for each in placed], _WINDOW)
    return table.append_column("window", windows)


def _window_parts(window: Span | None) -> Row:
    if window is None:
        return {}
    return {
        "start": to_datetime(window.start_us),
        "end": to_datetime(window.end_us),
        "time": to_datetime(window.end_us - 1),
    }


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
