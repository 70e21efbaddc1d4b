"""min_by(x, y) and max_by(x, y): the value of x where y is least, or greatest.

Of records with equal y, min_by takes the earliest and max_by the latest, by event time, partition
and offset. Records whose y is null do not count; x may be null.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["greatest_by", "least_by"]


def least_by(arguments: Arguments) -> Aggregate:
    """Return min_by over two arguments. ValueError: the second has no order."""
    return _extreme_by("min", Merge.LEAST, arguments)


def greatest_by(arguments: Arguments) -> Aggregate:
    """Return max_by over two arguments. ValueError: the second has no order."""
    return _extreme_by("max", Merge.GREATEST, arguments)


def _extreme_by(function: str, merge: Merge, arguments: Arguments) -> Aggregate:
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
    partial = f"{function}_by({kept}, {order})"
    # States compare field by field: by y, then by the tie-break, which no two records share.
    state = State(type, partial, merge)
    return Aggregate((state,), Final.PICKED, value)
