"""min(x) and max(x): the least and the greatest value that is not null."""

from headrace.aggregates.base import Aggregate, Arguments, State

__all__ = ["greatest", "least"]


def least(arguments: Arguments) -> Aggregate:
    """Return min over an argument. ValueError: its type has no order here."""
    return _extreme("min", "least", arguments)


def greatest(arguments: Arguments) -> Aggregate:
    """Return max over an argument. ValueError: its type has no order here."""
    return _extreme("max", "greatest", arguments)


def _extreme(function: str, merge: str, arguments: Arguments) -> Aggregate:
    argument = arguments.value
    if argument is None or not argument.is_orderable:
        found = "nothing" if argument is None else argument.sql
        raise ValueError(f"{function} needs a value with an order, not {found}; pick a field of it")
    combine = f"{function}({{x}})"
    state = State(argument, combine, f"{merge}({{old}}, {{new}})", combine)
    # 0.0 and -0.0 are equal, so either may be in the state; adding nothing makes them one.
    final = f"{{0}} + CAST(0 AS {argument.kind})" if argument.kind in ("FLOAT", "DOUBLE") else "{0}"
    return Aggregate((state,), final, argument)
