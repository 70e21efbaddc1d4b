"""histogram(x) and mode(x): how often each value occurs, and the one that occurs most often. Exact.

One row per group and value, so the state grows with the values. Nulls do not count. Values are
different as keys are: all NaN are one, and so are 0.0 and -0.0. A histogram is in the order of its
values; of values that occur equally often the mode is the least.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.distinct import check_single
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType, parse_type

__all__ = ["histogram", "mode"]

_BIGINT = parse_type("BIGINT")


def histogram(arguments: Arguments) -> Aggregate:
    """Return counts by value as a map. ValueError: values that cannot be its keys."""
    value = check_single("histogram", arguments)
    return _counted(Final.HISTOGRAM, value, DataType("MAP", parts=(value, _BIGINT)))


def mode(arguments: Arguments) -> Aggregate:
    """Return the most frequent value. ValueError: values that have no order."""
    value = check_single("mode", arguments)
    return _counted(Final.MODE, value, value)


def _counted(final: Final, value: DataType, type: DataType) -> Aggregate:
    state = State(_BIGINT, "count({x})", Merge.COUNT)
    return Aggregate((state,), final, type, Items("{x}", value))
