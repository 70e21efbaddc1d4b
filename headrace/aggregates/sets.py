"""collect_set(x, n): the first n different values that are not null, in the order they came.

The order is that of event time, partition and offset of the first record with the value. One row
per group and value, at most n of a group. Values are different as keys are: all NaN are one, and so
are 0.0 and -0.0. With RESPECT NULLS, null is one value more.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.distinct import check_comparable, nullable
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["collect_set", "collect_set_with_nulls"]


def collect_set(arguments: Arguments) -> Aggregate:
    """Return the set of the first values. ValueError: values that cannot be told apart."""
    value, count = check_comparable("collect_set", arguments), arguments.parameters[0]
    items = Items(nullable(value), value, keep=int(count))
    return Aggregate(
        (_first(arguments),),
        Final.FIRST_ITEMS,
        DataType("ARRAY", parts=(value,)),
        items,
        parameter=count,
    )


def collect_set_with_nulls(arguments: Arguments) -> Aggregate:
    """Return the same with null as a value. ValueError: values that cannot be told apart."""
    value, count = check_comparable("collect_set", arguments), arguments.parameters[0]
    # In a struct, because an item that is null itself would be none.
    item = DataType("STRUCT", parts=(value,), names=("value",))
    wrapped = (
        f"CASE WHEN {{tiebreak}} IS NOT NULL THEN named_struct('value', {nullable(value)}) END"
    )
    items = Items(wrapped, item, keep=int(count))
    return Aggregate(
        (_first(arguments),),
        Final.FIRST_VALUES,
        DataType("ARRAY", parts=(value,)),
        items,
        parameter=count,
    )


def _first(arguments: Arguments) -> State:
    return State(arguments.tiebreak, "min({tiebreak})", Merge.LEAST)
