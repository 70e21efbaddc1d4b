"""Terms: expressions over merged rows, in words that every store can say.

A term is the tree of an expression whose meaning Spark and all stores share, with the type that
Spark gives every part of it. What has no word here is not a store's to evaluate.
"""

from dataclasses import dataclass

from headrace.model.operators import Operator
from headrace.schema.types import DataType

__all__ = ["Literal", "Operation", "Operator", "Reference", "Term"]


@dataclass(frozen=True)
class Reference:
    """The value of a key, an aggregate call or an edge of the window, by the planner's name."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Literal:
    """A value as it is written: digits, a text, true or false; None is NULL, which has no type.

    A text beside a DATE or TIMESTAMP is written so that it can only be read in one way.
    """

    value: str | bool | None
    is_text: bool = False
    type: DataType | None = None


@dataclass(frozen=True)
class Operation:
    """An operator over its operands, and the type of what it gives."""

    operator: Operator
    operands: tuple["Term", ...]
    type: DataType


Term = Reference | Literal | Operation
