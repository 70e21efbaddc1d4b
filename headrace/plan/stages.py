"""The stages of a turn as frozen values: decided before anything runs, carried out by a gear.

    Read -> Step -> Narrow -> Fold -> Publish

A gear has one verb for each kind of stage, which takes all stages of that kind in a turn. EXPLAIN
prints these very values (explain.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.model.definitions import Stream, View
from headrace.plan.shape import Shape
from headrace.plan.spark.windowing import Levels
from headrace.plan.tables import Table
from headrace.time.placement import Placement

__all__ = [
    "Fold",
    "Narrow",
    "Operator",
    "Pipeline",
    "Publish",
    "Read",
    "Step",
    "kept_tables",
    "places_of",
    "plan_pipeline",
    "streams_by_table",
    "tables_of",
]


class Operator(NamedTuple):
    """Which keyed step it is: what it does, and the version of the stream that it steps.

    What it remembers is kept under this name.
    """

    kind: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}@{self.version}"


@dataclass(frozen=True)
class Read:
    """Read a stream's records, decode these columns of them, and stamp them."""

    stream: Stream
    columns: frozenset[str]


@dataclass(frozen=True)
class Step:
    """Step the records of a stream by a key: leave out those whose `by` was seen before."""

    operator: Operator
    by: str
    within_us: int


@dataclass(frozen=True)
class Narrow:
    """Leave out what WHERE does not take, and put every other record into its windows.

    All linear nodes of a view, and the placement of its rows, as levels of columns that Spark adds
    to the input in the query of the fold above; `columns` are those of the stream that it reads.
    """

    columns: frozenset[str]
    levels: Levels


@dataclass(frozen=True)
class Fold:
    """Make a delta of a turn's records for the state table of a view: of those of one branch.

    `values` are the expressions that are asked of a record that is folded, in order: what fails on
    one of them makes the record dead.
    """

    view: View
    shape: Shape
    stream: Stream
    table: Table
    narrow: Narrow
    query: str  # Spark SQL over the relation `__input`, the narrowing included
    values: tuple[str, ...]
    partials: tuple[tuple[str, str], ...] = ()  # of the state columns: names and Spark SQL

    @property
    def input(self) -> str:
        """What its counters are of, among the inputs of its view."""
        return self.shape.input

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def placement(self) -> Placement:
        """Where the view's rows stand in time."""
        return self.table.placement

    @property
    def version(self) -> str:
        """The version of the view that this fold maintains."""
        return self.table.version


@dataclass(frozen=True)
class Publish:
    """Publish what a stream or a view puts aside; a topic is None where nothing goes there.

    `written` is the topic of a stream whose rows are written.
    """

    owner: str
    dead: str
    late: str | None = None
    duplicate: str | None = None
    written: str | None = None

    @staticmethod
    def of(definition: Stream | View) -> "Publish":
        """Return where a definition's records are put aside."""
        name = definition.name
        if isinstance(definition, View):
            keeps_late = definition.late != "drop" and definition.topic is None
            late = f"{name}.late" if keeps_late else None
            return Publish(name, f"{name}.dead", late=late, written=definition.topic)
        keeps_duplicates = definition.unique is not None and definition.duplicates == "topic"
        duplicate = f"{name}.duplicate" if keeps_duplicates else None
        return Publish(name, f"{name}.dead", duplicate=duplicate)


@dataclass(frozen=True)
class Pipeline:
    """All that a turn of a unit does, stage by stage."""

    reads: tuple[Read, ...]
    steps: tuple[Step, ...]
    folds: tuple[Fold, ...]
    publishes: tuple[Publish, ...]

    def folds_over(self, stream: str) -> tuple[Fold, ...]:
        """Return the folds that read a stream."""
        return tuple(fold for fold in self.folds if fold.stream.name == stream)


def streams_by_table(folds: Iterable[Fold]) -> dict[Table, frozenset[str]]:
    """Return the streams whose records are folded into each table."""
    found: dict[Table, frozenset[str]] = {}
    for fold in folds:
        found[fold.table] = found.get(fold.table, frozenset()) | {fold.stream.name}
    return found


def tables_of(folds: Iterable[Fold]) -> list[Table]:
    """Return the tables that folds make deltas for, each once."""
    return list(streams_by_table(folds))


def places_of(folds: Iterable[Fold]) -> tuple[str, ...]:
    """Return what Spark evaluates of the merged rows of a view, as the ledger keeps it."""
    return tuple(each.place for table in tables_of(folds) for each in table.evaluated)


def kept_tables(folds: Iterable[Fold]) -> list[Table]:
    """Return those of them that a store keeps: the rows of the others are written to topics."""
    return [table for table in tables_of(folds) if table.target is None]


def plan_pipeline(
    streams: Iterable[tuple[Stream, str]], folds: Sequence[Fold], *, owned: Iterable[str] = ()
) -> Pipeline:
    """Return the pipeline of streams, with their versions, and of the folds over them.

    `owned` are the streams whose dead and duplicate records are published.
    """
    streams, owned = list(streams), set(owned)
    reads, steps = [], []
    for stream, version in streams:
        event_time = frozenset({stream.event_time} if stream.event_time else ())
        over = (fold.narrow.columns for fold in folds if fold.stream.name == stream.name)
        reads.append(Read(stream, event_time.union(*over)))
        if stream.unique is not None:
            operator = Operator("deduplicate", stream.name, version)
            steps.append(Step(operator, stream.unique, stream.unique_within_us))
    publishes = [Publish.of(stream) for stream, _ in streams if stream.name in owned]
    publishes += [Publish.of(view) for view in dict.fromkeys(fold.view for fold in folds)]
    return Pipeline(tuple(reads), tuple(steps), tuple(folds), tuple(publishes))
