"""min(x) and max(x): the least and the greatest value that is not null."""

from headrace.aggregates.base import Aggregate, State
from headrace.schema.types import DataType

__all__ = ["greatest", "least"]


def least(argument: DataType | None) -> Aggregate:
    """Return min over an argument. ValueError: its type has no order here."""
    return _extreme("min", "least", argument)


def greatest(argument: DataType | None) -> Aggregate:
    """Return max over an argument. ValueError: its type has no order here."""
    return _extreme("max", "greatest", argument)


def _extreme(function: str, merge: str, argument: DataType | None) -> Aggregate:
    if argument is None or not argument.is_orderable:
        found = "nothing" if argument is None else argument.sql
        raise ValueError(f"{function} needs a value with an order, not {found}; pick a field of it")
    combine = f"{function}({{x}})"
    state = State(argument, combine, f"{merge}({{old}}, {{new}})", combine)
    return Aggregate((state,), "{0}", argument)
