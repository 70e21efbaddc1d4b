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
# What rounding leaves is of the size of the values, however close together they lie.
_DIFFERS = (
    "{old} IS DISTINCT FROM {new} AND ({old}.n <> {new}.n "
    "OR abs({old}.m2 - {new}.m2) > 1e-9 * ({old}.m2 + {old}.n * {old}.mean ** 2) "
    "OR ({old}.mean - {new}.mean) ** 2 > 1e-18 * ({old}.m2 / {old}.n + {old}.mean ** 2)"
    ") IS NOT FALSE"
)
_STATE = State(
    _MOMENTS,
    _PARTIAL,
    "headrace.merge_moments({old}, {new})",
    "list_reduce(list({x}) FILTER (WHERE {x} IS NOT NULL), "
    "lambda a, b: headrace.merge_moments(a, b))",
    _DIFFERS,
)


def variance_population(arguments: Arguments) -> Aggregate:
    """Return var_pop over numbers. ValueError: they are none."""
    return _spread("var_pop", "{m2} / {n}", arguments)


def variance_sample(arguments: Arguments) -> Aggregate:
    """Return var_samp over numbers. ValueError: they are none."""
    return _spread("var_samp", "CASE WHEN {n} > 1 THEN {m2} / ({n} - 1) END", arguments)


def deviation_population(arguments: Arguments) -> Aggregate:
    """Return stddev_pop over numbers. ValueError: they are none."""
    return _spread("stddev_pop", "sqrt({m2} / {n})", arguments)


def deviation_sample(arguments: Arguments) -> Aggregate:
    """Return stddev_samp over numbers. ValueError: they are none."""
    return _spread("stddev_samp", "CASE WHEN {n} > 1 THEN sqrt({m2} / ({n} - 1)) END", arguments)


def _spread(function: str, final: str, arguments: Arguments) -> Aggregate:
    value = arguments.value
    if value is None or not value.is_numeric:
        found = "nothing" if value is None else value.sql
        raise ValueError(
            f"{function} needs a number, not {found}; write {function}(CAST(... AS DOUBLE))"
        )
    n, m2 = "struct_extract({0}, 'n')", "struct_extract({0}, 'm2')"
    return Aggregate((_STATE,), final.format(n=n, m2=m2), parse_type("DOUBLE"))
