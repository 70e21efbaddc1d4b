"""var_samp(x), var_pop(x), stddev_samp(x), stddev_pop(x): the spread of values around their mean.

The state is how many, their mean, and the sum of their squared distances from it; two are put
together by Chan's formula. The sum of squares and the square of the sum would be simpler, and would
lose every digit where values lie close together and far from zero. The variance holds to 1e-12 of
the mean square, whatever the cut.

Of one value the population's variance is 0 and the sample's null, as in Spark. A NaN or an infinity
among the values gives NaN; else a value beyond 1e144 gives infinity, since squares of such values
could pass the range of DOUBLE in one cut and not in another.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["deviation_population", "deviation_sample", "variance_population", "variance_sample"]

_MOMENTS = parse_type("STRUCT<n: BIGINT, mean: DOUBLE, m2: DOUBLE>")
_VALUE = "CAST({x} AS DOUBLE)"
_BOUND = "1E144"  # whose square, as many times as there can be records, is within DOUBLE
_LARGEST = f"max(abs({_VALUE}))"
# A field that is never null would not survive in a struct that is: Spark cannot hand it over.
_PARTIAL = (
    "CASE WHEN count({x}) > 0 THEN named_struct('n', nullif(count({x}), 0), "
    f"'mean', CASE WHEN {_LARGEST} <= {_BOUND}D THEN avg({_VALUE}) END, "
    f"'m2', CASE WHEN {_LARGEST} <= {_BOUND}D THEN var_pop({_VALUE}) * count({{x}}) "
    f"WHEN {_LARGEST} < double('Infinity') THEN double('Infinity') ELSE double('NaN') END) END"
)
_STATE = State(_MOMENTS, _PARTIAL, Merge.MOMENTS)


def variance_population(arguments: Arguments) -> Aggregate:
    """Return var_pop over numbers. ValueError: they are none."""
    return _spread(Final.VAR_POP, arguments)


def variance_sample(arguments: Arguments) -> Aggregate:
    """Return var_samp over numbers. ValueError: they are none."""
    return _spread(Final.VAR_SAMP, arguments)


def deviation_population(arguments: Arguments) -> Aggregate:
    """Return stddev_pop over numbers. ValueError: they are none."""
    return _spread(Final.STDDEV_POP, arguments)


def deviation_sample(arguments: Arguments) -> Aggregate:
    """Return stddev_samp over numbers. ValueError: they are none."""
    return _spread(Final.STDDEV_SAMP, arguments)


def _spread(final: Final, arguments: Arguments) -> Aggregate:
    value = arguments.value
    if value is None or not value.is_numeric:
        found = "nothing" if value is None else value.sql
        raise ValueError(f"{final} needs a number, not {found}; write {final}(CAST(... AS DOUBLE))")
    return Aggregate((_STATE,), final, parse_type("DOUBLE"))
