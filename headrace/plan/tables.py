"""The state table behind a view, in words: what a plan hands to a store.

A store says in its own language how the columns merge (`Merge`), where the rows stand in time
(`Placement`), and what readers see of them (`Final`, `Term`).
"""

from dataclasses import dataclass

from headrace.aggregates.words import Final, Merge
from headrace.plan.terms import Term
from headrace.schema.types import DataType
from headrace.time.placement import Placement

__all__ = [
    "ERRORS",
    "EVENTS",
    "RECORD_KEY",
    "WATERMARK",
    "Answer",
    "Evaluated",
    "Having",
    "KeyPart",
    "Output",
    "Table",
    "TableColumn",
    "Target",
]

#: The column that counts the records of a row, in every table whose rows merge.
EVENTS = "_events"
#: The part of a version's names that its relation of errors has.
ERRORS = "errors"
#: The watermark and the key of the record that a row came of, where rows are written to a topic.
WATERMARK = "__watermark"
RECORD_KEY = "__key"


@dataclass(frozen=True)
class TableColumn:
    """A column. `merge` says how two states become one; None: it is part of the key.

    `most` is how many items LEAST_N and GREATEST_N keep.
    """

    name: str
    type: DataType
    merge: Merge | None = None
    most: int | None = None


@dataclass(frozen=True)
class Answer:
    """What an aggregate call answers: a final over its states.

    These are columns of the table or, with `items`, of that part of it.
    """

    name: str
    final: Final
    type: DataType
    states: tuple[str, ...]
    parameter: str | None = None
    items: str | None = None


@dataclass(frozen=True)
class Output:
    """A column that readers see; `said` is its expression in the user's words."""

    name: str
    term: Term
    type: DataType
    said: str = ""


@dataclass(frozen=True)
class Having:
    """The condition that rows are shown on; `said` is in the user's words."""

    term: Term
    said: str = ""


@dataclass(frozen=True)
class Evaluated:
    """What Spark evaluates of a merged row, in the turn that changes it: a column of the table.

    `expression` is Spark SQL over the names of the row (`inputs`, with their types). The column is
    a struct of one field, `v`, the value; the struct is NULL where the expression fails.
    """

    name: str
    expression: str
    type: DataType
    inputs: tuple[tuple[str, DataType], ...]
    place: str  # what it is in the definition: `o0`, `o1`, ... of the outputs, or `having`

    @property
    def column(self) -> TableColumn:
        """The column that holds it."""
        return TableColumn(self.name, DataType("STRUCT", parts=(self.type,), names=("v",)))


@dataclass(frozen=True)
class KeyPart:
    """A part of the key that sinks are told rows under: its name, and the planner's name of it."""

    name: str
    reference: str
    type: DataType


@dataclass(frozen=True)
class Target:
    """Where rows are written that are no table; `key` is the column that is a record's key."""

    topic: str
    key: str


@dataclass(frozen=True)
class Table:
    """One version of a view's state table.

    The first columns are those of its placement. Where every row is a record they are the key, and
    nothing merges; otherwise the rows of a delta merge into the rows of their key. Terms refer to
    keys by their columns, to `answers` by their names, and to the edges of a row's window.

    `children` are tables of items beside it, one for each `part`; they merge and leave as it does.
    The last column of a child's key is its `item`. With `keep`, as many items of a group are kept,
    those that the first state is least or, with `keeps_greatest`, greatest of.

    `evaluated` are columns behind the others: no delta has them and no merge changes them. Outputs
    and `having` refer to them by their names.

    A row on which an output or `having` fails is no row of the view. It is one of the relation
    `errors_name` instead: the columns of `key`, and why.

    `newest` is the state of a table's newest changes: where it stands is its field `tiebreak`, and
    whether the row is gone its field `value.gone`, which a truncation sets.

    With a `target` there is no such table: its rows are written to a topic, each once.
    """

    view: str
    version: str
    columns: tuple[TableColumn, ...]
    placement: Placement
    answers: tuple[Answer, ...] = ()
    outputs: tuple[Output, ...] = ()
    having: Having | None = None
    key: tuple[KeyPart, ...] = ()
    retention_us: int | None = None
    part: str = ""
    keep: int | None = None
    keeps_greatest: bool = False
    children: tuple["Table", ...] = ()
    target: Target | None = None
    evaluated: tuple[Evaluated, ...] = ()
    newest: str | None = None

    @property
    def name(self) -> str:
        """The physical name; it carries the version."""
        return f"{self.view}__{self.version}" + (f"__{self.part}" if self.part else "")

    @property
    def errors_name(self) -> str | None:
        """The physical name of its errors; None: its rows are records, which are dead instead."""
        is_grouped = not self.part and not self.placement.appends
        return f"{self.name}__{ERRORS}" if is_grouped else None

    @property
    def keys(self) -> tuple[TableColumn, ...]:
        """The columns that identify a row."""
        if self.placement.appends:
            return self.columns[: len(self.placement.columns)]
        return tuple(column for column in self.columns if column.merge is None)

    @property
    def values(self) -> tuple[TableColumn, ...]:
        """The columns that do not: states that merge or, where rows are records, their values."""
        keys = {column.name for column in self.keys}
        return tuple(column for column in self.columns if column.name not in keys)

    @property
    def evaluated_inputs(self) -> dict[str, DataType]:
        """The names that Spark has to know of a row, with their types."""
        return {name: type for each in self.evaluated for name, type in each.inputs}

    @property
    def groups(self) -> tuple[TableColumn, ...]:
        """The keys without those that say where a row stands in time, and without the item."""
        places = self.placement.item_columns if self.part else self.placement.columns
        names = {place.name for place in places}
        keys = self.keys[:-1] if self.part else self.keys
        return tuple(column for column in keys if column.name not in names)

    @property
    def item(self) -> TableColumn:
        """The column of the items, in a table of them."""
        assert self.part, self.name
        return self.keys[-1]

    def child(self, part: str) -> "Table":
        """Return the table of a part; it must exist."""
        return next(child for child in self.children if child.part == part)
