"""What the aggregates mean, over all values of a group at once and without rounding on the way.

Nulls do not count. When nothing is left, count is 0 and the others are null.
- count: how many. `count(*)` counts records.
- sum: exact for integers and decimals; for doubles the double nearest to the true sum.
- min, max: by the type's own order; texts by code point; NaN is the largest number.
- avg: of integers and doubles a DOUBLE; of DECIMAL(p,s) a DECIMAL(p+4,s+4), rounded half up.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

__all__ = ["aggregate", "result_type"]

_EXACT = Context(prec=200)  # 38 digits times more records than fit into memory
_MAX_DIGITS = 38


def aggregate(function: str, values: Sequence[Any], type: pa.DataType) -> object:
    """Return an aggregate over the values of its argument; `type` is the argument's."""
    counted = [value for value in values if value is not None]
    if function == "count":
        return len(counted)
    if not counted:
        return None
    if function in ("min", "max"):
        pick = min if function == "min" else max
        return pick(counted, key=_order)
    total = _sum(counted)
    if function == "sum":
        return total
    assert function == "avg", function
    if isinstance(total, Decimal):
        scale = Decimal(1).scaleb(-min(type.scale + 4, _MAX_DIGITS))
        # Rounded once, from the exact quotient: 200 digits are as good as exact here.
        quotient = _EXACT.divide(total, Decimal(len(counted)))
        return quotient.quantize(scale, rounding=ROUND_HALF_UP, context=_EXACT)
    return total / len(counted)


def result_type(function: str, type: pa.DataType) -> pa.DataType:
    """Return the type of an aggregate's values, so that expressions over it are typed."""
    if function == "count":
        return pa.int64()
    if function in ("min", "max"):
        return type
    if pa.types.is_decimal(type):
        if function == "sum":
            return pa.decimal128(min(type.precision + 10, _MAX_DIGITS), type.scale)
        return pa.decimal128(min(type.precision + 4, _MAX_DIGITS), min(type.scale + 4, _MAX_DIGITS))
    return pa.int64() if function == "sum" and pa.types.is_integer(type) else pa.float64()


def _order(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else (False, value)


def _sum(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Decimal):
        total = Decimal(0)
        for value in values:
            total = _EXACT.add(total, value)
        return total
    if isinstance(values[0], float):
        try:
            return math.fsum(values)
        except (OverflowError, ValueError):  # an infinity on the way, or two that cancel out
            return sum(values)
    return sum(values)
