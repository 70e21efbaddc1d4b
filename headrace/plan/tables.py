"""The physical table behind a view: its columns, how two rows of a key merge, what readers see."""

from dataclasses import dataclass, replace

from headrace.schema.types import DataType

__all__ = ["GROUP", "Rows", "Table", "TableColumn", "quote", "watermark_of"]


#: The name of the view's own rows where a final looks up their items.
GROUP = "g"


def quote(name: str) -> str:
    """Return an identifier quoted for the store."""
    return '"' + name.replace('"', '""') + '"'


def watermark_of(view: str, version: str) -> str:
    """Return SQL for W of a view's stream, at the position of the reader; NULL for -infinity."""
    return (
        f"(SELECT watermark FROM headrace.watermarks "
        f"WHERE view = '{view}' AND version = '{version}')"
    )


@dataclass(frozen=True)
class TableColumn:
    """A column. `merge` joins an `{old}` and a `{new}` state; None makes it part of the key.

    `combine` joins any number of states, `{x}`, as an aggregate. `differs` tells states apart
    that should be the same, as `aggregates.State` says.
    """

    name: str
    type: DataType
    merge: str | None = None
    combine: str | None = None
    differs: str | None = None


@dataclass(frozen=True)
class Rows:
    """What the rows of a view are to those who are told of changes.

    `keys` are the columns of what is read that tell rows apart; `touched` selects those that
    `{delta}` changes, where sessions are from `{low}` to `{high}`, in microseconds. `names` is the
    key as it is told: name, SQL and type of its parts. `closing` tells the rows whose windows end
    in `({before}, {after}]`, in microseconds; empty when no row ever changes by closing. `last_end`
    is when the last window of the physical table ends, in microseconds, as an aggregate over it.
    """

    keys: tuple[str, ...]
    touched: str
    names: tuple[tuple[str, str, DataType], ...]
    outputs: tuple[tuple[str, DataType], ...]
    closing: str = ""
    last_end: str = ""


@dataclass(frozen=True)
class Table:
    """One version of a view's table.

    With `appends` every row is new (its key is the record's place in the log); otherwise a delta's
    rows merge into the rows of their key. `shown` is what the public name selects, from the table
    or, where windows are put together from panes, from `relation`. `expired` tells the rows that
    leave once W is `{watermark}`, in microseconds; empty when none ever does.

    `children` are tables of items beside it, one for each `part`; they merge and leave as it does.
    Where a key may stand in a delta more than once, it `repeats`. With `keep`, as many rows of a
    group are kept, those that the first state is least of.

    With `gap_us` the rows are sessions: a row spans `first_time` to `last_time`, and rows of equal
    keys (the others, `groups`) that are at most so far apart are one row.
    """

    view: str
    version: str
    columns: tuple[TableColumn, ...]
    shown: tuple[str, ...]
    condition: str = ""
    appends: bool = False
    relation: str = ""
    expired: str = ""
    retention_us: int | None = None
    rows: Rows | None = None
    part: str = ""
    repeats: bool = False
    keep: int | None = None
    children: tuple["Table", ...] = ()
    gap_us: int | None = None

    @property
    def name(self) -> str:
        """The physical name; it carries the version."""
        return f"{self.view}__{self.version}" + (f"__{self.part}" if self.part else "")

    @property
    def source(self) -> str:
        """The relation that `shown` is selected from, under the name by which items are found."""
        relation = self.relation or f"headrace.{quote(self.name)}"
        return f"{relation} AS {GROUP}" if self.children else relation

    @property
    def select(self) -> str:
        """What readers of the public name see."""
        return f"SELECT {', '.join(self.shown)} FROM {self.source}{self.condition}"

    def at(self, watermark_us: int) -> "Table":
        """Return the table with its rows closed as they are when W is this."""
        here, then = watermark_of(self.view, self.version), f"make_timestamptz({watermark_us})"
        return replace(self, shown=tuple(each.replace(here, then) for each in self.shown))

    @property
    def keys(self) -> tuple[TableColumn, ...]:
        """The columns that identify a row."""
        return tuple(column for column in self.columns if column.merge is None)

    @property
    def states(self) -> tuple[TableColumn, ...]:
        """The columns that merge."""
        return tuple(column for column in self.columns if column.merge is not None)

    @property
    def groups(self) -> tuple[TableColumn, ...]:
        """The keys of a session's row without the time of its first record."""
        return tuple(column for column in self.keys if column.name != "first_time")
