"""The plan of a query, as EXPLAIN gives it, as an indented tree that fits the terminal.

DuckDB draws boxes beside each other, which are wider than a terminal where a query joins. So its
plan is asked for as JSON and written here: an operator per line, what it does below it, and its
inputs below that, one step further in. Long lines go on in the next one; nothing is cut.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from headrace.cli.text.output import printable
from headrace.wording import counted

__all__ = ["ask_for_tree", "plan_text"]

_STEP = 2
_LEAST_WIDTH = 30  # of a text, however deep it stands
_PLAIN_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?!ANALY[ZS]E\b)(?=\w)", re.IGNORECASE)
_ROWS = "Estimated Cardinality"


def ask_for_tree(statement: str) -> str:
    """Return a statement that has its plan as JSON if it is an EXPLAIN, else as it is."""
    found = _PLAIN_EXPLAIN.match(statement)
    return f"EXPLAIN (FORMAT json) {statement[found.end() :]}" if found else statement


def plan_text(plan: str, width: int) -> str:
    """Return a plan as lines; a drawing, which is no JSON, is left as it is."""
    try:
        nodes = json.loads(plan)
    except ValueError:
        return "\n".join(map(printable, plan.rstrip().split("\n")))
    return "\n".join(line for node in nodes for line in _lines(node, 0, width))


def _lines(node: dict[str, Any], depth: int, width: int) -> Iterator[str]:
    indent = depth * _STEP
    yield " " * indent + printable(node["name"].replace("_", " ").strip().title())
    facts = dict(node.get("extra_info", {}))
    rows = str(facts.pop(_ROWS, ""))
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        if text:
            yield from _wrapped(f"{name}: {text}", indent + 2 * _STEP, width)
    if rows.isdigit():
        yield from _wrapped(f"about {counted(int(rows), 'row')}", indent + 2 * _STEP, width)
    for child in node.get("children", []):
        yield from _lines(child, depth + 1, width)


def _wrapped(text: str, indent: int, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        max(width, indent + _LEAST_WIDTH),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + _STEP),
        break_on_hyphens=False,
    )
