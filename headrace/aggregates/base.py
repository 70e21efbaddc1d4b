"""What an aggregate is: a partial, a merge, a combine and a final, kept side by side.

- *partial*: Spark SQL over the rows of one turn; `{x}` is the argument, `{y}` what it is ordered
  by, `{place}` the record's place: event time, partition, offset. All three are NULL for a record
  that FILTER leaves out.
- *merge*: SQL of the store over two states, `{old}` and `{new}`; associative and commutative, so
  that neither the cut into turns nor the order of merges shows.
- *combine*: the same over any number of states at once, `{x}`, as an aggregate of the store: how
  the panes of a window are put together when it is read.
- *final*: SQL of the store over the merged state columns, `{0}`, `{1}`, ...

Some aggregates keep *items*: rows of a table of their own, one per group and item, each with
states that merge as any do. There *final* is an aggregate over the rows of a group, with `item`
besides the states, and over what `ranked` adds to them.

A state is a function of the set of records it saw, so what depends on an order goes by places. A
state column never overflows for any number of records a log can hold; a final may, and then the
read fails as the same query would in SQL.
"""

from dataclasses import dataclass

from headrace.schema.types import DataType, parse_type

__all__ = ["ADD", "COUNT_UP", "PLACE", "Aggregate", "Arguments", "Items", "State"]

#: Adds two states of which either may be NULL: nothing was counted.
ADD = "coalesce({old} + {new}, {old}, {new})"
#: Combines counts; the store would make a HUGEINT of the sum.
COUNT_UP = "CAST(sum({x}) AS BIGINT)"
#: Where a record stands: no two of a stream share it, and its order is that of time. Without an
#: event time `time_us` is 0.
PLACE = parse_type("STRUCT<time_us: BIGINT, partition: INT, offset: BIGINT>")


@dataclass(frozen=True)
class Arguments:
    """What an aggregate is called with: the types of its values, and what was written out.

    `value` is None for count(*), which counts records.
    """

    value: DataType | None
    by: DataType | None = None
    parameters: tuple[str, ...] = ()
    ignores_nulls: bool = False


@dataclass(frozen=True)
class State:
    """One column of an aggregate's state.

    `differs` tells two states apart, `{old}` and `{new}`, by more than what merging the same
    records in another way may leave; None: any difference of values does.
    """

    type: DataType
    partial: str
    merge: str
    combine: str
    differs: str | None = None


@dataclass(frozen=True)
class Items:
    """The rows that an aggregate keeps of a group, one per item.

    `item` is Spark SQL over the columns that a partial may use; NULL: the record adds to none.
    `ranked` is SQL of the store for more columns, over the rows of one group. With `keep`, a group
    keeps as many rows: those that the first state is least of.
    """

    item: str
    type: DataType
    ranked: str = ""
    keep: int | None = None


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over an argument of a known type; its states are its items', if it has any."""

    states: tuple[State, ...]
    final: str
    type: DataType
    items: Items | None = None
