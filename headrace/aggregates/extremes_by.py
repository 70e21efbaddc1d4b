"""min_by(x, y) and max_by(x, y): the value of x where y is least, or greatest.

Of records with equal y, min_by takes the earliest and max_by the latest, by event time, partition
and offset. Records whose y is null do not count; x may be null.

min_by(x, y, n) and max_by(x, y, n): the list of x where y is the n least, or greatest, in the order
in which the calls without n would take them: min_by by y upwards, max_by downwards.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["greatest_by", "least_by"]


def least_by(arguments: Arguments) -> Aggregate:
    """Return min_by over two arguments. ValueError: the second has no order."""
    return _extreme_by("min", Merge.LEAST, Merge.LEAST_N, arguments)


def greatest_by(arguments: Arguments) -> Aggregate:
    """Return max_by over two arguments. ValueError: the second has no order."""
    return _extreme_by("max", Merge.GREATEST, Merge.GREATEST_N, arguments)


def _extreme_by(function: str, one: Merge, many: Merge, arguments: Arguments) -> Aggregate:
    value, by = arguments.value, arguments.by
    assert value is not None
    assert by is not None
    if not by.is_orderable:
        raise ValueError(
            f"{function}_by orders by its second argument, which has no order: {by.sql}; pick a "
            f"field of it"
        )
    type = DataType(
        "STRUCT", parts=(by, arguments.tiebreak, value), names=("by", "tiebreak", "value")
    )
    order = "CASE WHEN {y} IS NOT NULL THEN struct({y}, {tiebreak}) END"
    kept = "named_struct('by', {y}, 'tiebreak', {tiebreak}, 'value', {x})"
    # States compare field by field: by y, then by the tie-break, which no two records share.
    if not arguments.parameters:
        state = State(type, f"{function}_by({kept}, {order})", one)
        return Aggregate((state,), Final.PICKED, value)
    [count] = arguments.parameters
    partial = f"coalesce({function}_by({kept}, {order}, {count}), array())"
    state = State(DataType("ARRAY", parts=(type,)), partial, many, most=int(count))
    return Aggregate((state,), Final.PICKED_EACH, DataType("ARRAY", parts=(value,)))
