"""What the aggregates mean, over all records of a group at once and without rounding on the way.

A call takes the records that its FILTER is true for. Of those, nulls do not count, but where it is
said below. When nothing is left, counts are 0, lists are empty and the others are null.
- count: how many. `count(*)` counts records. count_if: how many are true.
- sum: exact for integers and decimals; for doubles the double nearest to the true sum.
- min, max: by the type's own order; texts by code point; NaN is the largest number.
- avg: of integers and doubles a DOUBLE; of DECIMAL(p,s) a DECIMAL(p+4,s+4), rounded half up.
- var_pop, var_samp, stddev_pop, stddev_samp: of the values as doubles, without rounding until the
  end; of one value a sample has none. NaN when one of them is no finite number; else infinity
  when one is beyond 1e144.
- skewness, kurtosis: of the population, kurtosis less 3, of the values as doubles, without rounding
  until the end; null where all values are equal. NaN when one of them is no finite number, or is
  beyond 1e72.
- bool_and, bool_or: whether all, or any, are true. bit_and, bit_or, bit_xor: the same bit by bit,
  and whether an odd number of them has a bit.
- first, last: the value of the record that stands first or last; a null is a value unless
  IGNORE NULLS is written. Records stand by event time, then partition, then offset.
- min_by, max_by: the value where the other argument is least or greatest, null or not; of equals
  min_by takes the record that stands first, max_by the last. Nulls of the other do not count.
- collect_list: the values in the order in which their records stand, the first n of them. first_n:
  the same with nulls. last_n: the last n; nulls are among them unless IGNORE NULLS is written.
- min_by and max_by with n: the list of those values, by the other argument upwards or downwards.
- topk, bottomk: the n greatest, from the greatest down, or the n least, from the least up;
  topk_distinct and bottomk_distinct: each value once.
- over two columns: `reference/pairs.py`; regr_count, regr_avgx and regr_avgy are the count and the
  averages of both columns over the pairs without a null.
- try_sum: as sum; null when it does not fit its type.
- what is over different values, and what is approximate: `reference/sketches.py`.
"""

import math
import operator
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.model.nodes import Call
from headrace.reference.pairs import PAIRED, over_pairs
from headrace.reference.sketches import (
    collect_set,
    count_distinct,
    estimate_distinct,
    histogram,
    percentile,
    top,
)

__all__ = ["Taken", "aggregate", "argument_of", "result_type"]

_EXACT = Context(prec=200)  # 38 digits times more records than fit into memory
_MAX_DIGITS = 38
_BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}
_LISTS = (
    "collect_list", "collect_set", "collect_set_with_nulls", "first_n", "last_n", "topk",
    "topk_distinct", "bottomk", "bottomk_distinct",
)  # fmt: skip


class Taken(NamedTuple):
    """What a call takes of one record: its argument, what it orders by, and where it stands."""

    value: Any
    by: Any
    place: tuple[Any, ...]


def aggregate(call: Call, taken: Sequence[Taken], type: pa.DataType) -> object:
    """Return an aggregate over what it takes of a group; `type` is `argument_of`'s."""
    function = call.function
    standing = sorted(taken, key=lambda each: each.place)
    if function in ("first", "last"):
        ends = [each for each in standing if each.value is not None or not call.ignores_nulls]
        return ends[0 if function == "first" else -1].value if ends else None
    if function in ("min_by", "max_by"):
        ranked = _ranked(function, standing)
        if call.parameters:
            return ranked[: int(call.parameters[0])]
        return ranked[0] if ranked else None
    if function in PAIRED or function.startswith("regr_"):
        pairs = [(each.value, each.by) for each in standing if None not in (each.value, each.by)]
        if function in PAIRED:
            return over_pairs(function, [(float(y), float(x)) for y, x in pairs])
        if function == "regr_count":
            return len(pairs)
        at = 0 if function == "regr_avgy" else 1
        averaged = [Taken(pair[at], None, (number,)) for number, pair in enumerate(pairs)]
        return aggregate(Call("avg"), averaged, type)
    if function in ("first_n", "last_n"):
        ends = [each for each in standing if each.value is not None or not call.ignores_nulls]
        kept = int(call.parameters[0])
        return [each.value for each in (ends[:kept] if function == "first_n" else ends[-kept:])]
    if function == "approx_top_k":
        return top([each.value for each in standing], int(call.parameters[0]))
    if function == "collect_set_with_nulls":
        return collect_set([each.value for each in standing], int(call.parameters[0]))
    counted = [each.value for each in standing if each.value is not None]
    if function == "count":
        return len(counted)
    if function == "count_if":
        return counted.count(True)
    if function == "collect_list":
        return counted[: int(call.parameters[0])]
    if function == "collect_set":
        return collect_set(counted, int(call.parameters[0]))
    if function in ("topk", "bottomk", "topk_distinct", "bottomk_distinct"):
        if function.endswith("_distinct"):
            counted = collect_set(counted, len(counted))
        ordered = sorted(map(_one_zero, counted), key=_order, reverse=function.startswith("top"))
        return ordered[: int(call.parameters[0])]
    if function == "histogram":
        return histogram(counted)
    if function == "count_distinct":
        return count_distinct(counted)
    if function == "approx_count_distinct":
        return estimate_distinct(counted, type)
    if not counted:
        return None
    if function == "mode":
        return top(counted, 1)[0]["item"]
    if function in ("sum_distinct", "avg_distinct"):
        function = function.removesuffix("_distinct")
        counted = collect_set(counted, len(counted))
    if function == "approx_percentile":
        return percentile(counted, Decimal(call.parameters[0]))
    if function in ("min", "max"):
        return _one_zero((min if function == "min" else max)(counted, key=_order))
    if function in _BITS:
        return reduce(_BITS[function], counted)
    if function in ("bool_and", "bool_or"):
        return all(counted) if function == "bool_and" else any(counted)
    if function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp"):
        return _spread(function, [float(value) for value in counted])
    if function in ("skewness", "kurtosis"):
        return _asymmetry(function, [float(value) for value in counted])
    total = _sum(counted)
    if function == "try_sum" and isinstance(total, int) and not -(2**63) <= total < 2**63:
        return None
    if function in ("sum", "try_sum"):
        return total
    assert function == "avg", function
    if isinstance(total, Decimal):
        scale = Decimal(1).scaleb(-min(type.scale + 4, _MAX_DIGITS))
        # Rounded once, from the exact quotient: 200 digits are as good as exact here.
        quotient = _EXACT.divide(total, Decimal(len(counted)))
        return quotient.quantize(scale, rounding=ROUND_HALF_UP, context=_EXACT)
    return total / len(counted)


