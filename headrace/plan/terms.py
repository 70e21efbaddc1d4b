"""Terms: expressions over merged rows, in words that every store can say.

A term is the tree of an expression whose meaning Spark and all stores share, with the type that
Spark gives every part of it. What has no word here is not a store's to evaluate.
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.model.operators import Operator
from headrace.schema.types import DataType

__all__ = ["Cause", "Literal", "Operation", "Operator", "Reference", "Term"]


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


class Cause(StrEnum):
    """Why a term fails on a row, where every store can tell; in the words of `<view>.errors`."""

    ZERO = "division by zero"
    ELEMENT = "there is no such element"
    SLICE = "a slice begins at 1 or at -1, and its length is not negative"
    SIZE = "the number is too large for its type"
    SUM = "the sum is too large for its type"
    OTHER = ""  # anything else
