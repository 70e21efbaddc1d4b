"""Window functions of FROM: `TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)` and its kin.

They say the same as `GROUP BY window(ts, '1 minute')` where the query groups by `window_start` and
`window_end`: that is the window of its aggregate. Elsewhere a record with its windows is a row for
each of them.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headrace.errors import Problem
from headrace.model.nodes import WINDOW_COLUMNS, AssignWindows, Window
from headrace.model.scalars import Scalar
from headrace.schema.types import parse_type
from headrace.sql.query.expressions.binding import Expressions
from headrace.sql.query.expressions.scopes import Beside, Relation, Scope
from headrace.sql.query.expressions.windows import make_window, read_duration, read_time
from headrace.sql.query.reading.syntax import WINDOW_TABLES, WindowTable
from headrace.sql.query.reading.trees import Tree, is_path, path_of, strip_parentheses
from headrace.sql.text import Refused

__all__ = ["WindowChoice", "bind_window_table", "edges_of", "window_columns"]

#: The columns that such a relation has besides those of its input.
_NAMES = ("window_start", "window_end", "window_time")
_ARGUMENTS = ("data", "timecol")
_EXAMPLES = {
    "tumble": "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "hop": "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)",
    "cumulate": "CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)",
    "session": "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
}


def bind_window_table(
    tree: Tree, node: WindowTable, relation: Relation, problems: list[Problem]
) -> Relation | None:
    """Return a relation as a window function gives it; None: it has a problem, which is added."""
    try:
        return _bind(tree, node, relation)
    except Refused as refused:
        problems += refused.problems
        return None


def _bind(tree: Tree, node: WindowTable, relation: Relation) -> Relation:
    name = str(node.this)
    how = f"write {_EXAMPLES[name]}"
    expressions = Expressions(tree, Scope(relation))
    if relation.event_time is None:
        raise tree.refuse(
            node,
            f"{name.upper()} needs the event time of {relation.name}, which has none; "
            f"{relation.timeless}",
        )
    arguments = _arguments(tree, node, how)
    time = arguments.pop("timecol")
    if not isinstance(time, exp.Column) or read_time(expressions, time, how) is not None:
        raise tree.refuse(time, f"DESCRIPTOR takes the event time of {relation.name}; {how}")
    durations = {
        length: read_duration(tree, tree.tokens_of(each), length, how)
        for length, each in arguments.items()
    }
    partition = tuple(expressions.bind(each) for each in node.args.get("partition") or ())
    if partition and name != "session":
        raise tree.refuse(
            node.args["partition"][0],
            "PARTITION BY belongs to SESSION alone; other windows are the same for all records, so "
            "remove it",
        )
    taken = [each for each in _NAMES if each in relation.spelling]
    if taken or relation.windowed is not None:
        raise tree.refuse(
            node, f"{relation.name} has a column {(taken or _NAMES)[0]} already; rename it"
        )
    window = make_window(tree, node, name, durations)
    return replace(relation, windowed=window, partition=partition)


def _arguments(tree: Tree, node: WindowTable, how: str) -> dict[str, exp.Expr]:
    """Return the arguments behind the relation by name. Refused: one is missing, or unknown."""
    name = str(node.this)
    known = (*_ARGUMENTS[1:], *WINDOW_TABLES[name])
    found: dict[str, exp.Expr] = {}
    for at, argument in enumerate(node.expressions):
        keyword = argument.meta.get("keyword")
        if keyword is None and at >= len(known):
            raise tree.refuse(argument, f"{name.upper()} takes no more arguments; {how}")
        key = known[at] if keyword is None else keyword
        if key not in known or key in found:
            state = "stands twice" if key in found else "is not known"
            raise tree.refuse(argument, f"{name.upper()}: {key.upper()} {state}; {how}")
        if (key == "timecol") is not bool(argument.meta.get("is_descriptor")):
            raise tree.refuse(argument, f"{name.upper()} takes its time as DESCRIPTOR(ts); {how}")
        found[key] = argument
    missing = [each for each in known if each not in found and each != "offset"]
    if missing:
        raise tree.refuse(node, f"{name.upper()}: {missing[0].upper()} is missing; {how}")
    return found


def window_columns(relation: Relation) -> list[Beside]:
    """Return the columns that tell the window of a row."""
    type = parse_type("TIMESTAMP")
    return [
        Beside(name, column, relation.qualifier, type)
        for name, column in zip(_NAMES, WINDOW_COLUMNS, strict=True)
    ]


def edges_of(scope: Scope, nodes: Sequence[exp.Expr]) -> set[str]:
    """Return which edges of the window are among what a query groups by."""
    edges: set[str] = set()
    for node in map(strip_parentheses, nodes):
        if is_path(node):
            parts = [part.name.lower() for part in path_of(node)]
            is_own = len(parts) == 1 or parts[:-1] == [scope.relation.qualifier.lower()]
            edges |= {parts[-1]} & set(_NAMES) if is_own else set()
    return edges


class WindowChoice:
    """Whether the window of FROM is that of the groups, or makes rows of its own."""

    def __init__(self, tree: Tree, scope: Scope, place: exp.Expr) -> None:
        window = scope.relation.windowed
        assert window is not None
        self.tree, self.scope, self.place = tree, scope, place
        self.window: Window = window
        self.partition: tuple[Scalar, ...] = scope.relation.partition

    def of_groups(self, edges: set[str]) -> bool:
        """Return whether groups by some edges are groups by the window. Refused: by half of it."""
        if not edges & {"window_start", "window_end"}:
            return False
        if self.window.kind == "cumulative" and "window_end" not in edges:
            raise self.tree.refuse(
                self.place,
                "windows of CUMULATE that begin together end at different times; add window_end "
                "to GROUP BY",
            )
        return True

    def assign(self) -> None:
        """Make a row of each window of a record."""
        if self.window.gap_us is not None:
            raise self.tree.refuse(
                self.place,
                "a session is known only when it is complete, so a record has no session of its "
                "own; add GROUP BY window_start, window_end",
            )
        relation = self.scope.relation
        self.scope.relation = replace(relation, node=AssignWindows(relation.node, self.window))

    def check_keys(self, keys: Sequence[Scalar]) -> None:
        """Refuse sessions of other keys than those of the groups."""
        if self.window.gap_us is None or set(keys) == set(self.partition):
            return
        raise self.tree.refuse(
            self.place,
            "sessions are those of the keys that GROUP BY names; write SESSION(TABLE s PARTITION "
            "BY k, ...) and GROUP BY window_start, window_end, k with the same columns",
        )
