"""What an aggregate is: a partial, a merge and a final, kept side by side.

- *partial*: Spark SQL over the rows of one turn; `{x}` is the argument, `{y}` what it is ordered
  by, `{tiebreak}` what ties are broken by: event time, partition, offset. All three are NULL for
  a record that FILTER leaves out.
- *merge*: the word for how two states become one, which every store knows (words.py).
- *final*: the word for what readers see of the merged states.

Some aggregates keep *items*: rows of a table of their own, one per group and item, each with
states that merge as any do. There the *final* is over the rows of a group.

A state is a function of the set of records it saw, so what depends on an order goes by places. A
state column never overflows for any number of records a log can hold; a final may, and then the
read fails as the same query would in SQL.
"""

from dataclasses import dataclass

from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType, parse_type

__all__ = ["TIEBREAK", "Aggregate", "Arguments", "Items", "State"]

#: What breaks ties: no two records of a stream share it, and its order is that of time. Without
#: an event time `time_us` is 0. Of rows that are more than records it has all their coordinates.
TIEBREAK = parse_type("STRUCT<time_us: BIGINT, partition: INT, offset: BIGINT>")


@dataclass(frozen=True)
class Arguments:
    """What an aggregate is called with: the types of its values, and what was written out.

    `value` is None for count(*), which counts records.
    """

    value: DataType | None
    by: DataType | None = None
    parameters: tuple[str, ...] = ()
    ignores_nulls: bool = False
    tiebreak: DataType = TIEBREAK


@dataclass(frozen=True)
class State:
    """One column of an aggregate's state.

    `most` is how many items a list of LEAST_N or GREATEST_N keeps.
    """

    type: DataType
    partial: str
    merge: Merge
    most: int | None = None


@dataclass(frozen=True)
class Items:
    """The rows that an aggregate keeps of a group, one per item.

    `item` is Spark SQL over the columns that a partial may use; NULL: the record adds to none.
    With `keep`, a group keeps as many rows: those that the first state is least, or greatest, of.
    """

    item: str
    type: DataType
    keep: int | None = None
    keeps_greatest: bool = False


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over an argument of a known type; its states are its items', if it has any.

    `parameter` is what the final needs besides the states: how many items, which share.
    """

    states: tuple[State, ...]
    final: Final
    type: DataType
    items: Items | None = None
    parameter: str | None = None
