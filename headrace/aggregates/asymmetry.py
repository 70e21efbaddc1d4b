"""skewness(x) and kurtosis(x): how lopsided values lie around their mean, and how far out.

As in Spark: of the population, kurtosis less the 3 of a normal distribution, and both null where
all values are equal.

The state is how many, their mean, and the sums of the second, third and fourth powers of their
distances from it; two are put together by Pébay's formulas, as those of the variance are by Chan's
(variance.py). The mean powers of the distances hold to 1e-12 of the mean square, of the mean cube
of absolute values and of the mean fourth power, whatever the cut; the answers are quotients of
these. Where all values are equal, the sums are exactly 0 in every cut.

Spark's own skewness and kurtosis divide by powers of the variance, and fail where these are too
small for a DOUBLE. So the sums are made of variances and covariances: with d = x - mean,
- n covar_pop(x, x²) = Σd³ + 2 mean Σd²;
- n var_pop(x²) = Σd⁴ - (Σd²)² / n + 4 mean Σd³ + 4 mean² Σd².

A NaN, an infinity or a value beyond 1e72 gives NaN: the fourth powers of such values could pass the
range of DOUBLE in one cut and not in another.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["asymmetry"]

_POWERS = parse_type("STRUCT<n: BIGINT, mean: DOUBLE, m2: DOUBLE, m3: DOUBLE, m4: DOUBLE>")
_X = "CAST({x} AS DOUBLE)"
_FITS = f"max(abs({_X})) <= 1E72D"  # NaN is the largest number
_CONSTANT = f"min({_X}) = max({_X})"
_MEAN = f"avg({_X})"
_SQUARE = f"({_X} * {_X})"
# Each of these is a mean, not a sum.
_M2 = f"var_pop({_X})"
_M3 = f"(covar_pop({_X}, {_SQUARE}) - 2 * {_MEAN} * {_M2})"
_M4 = f"(var_pop({_SQUARE}) + {_M2} * {_M2} - 4 * {_MEAN} * ({_M3} + {_MEAN} * {_M2}))"


def _sum(moment: str) -> str:
    return (
        f"CASE WHEN NOT {_FITS} THEN double('NaN') WHEN {_CONSTANT} THEN 0D "
        f"ELSE {moment} * count({_X}) END"
    )


# A field that is never null would not survive in a struct that is: Spark cannot hand it over.
# avg of three times 0.1 is not 0.1.
_PARTIAL = (
    f"CASE WHEN count({_X}) > 0 THEN named_struct('n', nullif(count({_X}), 0), "
    f"'mean', CASE WHEN {_FITS} THEN IF({_CONSTANT}, min({_X}), {_MEAN}) END, "
    f"'m2', {_sum(_M2)}, 'm3', {_sum(_M3)}, 'm4', {_sum(_M4)}) END"
)
_STATE = State(_POWERS, _PARTIAL, Merge.POWERS)


def asymmetry(final: Final, arguments: Arguments) -> Aggregate:
    """Return skewness or kurtosis over numbers. ValueError: they are none."""
    value = arguments.value
    if value is None or not value.is_numeric:
        found = "nothing" if value is None else value.sql
        raise ValueError(f"{final} needs a number, not {found}; write {final}(CAST(... AS DOUBLE))")
    return Aggregate((_STATE,), final, parse_type("DOUBLE"))
