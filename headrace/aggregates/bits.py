"""bit_and(x), bit_or(x), bit_xor(x): of whole numbers that are not null, bit by bit. Exact."""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge

__all__ = ["bits"]


def bits(merge: Merge, arguments: Arguments) -> Aggregate:
    """Return the numbers put together bit by bit. ValueError: they are not whole."""
    value = arguments.value
    if value is None or not value.is_integer:
        found = "nothing" if value is None else value.sql
        raise ValueError(
            f"{merge} needs a whole number, not {found}; write {merge}(CAST(... AS BIGINT))"
        )
    return Aggregate((State(value, f"{merge}({{x}})", merge),), Final.VALUE, value)