def argument_of(function: str) -> int:
    """Return which argument of a function says its type, counted from 0."""
    return 1 if function == "regr_avgx" else 0


def result_type(function: str, type: pa.DataType, parameters: Sequence[str] = ()) -> pa.DataType:
    """Return the type of an aggregate's values, so that expressions over it are typed."""
    if function in ("count", "count_if", "count_distinct", "approx_count_distinct", "regr_count"):
        return pa.int64()
    if function in ("bool_and", "bool_or"):
        return pa.bool_()
    if function in ("min", "max", "first", "last", "min_by", "max_by", "mode", *_BITS):
        return pa.list_(type) if parameters else type
    if function in _LISTS:
        return pa.list_(type)
    if function == "histogram":
        return pa.map_(type, pa.int64())
    if function == "approx_top_k":
        return pa.list_(pa.struct([("item", type), ("count", pa.int64())]))
    if function in ("regr_avgx", "regr_avgy"):
        function = "avg"
    function = function.removesuffix("_distinct").removeprefix("try_")
    if pa.types.is_decimal(type) and function in ("sum", "avg"):
        if function == "sum":
            return pa.decimal128(min(type.precision + 10, _MAX_DIGITS), type.scale)
        return pa.decimal128(min(type.precision + 4, _MAX_DIGITS), min(type.scale + 4, _MAX_DIGITS))
    return pa.int64() if function == "sum" and pa.types.is_integer(type) else pa.float64()


def _order(value: Any) -> Any:
    if isinstance(value, float):
        # All NaN are equal, and greater than every number.
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value)


def _one_zero(value: Any) -> Any:
    # 0.0 and -0.0 are equal, so which of them came first says nothing.
    return value + 0.0 if isinstance(value, float) else value


def _ranked(function: str, standing: Sequence[Taken]) -> list[Any]:
    ranked = [each for each in standing if each.by is not None]
    # Sorting leaves equals as they stand, and so turned round, the last of them comes first.
    ranked.sort(key=lambda each: _order(each.by))
    return [each.value for each in (ranked if function == "min_by" else ranked[::-1])]


def _spread(function: str, values: Sequence[float]) -> float | None:
    degrees = len(values) - (1 if function.endswith("_samp") else 0)
    if degrees == 0:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    if max(map(abs, values)) > 1e144:
        return math.inf
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    squares = sum(((value - mean) ** 2 for value in exact), Fraction(0))
    variance = float(squares / degrees)
    return variance if function.startswith("var") else math.sqrt(variance)


def _asymmetry(function: str, values: Sequence[float]) -> float | None:
    if not all(math.isfinite(each) and abs(each) <= 1e72 for each in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    count, mean = len(exact), sum(exact, Fraction(0)) / len(exact)
    m2, m3, m4 = (
        sum(((value - mean) ** power for value in exact), Fraction(0)) for power in (2, 3, 4)
    )
    if m2 == 0:
        return None
    if function == "kurtosis":
        return float(count * m4 / m2**2 - 3)
    return math.copysign(math.sqrt(count * m3**2 / m2**3), m3)


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
