"""The words that aggregates and stores share: how states merge, and what is read from them.

A store says each word in its own language, and so does whatever else keeps state. Laws of every
merge: it is associative and commutative, and merging many states at once is the same as one after
the other. So neither the cut into turns nor the order of merges shows.
"""

from enum import StrEnum

__all__ = ["Final", "Merge"]


class Merge(StrEnum):
    """How two states become one."""

    COUNT = "count"  # add whole numbers, none of which is null
    ADD = "add"  # add exact numbers; null: nothing was added
    ADD_SIZED = "add_sized"  # add doubles, and the absolute values beside them (total.py)
    LEAST = "least"  # by the type's order, of a struct field by field; null: no value
    GREATEST = "greatest"
    ALL = "all"  # whether all are true; null: none is known
    ANY = "any"
    BIT_AND = "bit_and"  # of whole numbers, bit by bit; null: no number
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    MOMENTS = "moments"  # how many, mean, squared distances, by Chan's formula (variance.py)
    POWERS = "powers"  # the same up to fourth powers, by Pébay's formulas (asymmetry.py)
    CO_MOMENTS = "co_moments"  # the same of pairs, with their products (pairs.py)
    LEAST_N = "least_n"  # of two sorted lists the first n items
    GREATEST_N = "greatest_n"  # the same of lists that are sorted from the greatest down


class Final(StrEnum):
    """What readers see of the merged states of one call."""

    VALUE = "value"  # the state itself
    SUM = "sum"  # an exact sum, in the type that the call has
    TRY_SUM = "try_sum"  # the same; null where it does not fit
    TOTAL = "total"  # the sum within a state of ADD_SIZED
    MEAN = "mean"  # a sum divided by a count; null where nothing was counted
    EXTREME = "extreme"  # the state itself; of 0.0 and -0.0, which are equal, always 0.0
    PICKED = "picked"  # the field `value` of the state
    PICKED_EACH = "picked_each"  # the field `value` of each item of the list
    PICKED_BACKWARDS = "picked_backwards"  # the same from the list's end
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"
    SKEWNESS = "skewness"  # this one and the next, from the state of POWERS
    KURTOSIS = "kurtosis"
    COVAR_POP = "covar_pop"  # this one and the next, from the state of CO_MOMENTS
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    REGR_INTERCEPT = "regr_intercept"
    REGR_R2 = "regr_r2"
    REGR_SLOPE = "regr_slope"
    REGR_SXX = "regr_sxx"
    REGR_SXY = "regr_sxy"
    REGR_SYY = "regr_syy"
    # Over the items of a group:
    COUNT_ITEMS = "count_items"
    FIRST_ITEMS = "first_items"  # those that the state is least of, as a list
    FIRST_VALUES = "first_values"  # the same of items that are structs: their fields `value`
    LAST_ITEMS = "last_items"  # those that the state is greatest of, from the greatest down
    SUM_ITEMS = "sum_items"
    MEAN_ITEMS = "mean_items"
    HISTOGRAM = "histogram"  # the items with their states, as a map
    MODE = "mode"  # the item that the state is greatest of; of equals the least
    TOP_ITEMS = "top_items"  # those that the state is greatest of, with it, as a list
    ESTIMATE_DISTINCT = "estimate_distinct"  # from the registers of hyperloglog.py
    QUANTILE = "quantile"  # from the buckets of percentile.py
