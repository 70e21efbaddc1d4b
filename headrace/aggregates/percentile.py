"""approx_percentile(x, p): a value that about p of all values are at most, off by 1 % of itself.

DDSketch: a row per group and bucket counts the values in it; buckets are as wide as 1 % to either
side of their middle, so the answer is the middle of the bucket that holds the true value. The state
grows with the span of the values, some 115 rows for a factor of ten, not with their number.

The value is that of rank p * n, rounded up, at least the first. Buckets are numbered in the order
of their values: -infinity, negative, zero, positive, infinity, NaN; a value closer to zero than
2.3e-308 counts as zero.
"""

import math
from decimal import Decimal

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["INFINITE", "LARGEST_EXPONENT", "MIDDLE", "SHIFT", "WIDTH", "approx_percentile"]

_ERROR = 0.01
WIDTH = math.log((1 + _ERROR) / (1 - _ERROR))  # of a bucket, as a difference of logarithms
MIDDLE = math.log(1 - _ERROR)  # of its middle to its upper end, likewise
SHIFT = 40_000  # more than the logarithm of any DOUBLE has buckets on either side of 1
INFINITE = 100_000
LARGEST_EXPONENT = 709.782712893384  # of e, within DOUBLE
_SMALLEST = "2.2250738585072014E-308D"

_VALUE = "CAST({x} AS DOUBLE)"
_BUCKET = (
    f"CASE WHEN isnan({_VALUE}) THEN {INFINITE + 1} "
    f"WHEN abs({_VALUE}) = double('Infinity') THEN CAST(signum({_VALUE}) AS INT) * {INFINITE} "
    f"WHEN abs({_VALUE}) < {_SMALLEST} THEN 0 "
    f"ELSE CAST(signum({_VALUE}) * ({SHIFT} + ceil(ln(abs({_VALUE})) / {WIDTH!r}D)) AS INT) END"
)


def approx_percentile(arguments: Arguments) -> Aggregate:
    """Return the percentile of a share. ValueError: x is no number."""
    value, share = arguments.value, Decimal(arguments.parameters[0])
    if value is None or not value.is_numeric:
        found = "nothing" if value is None else value.sql
        raise ValueError(
            f"approx_percentile needs a number, not {found}; write approx_percentile(CAST(... AS "
            f"DOUBLE), {share})"
        )
    counted = State(parse_type("BIGINT"), "count({x})", Merge.COUNT)
    items = Items(f"CASE WHEN {{x}} IS NOT NULL THEN {_BUCKET} END", parse_type("INT"))
    return Aggregate((counted,), Final.QUANTILE, parse_type("DOUBLE"), items, parameter=str(share))
