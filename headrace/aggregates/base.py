"""What an aggregate is: a partial, a merge and a final, kept side by side.

- *partial*: Spark SQL over the rows of one turn; `{x}` is the argument.
- *merge*: SQL of the store over two states, `{old}` and `{new}`; associative and commutative, so
  that neither the cut into turns nor the order of merges shows.
- *final*: SQL of the store over the merged state columns, `{0}`, `{1}`, ...

A state column never overflows for any number of records a log can hold; a final may, and then the
read fails as the same query would in SQL.
"""

from dataclasses import dataclass

from headrace.schema.types import DataType

__all__ = ["ADD", "Aggregate", "State"]

#: Adds two states of which either may be NULL: nothing was counted.
ADD = "coalesce({old} + {new}, {old}, {new})"


@dataclass(frozen=True)
class State:
    """One column of an aggregate's state."""

    type: DataType
    partial: str
    merge: str


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over an argument of a known type."""

    states: tuple[State, ...]
    final: str
    type: DataType
