"""min(x) and max(x): the least and the greatest value that is not null."""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge

__all__ = ["greatest", "least"]


def least(arguments: Arguments) -> Aggregate:
    """Return min over an argument. ValueError: its type has no order here."""
    return _extreme("min", Merge.LEAST, arguments)


def greatest(arguments: Arguments) -> Aggregate:
    """Return max over an argument. ValueError: its type has no order here."""
    return _extreme("max", Merge.GREATEST, arguments)


def _extreme(function: str, merge: Merge, arguments: Arguments) -> Aggregate:
    argument = arguments.value
    if argument is None or not argument.is_orderable:
        found = "nothing" if argument is None else argument.sql
        raise ValueError(f"{function} needs a value with an order, not {found}; pick a field of it")
    state = State(argument, f"{function}({{x}})", merge)
    return Aggregate((state,), Final.EXTREME, argument)
