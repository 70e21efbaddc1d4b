"""count(*) and count(x): the number of records, or of those whose argument is not null."""

from headrace.aggregates.base import COUNT_UP, Aggregate, State
from headrace.schema.types import DataType, parse_type

__all__ = ["count"]


def count(argument: DataType | None) -> Aggregate:
    """Return count over an argument, or over records when there is none."""
    bigint = parse_type("BIGINT")
    partial = "count(1)" if argument is None else "count({x})"
    return Aggregate((State(bigint, partial, "{old} + {new}", COUNT_UP),), "{0}", bigint)
