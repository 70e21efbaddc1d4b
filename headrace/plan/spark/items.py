"""Aggregates that keep items: how Spark makes their rows.

The items of a call `a3` are rows of a table beside the view's own: the view's keys, `a3_item` and
the states `a3_0`, ... Spark makes them in the same aggregation as the view's rows: every record is
there once for the view's own rows and once for each call that keeps items, and `__set` tells these
apart, 0 for the view's own.
"""

from collections.abc import Mapping, Sequence

from headrace.aggregates import Aggregate
from headrace.plan.shape import Call
from headrace.plan.spark.calls import fill

__all__ = ["item_column", "items_query", "set_columns"]


def item_column(call: str) -> str:
    """Return the name of the column that holds the items of a call."""
    return f"{call}_item"


def items_query(calls: Sequence[Call], aggregates: Mapping[str, Aggregate], relation: str) -> str:
    """Return a relation with the items of every record, once per set, where any call keeps some."""
    columns = [
        f"{fill(call, aggregate.items.item)} AS {item_column(call.name)}"
        for call in calls
        if (aggregate := aggregates[call.name]).items is not None
    ]
    if not columns:
        return relation
    # Not GROUPING SETS: between them and the aggregation Spark shuffles, be there one partition.
    sets = ", ".join(str(at) for at in range(len(columns) + 1))
    return (
        f"(SELECT *, explode(array({sets})) AS __set "
        f"FROM (SELECT *, {', '.join(columns)} FROM {relation}))"
    )


def set_columns(items: Sequence[str]) -> dict[str, str]:
    """Return the columns that the rows of sets are grouped by, besides the view's own keys."""
    if not items:
        return {}
    numbered = enumerate(items, start=1)
    return {item: f"CASE WHEN __set = {at} THEN {item} END" for at, item in numbered} | {
        "__set": "__set"
    }
