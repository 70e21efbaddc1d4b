"""Lists of values in the order of their records: that of event time, partition and offset.

- collect_list(x, n): the values of the first n records whose x is not null.
- first_n(x, n): the same with nulls; so is `collect_list(x, n) RESPECT NULLS`.
- last_n(x, n): the values of the last n records, the last one at the end; with IGNORE NULLS of
  those whose x is not null.

Nothing collected is an empty list.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["collect_list", "first_n", "last_n"]

_KNOWN = "CASE WHEN {x} IS NOT NULL THEN {tiebreak} END"


def collect_list(arguments: Arguments) -> Aggregate:
    """Return collect_list over an argument; its parameter says how many values are kept."""
    return _listed("min", Merge.LEAST_N, _KNOWN, Final.PICKED_EACH, arguments)


def first_n(arguments: Arguments) -> Aggregate:
    """Return the first values, nulls too."""
    return _listed("min", Merge.LEAST_N, "{tiebreak}", Final.PICKED_EACH, arguments)


def last_n(arguments: Arguments) -> Aggregate:
    """Return the last values, in the order of their records."""
    order = _KNOWN if arguments.ignores_nulls else "{tiebreak}"
    return _listed("max", Merge.GREATEST_N, order, Final.PICKED_BACKWARDS, arguments)


def _listed(
    function: str, merge: Merge, order: str, final: Final, arguments: Arguments
) -> Aggregate:
    value, count = arguments.value, arguments.parameters[0]
    assert value is not None
    item = DataType("STRUCT", parts=(arguments.tiebreak, value), names=("tiebreak", "value"))
    kept = "named_struct('tiebreak', {tiebreak}, 'value', {x})"
    partial = f"coalesce({function}_by({kept}, {order}, {count}), array())"
    # Items compare field by field, and no two records share their place.
    state = State(DataType("ARRAY", parts=(item,)), partial, merge, most=int(count))
    return Aggregate((state,), final, DataType("ARRAY", parts=(value,)))
