"""count(*), count(x), count_if(x): how many records, how many not null, how many true."""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.truth import check_boolean
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["count", "count_if"]


def count(arguments: Arguments) -> Aggregate:
    """Return count over an argument, or over records when there is none."""
    return _counted("count(1)" if arguments.value is None else "count({x})")


def count_if(arguments: Arguments) -> Aggregate:
    """Return count_if over a condition. ValueError: it is none."""
    check_boolean("count_if", arguments)
    return _counted("count_if({x})")


def _counted(partial: str) -> Aggregate:
    bigint = parse_type("BIGINT")
    return Aggregate((State(bigint, partial, Merge.COUNT),), Final.VALUE, bigint)
