"""approx_top_k(x, k): the k values that occur most often, and how often. Exact, for all its name.

One row per group and value, so the state grows with the values. Of values that occur equally often
the lesser ones come first, and null before all others: a null is a value here, as in Spark.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.distinct import check_single
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType, parse_type

__all__ = ["approx_top_k"]


def approx_top_k(arguments: Arguments) -> Aggregate:
    """Return the list of the most frequent values. ValueError: values that cannot be told apart."""
    value, count = check_single("approx_top_k", arguments), arguments.parameters[0]
    bigint = parse_type("BIGINT")
    # In a struct, because an item that is null itself would be none.
    item = DataType("STRUCT", parts=(value,), names=("value",))
    items = Items("CASE WHEN {tiebreak} IS NOT NULL THEN named_struct('value', {x}) END", item)
    counted = State(bigint, "count({tiebreak})", Merge.COUNT)
    row = DataType("STRUCT", parts=(value, bigint), names=("item", "count"))
    return Aggregate(
        (counted,), Final.TOP_ITEMS, DataType("ARRAY", parts=(row,)), items, parameter=count
    )
