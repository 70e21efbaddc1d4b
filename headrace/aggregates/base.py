"""What an aggregate is: a partial, a merge, a combine and a final, kept side by side.

- *partial*: Spark SQL over the rows of one turn; `{x}` is the argument.
- *merge*: SQL of the store over two states, `{old}` and `{new}`; associative and commutative, so
  that neither the cut into turns nor the order of merges shows.
- *combine*: the same over any number of states at once, `{x}`, as an aggregate of the store: how
  the panes of a window are put together when it is read.
- *final*: SQL of the store over the merged state columns, `{0}`, `{1}`, ...

A state column never overflows for any number of records a log can hold; a final may, and then the
read fails as the same query would in SQL.
"""

from dataclasses import dataclass

from headrace.schema.types import DataType

__all__ = ["ADD", "COUNT_UP", "Aggregate", "State"]

#: Adds two states of which either may be NULL: nothing was counted.
ADD = "coalesce({old} + {new}, {old}, {new})"
#: Combines counts; the store would make a HUGEINT of the sum.
COUNT_UP = "CAST(sum({x}) AS BIGINT)"


@dataclass(frozen=True)
class State:
    """One column of an aggregate's state."""

    type: DataType
    partial: str
    merge: str
    combine: str


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over an argument of a known type."""

    states: tuple[State, ...]
    final: str
    type: DataType
