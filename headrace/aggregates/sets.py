"""collect_set(x, n): the first n different values that are not null, in the order they came.

The order is that of event time, partition and offset of the first record with the value. One row
per group and value, at most n of a group. Values are different as keys are: all NaN are one, and so
are 0.0 and -0.0.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.distinct import check_single
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["collect_set"]


def collect_set(arguments: Arguments) -> Aggregate:
    """Return the set of the first values. ValueError: values that cannot be told apart."""
    value, count = check_single("collect_set", arguments), arguments.parameters[0]
    first = State(arguments.tiebreak, "min({tiebreak})", Merge.LEAST)
    items = Items("{x}", value, keep=int(count))
    return Aggregate(
        (first,), Final.FIRST_ITEMS, DataType("ARRAY", parts=(value,)), items, parameter=count
    )
