"""What the aggregates over two columns mean: exact until the end, over pairs without a null.

- covar_pop, covar_samp: the mean product of the distances from the means; a sample of one has none.
- corr: the covariance over both deviations; null where a column is constant.
- regr_slope, regr_intercept, regr_r2: of the line through the pairs, the first over the second;
  null where the second is constant; where only the first is, r2 is 1.
- regr_sxx, regr_syy, regr_sxy: sums of squares of the second, of the first, and of products.

NaN when a number of a pair is not finite or is beyond 1e144.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["PAIRED", "over_pairs"]

PAIRED = (
    "corr", "covar_pop", "covar_samp", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy",
)  # fmt: skip


def over_pairs(function: str, pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return an aggregate over pairs of numbers."""
    count = len(pairs)
    if count == 0 or (function in ("corr", "covar_samp") and count == 1):
        return None
    if not all(math.isfinite(each) and abs(each) <= 1e144 for pair in pairs for each in pair):
        return math.nan
    first = [Fraction(each) for each, _ in pairs]
    second = [Fraction(each) for _, each in pairs]
    mean_y, mean_x = sum(first, Fraction(0)) / count, sum(second, Fraction(0)) / count
    syy = sum(((y - mean_y) ** 2 for y in first), Fraction(0))
    sxx = sum(((x - mean_x) ** 2 for x in second), Fraction(0))
    sxy = sum(
        ((y - mean_y) * (x - mean_x) for y, x in zip(first, second, strict=True)), Fraction(0)
    )
    if function == "corr":
        return None if not sxx * syy else _ratio(sxy, sxx, syy)
    if function == "regr_r2" and sxx:
        return float(sxy**2 / (sxx * syy)) if syy else 1.0
    if function in ("regr_slope", "regr_intercept", "regr_r2"):
        if not sxx:
            return None
        slope = sxy / sxx
        return float(slope if function == "regr_slope" else mean_y - slope * mean_x)
    sums = {
        "covar_pop": sxy / count,
        "covar_samp": sxy / max(1, count - 1),
        "regr_sxx": sxx,
        "regr_sxy": sxy,
        "regr_syy": syy,
    }
    return float(sums[function])


def _ratio(sxy: Fraction, sxx: Fraction, syy: Fraction) -> float:
    return math.copysign(math.sqrt(sxy**2 / (sxx * syy)), sxy)
