"""count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x): over the different values, without null.

Exact; sum and avg over DOUBLE to 1e-12 of the sum of absolute values, as they are of all values.
They have the types of sum and avg. Values of count are of any type but MAP: structs and arrays are
equal part by part, and null is equal to null there. One row per group and value, so the state grows
with the values; `approx_count_distinct` does not. Values are different as keys are: all NaN are
one, and so are 0.0 and -0.0.
"""

from headrace.aggregates.average import average
from headrace.aggregates.base import Aggregate, Arguments, Items
from headrace.aggregates.total import total
from headrace.aggregates.words import Final
from headrace.schema.types import DataType, parse_type

__all__ = [
    "average_distinct",
    "check_comparable",
    "check_single",
    "count_distinct",
    "nullable",
    "total_distinct",
]


def count_distinct(arguments: Arguments) -> Aggregate:
    """Return count(DISTINCT x). ValueError: values that cannot be told apart."""
    value = check_comparable("count(DISTINCT x)", arguments)
    return Aggregate((), Final.COUNT_ITEMS, parse_type("BIGINT"), Items(nullable(value), value))


def total_distinct(arguments: Arguments) -> Aggregate:
    """Return sum(DISTINCT x). ValueError: not a number, or a decimal too wide to be exact."""
    return _over_items(Final.SUM_ITEMS, total(arguments), arguments)


def average_distinct(arguments: Arguments) -> Aggregate:
    """Return avg(DISTINCT x). ValueError: not a number, or a decimal too wide to be exact."""
    return _over_items(Final.MEAN_ITEMS, average(arguments), arguments)


def _over_items(final: Final, over_all: Aggregate, arguments: Arguments) -> Aggregate:
    assert arguments.value is not None
    return Aggregate((), final, over_all.type, Items("{x}", arguments.value))


def check_comparable(function: str, arguments: Arguments) -> DataType:
    """Return the argument's type if its values can be told apart. ValueError: they cannot."""
    value = arguments.value
    assert value is not None
    if not value.is_comparable:
        raise ValueError(
            f"{function} cannot tell values of {value.sql} apart: a MAP has no order; write "
            f"array_sort(map_entries(...)) in its place"
        )
    return value


def nullable(value: DataType) -> str:
    """Return the item that is the argument itself, as a value whose parts may all be null.

    Spark cannot hand over a null whose parts never are.
    """
    return f"CAST({{x}} AS {_escaped(value.sql)})" if value.parts else "{x}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def check_single(function: str, arguments: Arguments) -> DataType:
    """Return the argument's type if its values can be items. ValueError: they cannot."""
    value = arguments.value
    assert value is not None
    if not value.is_orderable:
        raise ValueError(f"{function} takes single values, not {value.sql}; pick a field of it")
    return value
