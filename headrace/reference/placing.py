"""Rows into their windows, judged late or not; then what an aggregate asks of those in time."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    Call,
    Filter,
    Node,
    Project,
    Window,
    inputs_of,
    key_column,
)
from headrace.model.scalars import Scalar
from headrace.reference.relations import Coordinates, Folding, Part, Question, Relation, Row, ask
from headrace.reference.scalars import calls_over
from headrace.reference.windows import OutOfRange, Span, to_datetime, to_us, windows_around

__all__ = [
    "TIMESTAMP",
    "Placed",
    "count_placed",
    "edges_of",
    "place_rows",
    "windows_of",
    "with_windows",
]

TIMESTAMP = pa.timestamp("us", "UTC")


class Placed(NamedTuple):
    """A row with its windows: those it is late for, and those it is folded into.

    Without windows it is folded into the one group there is, None. `values` are those of the keys
    and of what the calls ask; a row that is late for all of its windows is asked for none.
    """

    row: Row
    late: list[Span]
    open: list[Span | None]
    values: tuple[Any, ...]


def place_rows(
    node: Aggregate, relation: Relation, part: Part, question: Question
) -> tuple[list[Placed], list[pa.DataType]]:
    """Return the rows in their windows, and the types of the values."""
    windows: Sequence[Sequence[Span | None]] = [[None] for _ in part.rows]
    if node.window is not None:
        part, windows = windows_of(node.window, relation, part, question)
    lateness_us = question.view.lateness_us
    allowed: float = math.inf if lateness_us is None else lateness_us
    late: dict[Coordinates, list[Span]] = {}
    opened: dict[Coordinates, list[Span | None]] = {}
    for row, spans in zip(part.rows, windows, strict=True):
        closed = [span for span in spans if span and span.end_us + allowed <= row.watermark]
        late[row.coordinates] = closed
        opened[row.coordinates] = [span for span in spans if span not in closed]
    throughout = [row for row in part.rows if not opened[row.coordinates]]
    in_time = part.take([at for at, row in enumerate(part.rows) if opened[row.coordinates]])
    if node.window is not None:
        # Where a row has several windows, nothing that is evaluated of it may name them.
        first = [opened[row.coordinates][0] for row in in_time.rows]
        in_time = with_windows(in_time, [span for span in first if span])
    asked = [*node.keys, *(each for call in node.calls for each in _asked(call))]
    follows = values_over_keys(question.view.query, node)
    sound, columns = ask(question, relation, in_time, [*asked, *follows])
    columns = columns[: len(asked)]
    placed = [Placed(row, late[row.coordinates], [], ()) for row in throughout]
    for at, row in enumerate(sound.rows):
        values = tuple(column.values[at] for column in columns)
        placed.append(Placed(row, late[row.coordinates], opened[row.coordinates], values))
    return placed, [column.type for column in columns]


def values_over_keys(query: Node, node: Aggregate) -> list[Scalar]:
    """Return what follows from an aggregate's keys alone, above it: outputs, conditions, and calls.

    They are asked of every record, as the keys are: over columns of the aggregate's input. What a
    query within the query gives, and no other asks for, is not. Of an output or a condition that
    reads aggregates as well, its function calls over keys are.
    """
    own: dict[str, Scalar] = {key_column(at): key for at, key in enumerate(node.keys)}
    overlap = node.window is not None and (node.window.overlaps or node.window.gap_us is not None)
    if node.window is not None and not overlap:
        own |= {name: Scalar.column(name) for name in WINDOW_COLUMNS}
    above: list[Node] = []
    while query is not node:
        above.append(query)
        [query] = inputs_of(query)
    found: list[Scalar] = []
    columns: dict[str, Scalar] = {}  # of the last Project, over those of the aggregate
    for each in reversed(above):
        if isinstance(each, Filter):
            found.append(each.condition.substitute(columns))
        elif isinstance(each, Project):
            columns = {one.name: one.scalar.substitute(columns) for one in each.columns}
    found += columns.values()
    follows = [each for each in found if each.refs and set(each.refs) <= set(own)]
    mixed = (each for each in found if not set(each.refs) <= set(own))
    follows += (call for each in mixed for call in calls_over(each, own))
    return [each.substitute(own) for each in follows]


def windows_of(
    window: Window, relation: Relation, part: Part, question: Question
) -> tuple[Part, list[list[Span]]]:
    """Return the rows that have windows, and these windows; other records are dead."""
    times: list[object] = [row.event_us for row in part.rows]
    if window.time is not None:
        part, [derived] = ask(question, relation, part, [window.time])
        times = [to_us(each) if isinstance(each, datetime) else None for each in derived.values]
    kept: list[int] = []
    windows: list[list[Span]] = []
    for at, time_us in enumerate(times):
        try:
            if isinstance(time_us, int):  # and not null
                windows.append(windows_around(window, time_us))
                kept.append(at)
        except OutOfRange:
            pass
    without = set(range(len(times))) - set(kept)
    question.dead.add(part.rows[at] for at in without)
    return part.take(kept), windows


def with_windows(part: Part, windows: Sequence[Span]) -> Part:
    """Return the rows with the columns of their windows."""
    edges = [edges_of(window) for window in windows]
    for name in WINDOW_COLUMNS:
        part = part.add_column(name, pa.array([each[name] for each in edges], TIMESTAMP))
    return part


def edges_of(window: Span) -> dict[str, datetime]:
    """Return the columns of a window."""
    instants = (window.start_us, window.end_us, window.end_us - 1)
    return dict(zip(WINDOW_COLUMNS, map(to_datetime, instants), strict=True))


def _asked(call: Call) -> tuple[Scalar, Scalar, Scalar]:
    """Return what is asked of a row for a call: FILTER, its argument, what it orders by."""
    condition = call.condition or Scalar("true")
    chosen = Scalar("case when {0} then {1} end", ("condition", "argument"))
    argument, by = (*call.arguments, Scalar("true"), Scalar("true"))[:2]
    return (
        condition,
        chosen.substitute({"condition": condition, "argument": argument}),
        chosen.substitute({"condition": condition, "argument": by}),
    )


def count_placed(placed: Sequence[Placed]) -> Folding:
    """Return what became of rows that an aggregate took."""
    folded = sum(len(each.open) for each in placed)
    late = sum(len(each.late) for each in placed)
    ended = (
        window is not None and window.end_us <= each.row.watermark
        for each in placed
        for window in each.open
    )
    late_records = dict.fromkeys(each.row.record for each in placed if each.late)
    return Folding(len(placed), folded + late, folded, late, sum(ended), tuple(late_records))
