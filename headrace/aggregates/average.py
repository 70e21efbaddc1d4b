"""avg(x): the exact sum and the count, divided when read.

Over DECIMAL(p,s) the answer is DECIMAL(p+4,s+4), rounded half up once, at the end, as in Spark.
"""

from headrace.aggregates.base import COUNT_UP, Aggregate, Arguments, State
from headrace.aggregates.total import DOUBLE_TOTAL, sum_state
from headrace.schema.types import parse_type

__all__ = ["average"]

#: p + 10 digits of sum, shifted by four decimals, must stay within 38.
MAX_AVERAGE_DIGITS = 24


def average(arguments: Arguments) -> Aggregate:
    """Return avg over an argument. ValueError: not a number, or a decimal too wide to be exact."""
    counted = State(parse_type("BIGINT"), "count({x})", "{old} + {new}", COUNT_UP)
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
        final = f"headrace.exact_average({{0}}, {{1}}, {type.scale})"
        return Aggregate(states, f"CAST({final} AS {type.duckdb})", type)
    sum = "CAST({0} AS DOUBLE)" if argument.is_integer else DOUBLE_TOTAL
    final = f"CASE WHEN {{1}} > 0 THEN {sum} / {{1}} END"
    return Aggregate(states, final, parse_type("DOUBLE"))
