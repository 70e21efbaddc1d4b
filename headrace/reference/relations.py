"""What a node gives: rows, each with its coordinates and its time, and columns not yet worked out.

A record is one whole: if an expression fails on one of the rows that came of it, the record is
dead, and everything is worked out again without it.

A column is an expression over the typed tables that the rows came in. It is evaluated where a node
asks for it, and not before: what no node asks for never fails.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.model.definitions import View
from headrace.model.scalars import Scalar
from headrace.reference.scalars import Failed, Scalars, Values
from headrace.reference.streams import StreamRead, Time

__all__ = ["Coordinates", "Counts", "Dead", "Folding", "Part", "Question", "Relation", "Row", "ask"]

#: Of a record: topic, partition, offset. Of a row: a union puts the number of the branch before
#: them, a generator the number of the element behind them.
Coordinates = tuple[Any, ...]


class Row(NamedTuple):
    """A record, or a group of records, beside its columns.

    The coordinates of a group are its window and its keys.

    A record is closed from the start, since nothing can change it; a group without a window never.
    """

    record: Coordinates
    coordinates: Coordinates
    event_us: int | None
    watermark: Time
    events: int = 1
    end_us: Time = -math.inf  # when it is closed
    leaf: int = 0  # which reading of a stream in its query it came from


@dataclass(frozen=True)
class Counts:
    """What became of the records of one leaf on the way to the rows of a part.

    A condition before the first generator leaves out records, one behind the last one skips rows.
    """

    records: int  # that are not dead
    dead: int = 0
    left_out: int = 0
    empty: int = 0  # records of which the first generator made no row
    ended: int = 0  # rows of which a later one made none, or that a condition before it left out
    made: int | None = None  # rows, by the last generator; None: there is none
    skipped: int = 0


@dataclass(frozen=True)
class Part:
    """Rows that came in one table; `columns` says what each column is over that table's."""

    rows: Sequence[Row]
    table: pa.Table
    columns: Mapping[str, Scalar]
    counts: Counts = Counts(0)

    def take(self, numbers: Sequence[int]) -> "Part":
        """Return some of the rows."""
        rows = [self.rows[at] for at in numbers]
        return replace(self, rows=rows, table=self.table.take(pa.array(numbers, pa.int64())))

    def add_column(self, name: str, values: pa.Array) -> "Part":
        """Return the rows with one column more, which hides one of the same name."""
        # Under a name of its own: the table may have a column of this name already.
        own = f"_made_{self.table.num_columns}"
        columns = {**self.columns, name: Scalar.column(own)}
        return replace(self, table=self.table.append_column(own, values), columns=columns)

    def made_of(self, before: "Part") -> "Part":
        """Return rows that a generator made of others, counted."""
        counts = before.counts
        width = len(before.rows[0].coordinates) if before.rows else 0
        parents = {row.coordinates[:width] for row in self.rows}
        childless = len(before.rows) - len(parents)
        if counts.made is None:
            counts = replace(counts, empty=childless)
        else:
            counts = replace(counts, ended=counts.ended + counts.skipped + childless)
        return replace(self, counts=replace(counts, made=len(self.rows), skipped=0))


@dataclass(frozen=True)
class Folding:
    """What became of the rows that an aggregate took: of each pair of a row and a window."""

    matched: int
    pairs: int
    folded: int
    late: int
    corrected: int
    late_records: tuple[Coordinates, ...]


@dataclass(frozen=True)
class Relation:
    """Rows, and what became of all others on the way to them: one `Counts` for each leaf."""

    parts: tuple[Part, ...]
    counts: tuple[Counts, ...]
    folding: Folding | None = None  # None: the rows are records


class Dead:
    """The records that are dead for a view, as far as they are known.

    Each leaf of its query is judged by itself: what fails in one branch of a union may be a row of
    another.
    """

    def __init__(self) -> None:
        self.found: set[tuple[int, Coordinates]] = set()  # leaf and record
        self._leaves = 0

    @property
    def records(self) -> list[Coordinates]:
        """All of them, each once."""
        return sorted({record for _, record in self.found})

    def begin(self) -> None:
        """Count the leaves from 0: the query is evaluated from its start."""
        self._leaves = 0

    def next_leaf(self) -> int:
        """Return the number of the next leaf that is evaluated."""
        self._leaves += 1
        return self._leaves - 1

    def add(self, rows: Iterable[Row]) -> None:
        """Note that an expression fails on some rows."""
        self.found |= {(row.leaf, row.record) for row in rows}


@dataclass(frozen=True)
class Question:
    """One view over what the streams read. `watermark` is W, the least of its streams'."""

    view: View
    streams: Mapping[str, StreamRead]
    watermark: Time
    scalars: Scalars
    dead: Dead  # which are left out
    errors: list[Row] = field(default_factory=list)  # groups on which an expression fails


def ask(
    question: Question, relation: Relation, part: Part, scalars: Sequence[Scalar]
) -> tuple[Part, list[Values]]:
    """Return the rows that no expression fails on, and the values there.

    Other records are dead, and other groups are among the errors.
    """
    whole = [scalar.substitute(part.columns) for scalar in scalars]
    found = question.scalars.evaluate(whole, part.table)
    failed: dict[int, Failed] = {}
    for column in found:
        failed |= {at: each for at, each in enumerate(column.values) if isinstance(each, Failed)}
    sound = [at for at in range(len(part.rows)) if at not in failed]
    values = [Values(each.type, [each.values[at] for at in sound]) for each in found]
    rows = [part.rows[at] for at in failed]
    if relation.folding is None:
        question.dead.add(rows)
    else:
        question.errors.extend(rows)
    return part.take(sound), values
