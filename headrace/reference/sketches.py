"""What the aggregates over different values, and the approximate ones, mean.

- count_distinct: how many different values; as keys are, all NaN are one, and so are 0.0 and -0.0.
- collect_set: the different values, by the place of the first record of each, the first n of them.
- approx_top_k: the k values that occur most often, with how often; of equals the lesser come first,
  and null before all.
- histogram: how often each value occurs, in the order of the values. mode: the value that occurs
  most often, of equals the least.
- approx_percentile: the value of rank p * n, rounded up and at least 1, put to the middle of the
  bucket of 1 % to either side that it lies in.
- approx_count_distinct: the estimate of HyperLogLog with 4,096 registers over the values' hashes.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.reference.hashes import hash_of

__all__ = ["collect_set", "count_distinct", "estimate_distinct", "histogram", "percentile", "top"]

_REGISTERS = 4096
_BITS = 52  # of a hash that do not choose the register
_ERROR = 0.01
_GAMMA = (1 + _ERROR) / (1 - _ERROR)


def canonical(value: Any) -> Any:
    """Return a value as SQL groups it, fit to be a key of a dict."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(canonical(each) for each in value)
    if isinstance(value, dict):
        return tuple(canonical(each) for each in value.values())
    return value


def order(value: Any) -> Any:
    """Return what values of one type sort by: null first, NaN after all numbers."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value)
    return (1, value)


def _one_zero(value: Any) -> Any:
    if isinstance(value, list):
        return [_one_zero(each) for each in value]
    if isinstance(value, dict):
        return {name: _one_zero(each) for name, each in value.items()}
    return value + 0.0 if isinstance(value, float) else value


def count_distinct(values: Sequence[Any]) -> int:
    """Return how many different values there are; none is null."""
    return len({canonical(value) for value in values})


def collect_set(values: Sequence[Any], count: int) -> list[Any]:
    """Return the first different values, given in the order of their records."""
    first: dict[Any, Any] = {}
    for value in values:
        first.setdefault(canonical(value), _one_zero(value))
    return list(first.values())[:count]


def top(values: Sequence[Any], count: int) -> list[dict[str, Any]]:
    """Return the values that occur most often, nulls too."""
    times = Counter(canonical(value) for value in values)
    kept = {canonical(value): _one_zero(value) for value in values}
    ranked = sorted(kept, key=lambda key: (-times[key], order(kept[key])))
    return [{"item": kept[key], "count": times[key]} for key in ranked[:count]]


def histogram(values: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return the entries of a map from every value to how often it occurs; none is null."""
    counted = [(each["item"], each["count"]) for each in top(values, len(values))]
    return sorted(counted, key=lambda entry: order(entry[0]))


def percentile(values: Sequence[Any], share: Decimal) -> float:
    """Return about the value that a share of all are at most; none is null."""
    rank = max(1, math.ceil(len(values) * share))
    value = float(sorted(values, key=order)[rank - 1])
    if math.isnan(value) or math.isinf(value):
        return value
    if abs(value) < 2.2250738585072014e-308:
        return 0.0
    bucket = math.ceil(math.log(abs(value)) / math.log(_GAMMA))
    # The middle of a bucket whose upper end is gamma to its number.
    middle = min(bucket * math.log(_GAMMA) + math.log(2 / (_GAMMA + 1)), 709.782712893384)
    return math.copysign(math.exp(middle), value)


def estimate_distinct(values: Sequence[Any], type: pa.DataType) -> int:
    """Return about how many different values there are; none is null."""
    runs = [0] * _REGISTERS
    for value in {canonical(value): value for value in values}.values():
        hashed = hash_of(value, type)
        register, rest = hashed % _REGISTERS, hashed // _REGISTERS
        run = 1
        while run <= _BITS and rest % 2 == 0:
            rest //= 2
            run += 1
        runs[register] = max(runs[register], run)
    filled = [run for run in runs if run > 0]
    if not filled:
        return 0
    total = math.fsum(2.0**-run for run in filled)
    total += _REGISTERS * _sigma(1 - len(filled) / _REGISTERS)
    return round(_REGISTERS**2 / (2 * math.log(2)) / total)


def _sigma(empty: float) -> float:
    """Return Ertl's sigma: x + x^2 + 2 x^4 + 4 x^8 + ..., of the share of empty registers."""
    found, power, factor = empty, empty, 1.0
    while power > 0:
        power *= power
        found += power * factor
        factor *= 2
    return found
