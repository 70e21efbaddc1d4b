"""The n greatest and the n least values that are not null.

- topk(x, n), bottomk(x, n): the greatest first, or the least first; a value as often as it occurs.
- topk_distinct(x, n), bottomk_distinct(x, n): the same, each value once. One row per group and
  value, at most n of a group.

The order is that of min and max: NaN is the largest number. Of 0.0 and -0.0, which are equal, the
answer has 0.0.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType

__all__ = ["greatest_distinct", "greatest_values", "least_distinct", "least_values"]


def greatest_values(arguments: Arguments) -> Aggregate:
    """Return the greatest values. ValueError: they have no order."""
    return _ranked("topk", "max", Merge.GREATEST_N, arguments)


def least_values(arguments: Arguments) -> Aggregate:
    """Return the least values. ValueError: they have no order."""
    return _ranked("bottomk", "min", Merge.LEAST_N, arguments)


def greatest_distinct(arguments: Arguments) -> Aggregate:
    """Return the greatest different values. ValueError: they have no order."""
    value, count = _check(arguments, "topk_distinct"), arguments.parameters[0]
    items = Items("{x}", value, keep=int(count), keeps_greatest=True)
    state = State(value, "max({x})", Merge.GREATEST)
    type = DataType("ARRAY", parts=(value,))
    return Aggregate((state,), Final.LAST_ITEMS, type, items, parameter=count)


def least_distinct(arguments: Arguments) -> Aggregate:
    """Return the least different values. ValueError: they have no order."""
    value, count = _check(arguments, "bottomk_distinct"), arguments.parameters[0]
    items = Items("{x}", value, keep=int(count))
    state = State(value, "min({x})", Merge.LEAST)
    type = DataType("ARRAY", parts=(value,))
    return Aggregate((state,), Final.FIRST_ITEMS, type, items, parameter=count)


def _ranked(name: str, function: str, merge: Merge, arguments: Arguments) -> Aggregate:
    value, count = _check(arguments, name), arguments.parameters[0]
    # Adding 0.0 makes -0.0 the other zero: which of the two came first must not show.
    kept = f"{{x}} + CAST(0 AS {value.kind})" if value.kind in ("FLOAT", "DOUBLE") else "{x}"
    type = DataType("ARRAY", parts=(value,))
    partial = f"coalesce({function}_by({kept}, {{x}}, {count}), array())"
    return Aggregate((State(type, partial, merge, most=int(count)),), Final.VALUE, type)


def _check(arguments: Arguments, name: str) -> DataType:
    value = arguments.value
    assert value is not None
    if not value.is_orderable:
        raise ValueError(f"{name} needs a value with an order, not {value.sql}; pick a field of it")
    return value
