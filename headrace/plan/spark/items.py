"""Aggregates that keep items: how Spark makes their rows.

The items of a call `a3` are rows of a table beside the view's own: the view's keys, `a3_item` and
the states `a3_0`, ... Spark makes them in the same aggregation as the view's rows, as one more
grouping set; `__set` tells the sets' rows apart, 0 for the view's own.
"""

from collections.abc import Mapping, Sequence

from headrace.aggregates import Aggregate
from headrace.plan.shape import Call
from headrace.plan.spark.calls import fill

__all__ = ["grouping_sets", "item_column", "items_query"]


def item_column(call: str) -> str:
    """Return the name of the column that holds the items of a call."""
    return f"{call}_item"


def items_query(calls: Sequence[Call], aggregates: Mapping[str, Aggregate], relation: str) -> str:
    """Return a relation with the items of every record, where any call keeps some."""
    columns = [
        f"{fill(call, aggregate.items.item)} AS {item_column(call.name)}"
        for call in calls
        if (aggregate := aggregates[call.name]).items is not None
    ]
    return f"(SELECT *, {', '.join(columns)} FROM {relation})" if columns else relation


def grouping_sets(groups: Sequence[str], items: Sequence[str]) -> tuple[list[str], str]:
    """Return the columns that tell the sets apart, and the GROUP BY of all of them."""
    if not items:
        return [], ", ".join(groups)
    sets = [", ".join(groups), *(", ".join([*groups, item]) for item in items)]
    tests = (f"WHEN grouping({item}) = 0 THEN {at}" for at, item in enumerate(items, start=1))
    columns = [*items, f"CASE {' '.join(tests)} ELSE 0 END AS __set"]
    return columns, f"GROUPING SETS ({', '.join(f'({each})' for each in sets)})"
