"""What readers ask of a view's rows, and what they are told, in words: a store has its own SQL."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa

from headrace.ledger.entries import HoldingState, StreamPartition
from headrace.ledger.following import Token
from headrace.plan.tables import EVENTS
from headrace.schema.relations import Named, Relation
from headrace.schema.types import DataType

__all__ = [
    "CLOSED",
    "Compare",
    "Condition",
    "Found",
    "Order",
    "Selection",
    "Standing",
    "Value",
    "readable_columns",
]

#: The column that says whether a row is closed, beside EVENTS and those of the definition.
CLOSED = "_closed"

#: A value that a column is compared with: of the Python type that Arrow's values become.
Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime


class Compare(StrEnum):
    """How a column is compared with a value. A null is neither equal nor unequal to a value."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@dataclass(frozen=True)
class Condition:
    """A test of one column. Without a value: whether it is null, or is not."""

    column: Named
    compare: Compare
    value: Value | None

    def __post_init__(self) -> None:
        if self.value is None:
            assert self.compare in (Compare.EQUAL, Compare.UNEQUAL), self.compare


@dataclass(frozen=True)
class Order:
    """A column that rows are ordered by; nulls come last."""

    column: Named
    descending: bool = False


@dataclass(frozen=True)
class Selection:
    """Which rows of a view are asked for, in which order, and which columns of them."""

    columns: tuple[Named, ...]
    conditions: tuple[Condition, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Standing:
    """Where a view that readers see stands: its version, what its rows are, and how far it is.

    `position` is the next offset to read of each partition; `watermark_us` NEVER is -infinity.
    """

    view: str
    version: str
    state: HoldingState
    relation: Relation
    token: Token
    position: dict[StreamPartition, int]
    watermark_us: int

    @property
    def commit(self) -> int:
        """The number of the commit."""
        return self.token.commit


@dataclass(frozen=True)
class Found:
    """Rows that were asked for. `more`: there are others that the limits leave out."""

    rows: pa.Table
    more: bool


def readable_columns(relation: Relation) -> tuple[Named, ...]:
    """Return the columns that can be read of a view: those of its definition, and ours."""
    further = Named(EVENTS, DataType("BIGINT")), Named(CLOSED, DataType("BOOLEAN"))
    return (*relation.columns, *further)
