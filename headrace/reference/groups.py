"""The aggregate: rows that stand in their windows into groups, then one row per group."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.model.nodes import WINDOW_COLUMNS, Aggregate, call_column, key_column
from headrace.model.scalars import Scalar
from headrace.reference.aggregates import Taken, aggregate, argument_of, result_type
from headrace.reference.placing import TIMESTAMP, Placed, count_placed, edges_of, place_rows
from headrace.reference.relations import Part, Question, Relation, Row
from headrace.reference.windows import Span

__all__ = ["fold"]

# Over aggregates, as in Spark, a small number beside a larger one is computed with as that.
_WIDER = {pa.int8(): pa.int32(), pa.int16(): pa.int32(), pa.float32(): pa.float64()}


class _Group(NamedTuple):
    """The rows of one group: the values of its keys, its window, its members."""

    keys: tuple[object, ...]
    window: Span | None
    members: list[Placed]


def fold(node: Aggregate, relation: Relation, question: Question) -> Relation:
    """Return one row per group of an aggregate."""
    if relation.folding is not None:
        raise NotImplementedError("the reference does not know aggregates over aggregates")
    placed: list[Placed] = []
    types: list[list[pa.DataType]] = []
    for part in relation.parts:
        found, found_types = place_rows(node, relation, part, question)
        placed += found
        types.append(found_types)
    groups = _groups(node, [each for each in placed if each.open])
    rows = _rows(node, groups, [_known(column) for column in zip(*types, strict=True)])
    return Relation((rows,), relation.counts, count_placed(placed))


def _groups(node: Aggregate, placed: Iterable[Placed]) -> list[_Group]:
    groups: dict[object, _Group] = {}
    gap_us = None if node.window is None else node.window.gap_us
    for each in placed:
        keys = tuple(_canonical(value) for value in each.values[: len(node.keys)])
        for window in each.open:
            together = None if gap_us is not None else window
            group = groups.setdefault(_freeze((keys, together)), _Group(keys, window, []))
            group.members.append(each)
    found = list(groups.values())
    return found if gap_us is None else list(_sessions(found, gap_us))


def _sessions(groups: Iterable[_Group], gap_us: int) -> Iterator[_Group]:
    """Yield the sessions of all groups: their rows in the order of time, cut at every gap."""
    for group in groups:
        # The only window of a row begins at its time.
        timed = [(span.start_us, each) for each in group.members for span in each.open if span]
        timed.sort(key=lambda pair: pair[0])
        chain: list[tuple[int, Placed]] = []
        for time_us, each in timed:
            if chain and time_us - chain[-1][0] > gap_us:
                yield _session(group, chain, gap_us)
                chain = []
            chain.append((time_us, each))
        yield _session(group, chain, gap_us)


def _session(group: _Group, chain: Sequence[tuple[int, Placed]], gap_us: int) -> _Group:
    span = Span(chain[0][0], chain[-1][0] + gap_us)
    return _Group(group.keys, span, [each for _, each in chain])


def _rows(node: Aggregate, groups: Sequence[_Group], types: Sequence[pa.DataType]) -> Part:
    """Return one table with a row per group: its window, its keys and its calls."""
    # A column of its own, because an aggregate may have neither keys, calls nor a window.
    values: list[dict[str, object]] = [{"_group": 0} for _ in groups]
    schema = pa.schema([("_group", pa.int64())])
    if node.window is not None:
        for name in WINDOW_COLUMNS:
            schema = schema.append(pa.field(name, TIMESTAMP))
        for row, group in zip(values, groups, strict=True):
            row.update(edges_of(group.window) if group.window else {})
    for number in range(len(node.keys)):
        schema = schema.append(_field(key_column(number), types[number]))
        for row, group in zip(values, groups, strict=True):
            row[key_column(number)] = group.keys[number]
    for number, call in enumerate(node.calls):
        at = len(node.keys) + 3 * number  # three values are asked for every call
        type = types[at + 1 + argument_of(call.function)]
        kind = result_type(call.function, type, call.parameters)
        schema = schema.append(_field(call_column(number), kind))
        for row, group in zip(values, groups, strict=True):
            taken = [
                Taken(each.values[at + 1], each.values[at + 2], _standing(each.row))
                for each in group.members
                if each.values[at] is True
            ]
            row[call_column(number)] = aggregate(call, taken, type)
    ends = [math.inf if group.window is None else group.window.end_us for group in groups]
    rows = [
        Row((), (group.window, *group.keys), None, -math.inf, len(group.members), end_us)
        for group, end_us in zip(groups, ends, strict=True)
    ]
    names = [name for name in schema.names if name != "_group"]
    table = pa.Table.from_pylist(values, schema=schema)
    return Part(rows, table, {name: Scalar.column(name) for name in names})


def _field(name: str, type: pa.DataType) -> pa.Field:
    return pa.field(name, _WIDER.get(type, type))


def _known(types: Iterable[pa.DataType]) -> pa.DataType:
    """Return the type of a column that comes in parts; of one without rows none is known."""
    return next((each for each in types if not pa.types.is_null(each)), pa.null())


def _standing(row: Row) -> tuple[Any, ...]:
    """Return where a record stands among the others: by time, then by coordinates."""
    return (row.event_us or 0, *row.coordinates)


def _canonical(value: object) -> object:
    """Return a key's value as SQL groups it: all NaN are one, and so are 0.0 and -0.0."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return [_canonical(each) for each in value]
    if isinstance(value, dict):
        return {name: _canonical(each) for name, each in value.items()}
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
