"""The aggregates a view can use, by their SQL names."""

from collections.abc import Callable

from headrace.aggregates.average import average
from headrace.aggregates.base import Aggregate, State
from headrace.aggregates.count import count
from headrace.aggregates.extremes import greatest, least
from headrace.aggregates.total import total
from headrace.schema.types import DataType

__all__ = ["AGGREGATES", "Aggregate", "State"]

AGGREGATES: dict[str, Callable[[DataType | None], Aggregate]] = {
    "avg": average,
    "count": count,
    "max": greatest,
    "min": least,
    "sum": total,
}
