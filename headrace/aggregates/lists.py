"""collect_list(x, n): the values of the first n records whose x is not null, in their order.

The order is that of event time, partition and offset. Nothing collected is an empty list.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["collect_list"]


def collect_list(arguments: Arguments) -> Aggregate:
    """Return collect_list over an argument; its parameter says how many values are kept."""
    value, count = arguments.value, arguments.parameters[0]
    assert value is not None
    item = DataType("STRUCT", parts=(arguments.tiebreak, value), names=("tiebreak", "value"))
    partial = (
        "coalesce(min_by(named_struct('tiebreak', {tiebreak}, 'value', {x}), "
        f"CASE WHEN {{x}} IS NOT NULL THEN {{tiebreak}} END, {count}), array())"
    )
    # Items compare field by field, and no two records share their place.
    state = State(DataType("ARRAY", parts=(item,)), partial, Merge.LEAST_N, most=int(count))
    return Aggregate((state,), Final.PICKED_EACH, DataType("ARRAY", parts=(value,)))
