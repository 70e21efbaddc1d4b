"""count(DISTINCT x): how many different values that are not null. Exact.

One row per group and value, so the state grows with the values; `approx_count_distinct` does not.
Values are different as keys are: all NaN are one, and so are 0.0 and -0.0.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items
from headrace.aggregates.words import Final
from headrace.schema.types import DataType, parse_type

__all__ = ["check_single", "count_distinct"]


def count_distinct(arguments: Arguments) -> Aggregate:
    """Return count(DISTINCT x). ValueError: values that cannot be told apart."""
    value = check_single("count(DISTINCT x)", arguments)
    return Aggregate((), Final.COUNT_ITEMS, parse_type("BIGINT"), Items("{x}", value))


def check_single(function: str, arguments: Arguments) -> DataType:
    """Return the argument's type if its values can be items. ValueError: they cannot."""
    value = arguments.value
    assert value is not None
    if not value.is_orderable:
        raise ValueError(f"{function} takes single values, not {value.sql}; pick a field of it")
    return value
