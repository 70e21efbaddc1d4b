"""bool_and(x) and bool_or(x): whether all, or any, of the values that are not null are true."""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["all_true", "any_true", "check_boolean"]


def all_true(arguments: Arguments) -> Aggregate:
    """Return bool_and over a condition. ValueError: it is none."""
    return _truth("bool_and", Merge.ALL, arguments)


def any_true(arguments: Arguments) -> Aggregate:
    """Return bool_or over a condition. ValueError: it is none."""
    return _truth("bool_or", Merge.ANY, arguments)


def check_boolean(function: str, arguments: Arguments) -> None:
    """Refuse what is not true or false. ValueError."""
    if arguments.value is None or arguments.value.kind != "BOOLEAN":
        found = "nothing" if arguments.value is None else arguments.value.sql
        raise ValueError(f"{function} needs a condition, not {found}; write {function}(x > 0)")


def _truth(function: str, merge: Merge, arguments: Arguments) -> Aggregate:
    check_boolean(function, arguments)
    boolean = parse_type("BOOLEAN")
    return Aggregate((State(boolean, f"{function}({{x}})", merge),), Final.VALUE, boolean)
