"""Terms: expressions over merged rows, in words that every store can say.

A term is the tree of an expression whose meaning Spark and all stores share, with the type that
Spark gives every part of it. What has no word here is not a store's to evaluate.
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.schema.types import DataType

__all__ = ["Literal", "Operation", "Operator", "Reference", "Term"]


class Operator(StrEnum):
    """What is done with the operands. Numbers are as in Spark with ANSI on: what overflows fails.

    NULL operands give NULL unless it says otherwise.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"  # as DOUBLE; by zero it fails, unless there is NULL to divide
    NEGATE = "negate"
    ABSOLUTE = "abs"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    SAME = "<=>"  # NULL is the same as NULL; never NULL
    BETWEEN = "between"  # value, low, high
    IN = "in"  # value, candidates
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is null"
    IS_TRUE = "is true"
    IS_FALSE = "is false"
    COALESCE = "coalesce"
    NULL_IF = "nullif"
    CASE = "case"  # condition, value, condition, value, ..., perhaps what holds otherwise
    CASE_OF = "case of"  # what is compared, then as CASE with candidates for conditions
    CAST = "cast"  # to the operation's own type


@dataclass(frozen=True)
class Reference:
    """The value of a key, an aggregate call or an edge of the window, by the planner's name."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Literal:
    """A value as it is written: digits, a text, true or false; None is NULL.

    A text beside a DATE or TIMESTAMP is written so that it can only be read in one way.
    """

    value: str | bool | None
    is_text: bool = False


@dataclass(frozen=True)
class Operation:
    """An operator over its operands, and the type of what it gives."""

    operator: Operator
    operands: tuple["Term", ...]
    type: DataType


Term = Reference | Literal | Operation
