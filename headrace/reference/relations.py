"""What a node gives: rows, each with its coordinates and its time, and columns not yet worked out.

A column is an expression over the typed tables that the rows came in. It is evaluated where a node
asks for it, and not before: what no node asks for never fails.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.model.definitions import View
from headrace.model.scalars import Scalar
from headrace.reference.scalars import Failed, Scalars, Values
from headrace.reference.streams import StreamRead, Time

__all__ = ["Coordinates", "Folding", "Part", "Question", "Relation", "Row", "ask"]

#: Of a record: topic, partition, offset. A union puts the number of the branch before them, a
#: generator the number of the element behind them.
Coordinates = tuple[Any, ...]


class Row(NamedTuple):
    """A record, or a group of records, beside its columns.

    A record is closed from the start, since nothing can change it; a group without a window never.
    """

    coordinates: Coordinates
    event_us: int | None
    watermark: Time
    events: int = 1
    end_us: Time = -math.inf  # when it is closed


@dataclass(frozen=True)
class Part:
    """Rows that came in one table; `columns` says what each column is over that table's."""

    rows: Sequence[Row]
    table: pa.Table
    columns: Mapping[str, Scalar]

    def take(self, numbers: Sequence[int]) -> "Part":
        """Return some of the rows."""
        indices = pa.array(numbers, pa.int64())
        return Part([self.rows[at] for at in numbers], self.table.take(indices), self.columns)


@dataclass(frozen=True)
class Folding:
    """What became of the rows that an aggregate took: of each pair of a row and a window."""

    matched: int
    pairs: int
    folded: int
    late: int
    corrected: int
    late_rows: tuple[Coordinates, ...]


@dataclass(frozen=True)
class Relation:
    """Rows, and what became of all others on the way to them.

    The counts are of the last stage: a generator, which makes other rows, begins a new one.
    """

    parts: tuple[Part, ...]
    seen: int
    skipped: int = 0
    dead: tuple[Coordinates, ...] = ()
    dead_before: tuple[Coordinates, ...] = ()  # in the stages before the last
    folding: Folding | None = None  # None: the rows are records


@dataclass(frozen=True)
class Question:
    """One view over what the streams read. `watermark` is W, the least of its streams'."""

    view: View
    streams: Mapping[str, StreamRead]
    watermark: Time
    scalars: Scalars


def ask(
    question: Question, relation: Relation, part: Part, scalars: Sequence[Scalar]
) -> tuple[Part, list[Values], list[Coordinates]]:
    """Return the rows that no expression fails on, the values there, and the rows that are dead.

    ValueError: an expression over aggregates fails, as reading the view would.
    """
    whole = [scalar.substitute(part.columns) for scalar in scalars]
    found = question.scalars.evaluate(whole, part.table)
    failed: dict[int, Failed] = {}
    for column in found:
        failed |= {at: each for at, each in enumerate(column.values) if isinstance(each, Failed)}
    if failed and relation.folding is not None:
        reason = next(iter(failed.values())).reason
        raise ValueError(f"an expression over aggregates fails: {reason}")
    sound = [at for at in range(len(part.rows)) if at not in failed]
    values = [Values(each.type, [each.values[at] for at in sound]) for each in found]
    return part.take(sound), values, [part.rows[at].coordinates for at in sorted(failed)]
