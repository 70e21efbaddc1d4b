"""The aggregates a view can use, by the names that definitions know them by."""

from collections.abc import Callable
from functools import partial

from headrace.aggregates.asymmetry import asymmetry
from headrace.aggregates.average import average
from headrace.aggregates.base import TIEBREAK, Aggregate, Arguments, Items, State
from headrace.aggregates.bits import bits
from headrace.aggregates.count import count, count_if
from headrace.aggregates.distinct import average_distinct, count_distinct, total_distinct
from headrace.aggregates.ends import first, last
from headrace.aggregates.extremes import greatest, least
from headrace.aggregates.extremes_by import greatest_by, least_by
from headrace.aggregates.frequency import histogram, mode
from headrace.aggregates.hyperloglog import approx_count_distinct
from headrace.aggregates.lists import collect_list, first_n, last_n
from headrace.aggregates.pairs import (
    paired,
    regression_average_x,
    regression_average_y,
    regression_count,
)
from headrace.aggregates.percentile import approx_percentile
from headrace.aggregates.ranked import (
    greatest_distinct,
    greatest_values,
    least_distinct,
    least_values,
)
from headrace.aggregates.sets import collect_set, collect_set_with_nulls
from headrace.aggregates.top import approx_top_k
from headrace.aggregates.total import total, total_or_null
from headrace.aggregates.truth import all_true, any_true
from headrace.aggregates.variance import (
    deviation_population,
    deviation_sample,
    variance_population,
    variance_sample,
)
from headrace.aggregates.words import Final, Merge

__all__ = [
    "AGGREGATES",
    "TIEBREAK",
    "Aggregate",
    "Arguments",
    "Final",
    "Items",
    "Merge",
    "State",
]

AGGREGATES: dict[str, Callable[[Arguments], Aggregate]] = {
    "approx_count_distinct": approx_count_distinct,
    "approx_percentile": approx_percentile,
    "approx_top_k": approx_top_k,
    "avg": average,
    "avg_distinct": average_distinct,
    "bit_and": partial(bits, Merge.BIT_AND),
    "bit_or": partial(bits, Merge.BIT_OR),
    "bit_xor": partial(bits, Merge.BIT_XOR),
    "bool_and": all_true,
    "bool_or": any_true,
    "bottomk": least_values,
    "bottomk_distinct": least_distinct,
    "collect_list": collect_list,
    "collect_set": collect_set,
    "collect_set_with_nulls": collect_set_with_nulls,
    "corr": partial(paired, Final.CORR),
    "count": count,
    "count_distinct": count_distinct,
    "count_if": count_if,
    "covar_pop": partial(paired, Final.COVAR_POP),
    "covar_samp": partial(paired, Final.COVAR_SAMP),
    "first": first,
    "first_n": first_n,
    "histogram": histogram,
    "kurtosis": partial(asymmetry, Final.KURTOSIS),
    "last": last,
    "last_n": last_n,
    "max": greatest,
    "max_by": greatest_by,
    "min": least,
    "min_by": least_by,
    "mode": mode,
    "regr_avgx": regression_average_x,
    "regr_avgy": regression_average_y,
    "regr_count": regression_count,
    "regr_intercept": partial(paired, Final.REGR_INTERCEPT),
    "regr_r2": partial(paired, Final.REGR_R2),
    "regr_slope": partial(paired, Final.REGR_SLOPE),
    "regr_sxx": partial(paired, Final.REGR_SXX),
    "regr_sxy": partial(paired, Final.REGR_SXY),
    "regr_syy": partial(paired, Final.REGR_SYY),
    "skewness": partial(asymmetry, Final.SKEWNESS),
    "stddev_pop": deviation_population,
    "stddev_samp": deviation_sample,
    "sum": total,
    "sum_distinct": total_distinct,
    "topk": greatest_values,
    "topk_distinct": greatest_distinct,
    "try_sum": total_or_null,
    "var_pop": variance_population,
    "var_samp": variance_sample,
}
