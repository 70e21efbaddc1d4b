"""How far from the true answer an aggregate over powers or products of numbers may be.

Sums of squares hold to 1e-12 of the sum of the squared values, products of the root of both, sums
of third and fourth powers of the sum of those of the absolute values. The others are quotients of
these, so their error is what such errors make of a quotient.
"""

import math
from collections.abc import Sequence

from headrace.reference.pairs import over_pairs

__all__ = ["error_of_asymmetry", "error_over_pairs"]

_ERROR = 1e-12


def error_over_pairs(function: str, pairs: Sequence[tuple[float, float]]) -> float:
    """Return the largest error of an answer; infinity: it is no number, so that none is allowed."""

    def exact(name: str) -> float:
        answer = over_pairs(name, pairs)
        return math.nan if answer is None else answer

    if not math.isfinite(exact("regr_sxy")) or not math.isfinite(exact(function)):
        return math.inf
    of_y = _ERROR * math.fsum(y * y for y, _ in pairs)
    of_x = _ERROR * math.fsum(x * x for _, x in pairs)
    of_both = math.sqrt(of_y) * math.sqrt(of_x)
    if function in ("covar_pop", "covar_samp"):
        return of_both / max(1, len(pairs) - (function == "covar_samp"))
    if function in ("regr_sxx", "regr_sxy", "regr_syy"):
        return {"regr_sxx": of_x, "regr_sxy": of_both, "regr_syy": of_y}[function]
    sxx, syy = exact("regr_sxx"), exact("regr_syy")
    if function in ("corr", "regr_r2"):
        if syy == 0:
            return 0.0  # of r2: it is 1 then
        root = math.sqrt(sxx) * math.sqrt(syy)
        return 2 * (of_both / root + of_x / sxx + of_y / syy)
    slope = exact("regr_slope")
    of_slope = of_both / sxx + abs(slope) * of_x / sxx
    if function == "regr_slope":
        return of_slope
    mean_y, mean_x = (math.fsum(abs(pair[at]) for pair in pairs) / len(pairs) for at in (0, 1))
    return _ERROR * mean_y + (of_slope + _ERROR * abs(slope)) * mean_x


def error_of_asymmetry(function: str, values: Sequence[float], answer: float) -> float:
    """Return the largest error of skewness or kurtosis; infinity: none is allowed."""
    if not math.isfinite(answer):
        return math.inf
    power = 3 if function == "skewness" else 4
    mean = math.fsum(values) / len(values)
    square = math.fsum((value - mean) ** 2 for value in values) / len(values)
    of_square = _ERROR * math.fsum(value**2 for value in values) / len(values)
    of_power = _ERROR * math.fsum(abs(value) ** power for value in values) / len(values)
    quotient = abs(answer) + (3 if power == 4 else 0)
    return 2 * (of_power / square ** (power / 2) + power / 2 * quotient * of_square / square)
