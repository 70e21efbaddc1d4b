"""first(x) and last(x): the value of the earliest and of the latest record, by event time.

Records of one event time go by partition and offset. A null counts as any value does, as in Spark,
unless IGNORE NULLS is written.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["first", "last"]


def first(arguments: Arguments) -> Aggregate:
    """Return first over an argument."""
    return _end("min", Merge.LEAST, arguments)


def last(arguments: Arguments) -> Aggregate:
    """Return last over an argument."""
    return _end("max", Merge.GREATEST, arguments)


def _end(function: str, merge: Merge, arguments: Arguments) -> Aggregate:
    value = arguments.value
    assert value is not None
    type = DataType("STRUCT", parts=(arguments.tiebreak, value), names=("tiebreak", "value"))
    order = "{tiebreak}"
    if arguments.ignores_nulls:
        order = "CASE WHEN {x} IS NOT NULL THEN {tiebreak} END"
    partial = f"{function}_by(named_struct('tiebreak', {{tiebreak}}, 'value', {{x}}), {order})"
    # States compare field by field, and no two records share their place.
    state = State(type, partial, merge)
    return Aggregate((state,), Final.PICKED, value)
