"""covar_pop, covar_samp, corr and regr_*: how two columns move together.

Only records count in which neither is null. As in SQL, the first argument of regr_* is the one that
depends, y, and the second the one that it depends on, x.

The state is how many pairs, both means, both sums of squared distances from them, and the sum of
the products of these distances. Two are put together by Chan's formula, as those of the variance
are (variance.py). So sums and covariances hold to 1e-12 of the mean squares, whatever the cut:
covar_* and regr_sxy of the root of the product of both. The others are quotients of such numbers.

Where a column is constant, its sum of squares is exactly 0 in every cut. So whether corr and the
slope are null, as they are then, does not depend on rounding.

A NaN, an infinity or a value beyond 1e144 in a pair gives NaN: products of such values could pass
the range of DOUBLE in one cut and not in another. regr_count, regr_avgx and regr_avgy are a count
and averages, and have the types and the error of those.
"""

from dataclasses import replace

from headrace.aggregates.average import average
from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["paired", "regression_average_x", "regression_average_y", "regression_count"]

_PAIRS = parse_type(
    "STRUCT<n: BIGINT, mean_a: DOUBLE, mean_b: DOUBLE, m2_a: DOUBLE, m2_b: DOUBLE, c2: DOUBLE>"
)
_A = "CASE WHEN {y} IS NOT NULL THEN CAST({x} AS DOUBLE) END"
_B = "CASE WHEN {x} IS NOT NULL THEN CAST({y} AS DOUBLE) END"
_FITS = f"greatest(max(abs({_A})), max(abs({_B}))) <= 1E144D"  # NaN is the largest number


def _constant(value: str) -> str:
    return f"min({value}) = max({value})"


def _mean(value: str) -> str:
    # avg of three times 0.1 is not 0.1.
    return f"CASE WHEN {_FITS} THEN IF({_constant(value)}, min({value}), avg({value})) END"


def _products(moment: str, constant: str) -> str:
    # Spark makes tiny squares of a constant column that it adds up in several tasks.
    return (
        f"CASE WHEN NOT {_FITS} THEN double('NaN') WHEN {constant} THEN 0D "
        f"ELSE {moment} * count({_A}) END"
    )


# A field that is never null would not survive in a struct that is: Spark cannot hand it over.
_PARTIAL = (
    f"CASE WHEN count({_A}) > 0 THEN named_struct('n', nullif(count({_A}), 0), "
    f"'mean_a', {_mean(_A)}, 'mean_b', {_mean(_B)}, "
    f"'m2_a', {_products(f'var_pop({_A})', _constant(_A))}, "
    f"'m2_b', {_products(f'var_pop({_B})', _constant(_B))}, "
    f"'c2', {_products(f'covar_pop({_A}, {_B})', f'{_constant(_A)} OR {_constant(_B)}')}) END"
)
_STATE = State(_PAIRS, _PARTIAL, Merge.CO_MOMENTS)


def paired(final: Final, arguments: Arguments) -> Aggregate:
    """Return an answer over pairs of numbers. ValueError: they are none."""
    _check(final, arguments)
    return Aggregate((_STATE,), final, parse_type("DOUBLE"))


def regression_count(arguments: Arguments) -> Aggregate:
    """Return how many pairs there are. ValueError: they are no numbers."""
    _check("regr_count", arguments)
    bigint = parse_type("BIGINT")
    return Aggregate((State(bigint, f"count({_A})", Merge.COUNT),), Final.VALUE, bigint)


def regression_average_x(arguments: Arguments) -> Aggregate:
    """Return the mean of the second of each pair. ValueError: they are no numbers."""
    _check("regr_avgx", arguments)
    return _average(Arguments(arguments.by), "CASE WHEN {x} IS NOT NULL THEN {y} END")


def regression_average_y(arguments: Arguments) -> Aggregate:
    """Return the mean of the first of each pair. ValueError: they are no numbers."""
    _check("regr_avgy", arguments)
    return _average(arguments, "CASE WHEN {y} IS NOT NULL THEN {x} END")


def _average(arguments: Arguments, value: str) -> Aggregate:
    made = average(arguments)
    states = (replace(each, partial=each.partial.replace("{x}", value)) for each in made.states)
    return replace(made, states=tuple(states))


def _check(function: str, arguments: Arguments) -> None:
    for argument in (arguments.value, arguments.by):
        if argument is None or not argument.is_numeric:
            found = "nothing" if argument is None else argument.sql
            raise ValueError(f"{function} needs two numbers, not {found}; cast it to DOUBLE")
