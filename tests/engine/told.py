"""Read the topic of a sink as its users do."""

import json
from collections import Counter
from typing import Any

from headrace.serve.http.values import plain
from headrace.testing import Harness

__all__ = ["held", "held_rows", "told"]


def told(harness: Harness, topic: str) -> list[tuple[Any, Any]]:
    """Return the keys and values of a sink's topic, in order."""
    return [
        (
            json.loads(record["key"]),
            None if record["value"] is None else json.loads(record["value"]),
        )
        for record in harness.topic(topic)
    ]


def held(harness: Harness, topic: str) -> Counter[str]:
    """Return the rows that a reader of a sink's topic ends with, whichever mode it has."""
    newest: dict[str, Any] = {}
    rows: Counter[str] = Counter()
    for key, value in told(harness, topic):
        if value is None or "_change" not in value:
            newest[json.dumps(key)] = value
            continue
        change = value.pop("_change")
        rows[_text(value)] += 1 if change == "insert" else -1
        assert rows[_text(value)] >= 0, "a row was retracted that was never told"
    return +rows + Counter(_text(value) for value in newest.values() if value is not None)


def held_rows(harness: Harness, view: str, *, closed: bool = False) -> Counter[str]:
    """Return the rows of a view, or its closed ones, in the same form."""
    rows = [
        plain({name: _mapped(value) for name, value in row.items()})
        for row in harness.rows(view, meta=True)
        if row.pop("_events")
    ]
    return Counter(_text(row) for row in rows if row["_closed"] or not closed)


def _mapped(value: Any) -> Any:
    """Return a map as one: rows have a list of its entries. An empty one looks like a list."""
    is_map = isinstance(value, list) and value and all(isinstance(each, tuple) for each in value)
    return dict(value) if is_map else value


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)
