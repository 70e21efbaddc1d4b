"""Aggregates that keep items: the table of their rows, and how readers see through it.

The items of a call `a3` are rows of a table beside the view's own: the view's keys, `a3_item` and
the states `a3_0`, ... Spark makes them in the same aggregation as the view's rows, as one more
grouping set; `__set` tells the sets' rows apart, 0 for the view's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.aggregates import Aggregate, Items
from headrace.plan.sessions import PIECE, items_expired, items_of_session
from headrace.plan.shape import Call
from headrace.plan.spark.calls import fill
from headrace.plan.tables import GROUP, Table, TableColumn, quote
from headrace.time.windows import Cut

__all__ = ["grouping_sets", "item_column", "items_final", "items_query", "items_table"]

_PLACE = ("pane", "first_window", "piece")


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


def items_table(
    call: str, aggregate: Aggregate, main: Table, *, retention_us: int | None = None
) -> Table:
    """Return the table of a call's items, beside the view's own."""
    assert aggregate.items is not None
    states = [
        TableColumn(f"{call}_{i}", state.type, state.merge, state.combine, state.differs)
        for i, state in enumerate(aggregate.states)
    ]
    item = TableColumn(item_column(call), aggregate.items.type)
    table = Table(
        main.view,
        main.version,
        (*main.keys, item, *states),
        (),
        expired=main.expired,
        part=f"items_{call}",
        repeats=bool(main.relation),
        keep=aggregate.items.keep,
    )
    if main.gap_us is None:
        return table
    expired = "" if retention_us is None else items_expired(main, table.name, retention_us)
    return replace(table, columns=(PIECE, *main.groups, item, *states), expired=expired)


def items_final(call: str, aggregate: Aggregate, table: Table, cut: Cut | None) -> str:
    """Return SQL of the store for a call's answer, over the items of the row called `GROUP`."""
    items = aggregate.items
    assert isinstance(items, Items)
    names = [f"{call}_{i}" for i in range(len(aggregate.states))]
    keys = [key.name for key in table.keys if key.name not in (*_PLACE, item_column(call))]
    matches = [f"i.{quote(key)} IS NOT DISTINCT FROM {GROUP}.{quote(key)}" for key in keys]
    selected = [f"{item_column(call)} AS item", *names]
    group_by = ""
    if cut is not None and (cut.overlaps or cut.session):
        # A window's items are those of all of its panes, each put together over them first; a
        # session's, those of its pieces.
        matches += (
            [items_of_session(cut.size, "i.piece")]
            if cut.session
            else [
                f"i.first_window <= {GROUP}.number",
                f"{cut.store_last('i.pane')} >= {GROUP}.number",
            ]
        )
        combined = (
            f"{state.combine.format(x=f'i.{name}')} AS {name}"
            for name, state in zip(names, aggregate.states, strict=True)
        )
        selected = [f"i.{item_column(call)} AS item", *combined]
        group_by = f" GROUP BY i.{item_column(call)}"
    where = f" WHERE {' AND '.join(matches)}" if matches else ""
    rows = f"SELECT {', '.join(selected)} FROM headrace.{quote(table.name)} AS i{where}{group_by}"
    if items.ranked:
        rows = f"SELECT *, {items.ranked.format(*names)} FROM ({rows})"
    return f"SELECT {aggregate.final.format(*names)} FROM ({rows})"
