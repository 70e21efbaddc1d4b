"""avg(x): the exact sum and the count, divided when read.

Over DECIMAL(p,s) the answer is DECIMAL(p+4,s+4), rounded half up once, at the end, as in Spark.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.total import sum_state
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["average"]

#: p + 10 digits of sum, shifted by four decimals, must stay within 38.
MAX_AVERAGE_DIGITS = 24


def average(arguments: Arguments) -> Aggregate:
    """Return avg over an argument. ValueError: not a number, or a decimal too wide to be exact."""
    counted = State(parse_type("BIGINT"), "count({x})", Merge.COUNT)
    argument = arguments.value
    states = (sum_state("avg", argument), counted)
    assert argument is not None
    if argument.kind == "DECIMAL":
        if argument.precision > MAX_AVERAGE_DIGITS:
            raise ValueError(
                f"avg over {argument.sql} may overflow; write "
                f"avg(CAST(... AS DECIMAL({MAX_AVERAGE_DIGITS},{argument.scale})))"
            )
        type = parse_type(f"DECIMAL({argument.precision + 4},{argument.scale + 4})")
        return Aggregate(states, Final.MEAN, type)
    return Aggregate(states, Final.MEAN, parse_type("DOUBLE"))
