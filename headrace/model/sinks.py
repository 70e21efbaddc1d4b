"""The key of what a sink sends of a view."""

from headrace.model.definitions import View
from headrace.model.graph import aggregate_of, passed_on
from headrace.model.nodes import WINDOW_COLUMNS, key_column

__all__ = ["key_parts"]


def key_parts(view: View) -> dict[str, str]:
    """Return the columns of its aggregate that a grouped view's rows are told under, with names.

    A column goes by the name of the output that selects it; where none does, by its place.
    """
    aggregate = aggregate_of(view.query)
    if aggregate is None:
        return {}
    start, end, _ = WINDOW_COLUMNS
    parts = {key_column(number): f"k{number}" for number in range(len(aggregate.keys))}
    if aggregate.window is not None:
        ends = {end: "window_end"} if aggregate.window.kind == "cumulative" else {}
        parts = {start: "window_start"} | ends | parts
    given = {column: name for name, column in passed_on(view.query).items()}
    return {part: given.get(part, name) for part, name in parts.items()}
