"""Values within a term: their SQL, and the types that Spark gives them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.schema.types import DataType

__all__ = ["Say", "Value"]


class Value(NamedTuple):
    """The SQL of an operand, and its type; None: it is NULL."""

    text: str
    type: DataType | None


#: Gives the SQL of an operation from its operands and its own type.
Say = Callable[[Sequence[Value], DataType], str]
