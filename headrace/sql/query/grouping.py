"""GROUP BY: the keys and calls of an aggregate, and what is selected over them.

Promises:
- Only GROUP BY makes keys. What else is selected is an expression over keys, calls and the window.
- The same expression is one key, the same call is one call, however often they are written.
- What is over aggregates uses nothing but what every store computes as Spark does; everything else
  is refused.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    Call,
    Node,
    Window,
    call_column,
    key_column,
)
from headrace.model.scalars import STORE_FUNCTIONS, Scalar
from headrace.sql.query.aggregates import read_call
from headrace.sql.query.expressions import (
    GROUPING_FUNCTIONS,
    NO_SETS,
    Expressions,
    refuse_null,
)
from headrace.sql.query.grouping_sets import GROUPING_ID, GROUPING_SET, GroupingSets
from headrace.sql.query.syntax import AggregateCall
from headrace.sql.query.trees import aggregates_of, is_path, parts_of, path_of, strip_parentheses
from headrace.sql.query.windows import is_window, misplaced_window, read_edge, read_window

__all__ = ["Groups"]

_STORE_NODES = (
    exp.Add, exp.And, exp.Anonymous, exp.Between, exp.Boolean, exp.Case, exp.Cast,
    exp.Div, exp.EQ, exp.GT, exp.GTE, exp.Identifier, exp.If, exp.In, exp.Is, exp.LT, exp.LTE,
    exp.Literal, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.Or, exp.Paren,
    exp.Sub, exp.TryCast, exp.DataType,
)  # fmt: skip
#: How many arguments those take that do not take any number of them.
_ARGUMENTS = {"abs": (1, 1), "if": (2, 3), "ifnull": (2, 2), "nullif": (2, 2), "nvl": (2, 2)}
#: What users call the nodes that sqlglot names otherwise.
_SIGNS = {
    "bracket": "[]",
    "column": "a field",
    "dot": "a field",
    "dpipe": "||",
    "intdiv": "DIV",
    "mod": "%",
}
_INSTEAD = "compute it when you read: SELECT round(total, 2) FROM view, or apply it to the argument"


class Groups:
    """The keys and calls of one grouped SELECT, as they are found."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.tree = expressions.tree
        self.window: Window | None = None
        self.keys: list[Scalar] = []
        self.calls: list[Call] = []
        self._kinds: set[object] = set()  # of the nodes that are keys
        self._outputs: Mapping[str, Scalar] = {}  # which HAVING may use by name
        self._sets: GroupingSets | None = None

    def aggregate(self, node: Node) -> Aggregate:
        """Return the aggregate over its input."""
        keys = self.keys
        if self._sets is not None:
            own = self._sets.keys
            keys = [self._sets.key(at, key) for at, key in enumerate(keys[:own])] + keys[own:]
            node = self._sets.over(node)
        return Aggregate(node, self.window, tuple(keys), tuple(self.calls))

    def set_sets(self, sets: Sequence[frozenset[int]]) -> None:
        """Group by several sets of the keys, which are all known now."""
        self._sets = GroupingSets(sets, len(self.keys))
        self.keys.append(Scalar.column(GROUPING_ID))
        if self._sets.has_twins:
            self.keys.append(Scalar.column(GROUPING_SET))

    def add_key(self, node: exp.Expr) -> int | None:
        """Return the number of a key, which is added if it is none yet; None: the window's edge."""
        scalar = self.expressions.bind(node)
        refuse_null(self.tree, node)
        if isinstance(strip_parentheses(node), exp.Tuple):
            raise self.tree.refuse(node, "remove the parentheses around the columns")
        if scalar.name in WINDOW_COLUMNS and self.window is not None:
            return None
        self._refuse_many_windows(node, scalar)
        if scalar not in self.keys:
            self.keys.append(scalar)
            self._kinds.add(type(strip_parentheses(node)))
        return self.keys.index(scalar)

    def bind(self, node: exp.Expr, outputs: Mapping[str, Scalar] | None = None) -> Scalar:
        """Return an expression of SELECT or HAVING over the columns of the aggregate.

        `outputs` are those that may be used by name. Refused: it uses a column that is not
        grouped, or what the store cannot compute.
        """
        self._outputs = outputs or {}
        whole = strip_parentheses(node)
        if is_window(self.tree, whole):
            return self._window_struct(whole)
        scalar = self.expressions.bind(node, self)
        refuse_null(self.tree, node)
        if any(aggregates_of(node)) or any(name.startswith(_OUTPUT) for name in scalar.refs):
            self._refuse_foreign(node)
        else:
            self._refuse_many_windows(node, scalar)
        return scalar.substitute({f"{_OUTPUT}{name}": each for name, each in self._outputs.items()})

    def column_of_node(self, node: exp.Expr) -> str | None:
        """Return the column for an aggregate call, an output's name or a key."""
        if isinstance(node, AggregateCall):
            return self._add_call(node)
        if self._is_output(node):
            return f"{_OUTPUT}{node.name.lower()}"
        if isinstance(node, exp.Anonymous) and self.tree.call_name(node) in GROUPING_FUNCTIONS:
            return self._grouping(node)
        edge = self._edge(node)
        if edge is not None:
            return edge
        inner = strip_parentheses(node)
        if type(inner) not in self._kinds or is_path(inner) or any(aggregates_of(inner)):
            return None
        if any(map(self._is_output, inner.find_all(exp.Column))):
            return None  # no key names an output
        return self.column_of_path(self.expressions.bind(inner))

    def _window_struct(self, node: exp.Expr) -> Scalar:
        """Return the window as a column: its start and its end."""
        misplaced = misplaced_window(self.tree, node)
        if self.window is None and misplaced is not None:
            raise misplaced
        if read_window(self.expressions, node) != self.window:
            raise self.tree.refuse(
                node, "this is not the window that GROUP BY names; write the same, or window.start"
            )
        return Scalar("named_struct('start', {0}, 'end', {1})", WINDOW_COLUMNS[:2])

    def _edge(self, node: exp.Expr) -> str | None:
        """Return the column for tumble_start(...) and its kin."""
        edge = read_edge(self.expressions, node)
        if edge is None:
            return None
        window, column = edge
        if window != self.window:
            name = (self.tree.call_name(node) or "").split("_")[0]
            raise self.tree.refuse(
                node, f"this is not the window of the groups; write GROUP BY {name}(...) as here"
            )
        return column

    def _grouping(self, node: exp.Anonymous) -> str:
        """Return the column for grouping(key) or grouping_id()."""
        name = self.tree.call_name(node)
        if self._sets is None:
            raise self.tree.refuse(node, NO_SETS.format(name=name))
        keys = self.keys[: self._sets.keys]
        arguments = [self.expressions.bind(each) for each in node.expressions]
        if name == "grouping_id":
            if arguments and arguments != keys:
                raise self.tree.refuse(
                    node, "grouping_id() is over all that GROUP BY names; write it without columns"
                )
            return key_column(self.keys.index(Scalar.column(GROUPING_ID)))
        if len(arguments) != 1 or arguments[0] not in keys:
            raise self.tree.refuse(
                node, "grouping() takes one of the columns that GROUP BY names; write grouping(a)"
            )
        scalar = self._sets.is_left_out(keys.index(arguments[0]))
        if scalar not in self.keys:
            self.keys.append(scalar)
        return key_column(self.keys.index(scalar))

    def _is_output(self, node: exp.Expr) -> bool:
        is_name = isinstance(node, exp.Column) and not node.table
        return is_name and node.name.lower() in self._outputs

    def column_of_path(self, scalar: Scalar) -> str | None:
        """Return the column for a key."""
        return key_column(self.keys.index(scalar)) if scalar in self.keys else None

    def _add_call(self, node: exp.Expr) -> str:
        call = read_call(self.expressions, node)
        if call not in self.calls:
            self.calls.append(call)
        return call_column(self.calls.index(call))

    def _refuse_many_windows(self, node: exp.Expr, scalar: Scalar) -> None:
        """Refuse an expression over the window where a record has several, or knows none.

        Such a one has a value per window, or one that records still to come decide.
        """
        if self.window is None or scalar.name or not set(scalar.refs) & set(WINDOW_COLUMNS):
            return
        if self.window.overlaps or self.window.gap_us is not None:
            which = "windows that overlap" if self.window.overlaps else "sessions"
            raise self.tree.refuse(
                node,
                f"{which} have a start and an end, and no other expressions are supported: select "
                "window.start, and compute the rest when you read the view",
            )

    def _refuse_foreign(self, root: exp.Expr) -> None:
        """Refuse what the store cannot compute beside an aggregate."""
        waiting = [root]
        while waiting:
            node = waiting.pop(0)
            if self.column_of_node(node) is not None or isinstance(node, exp.DataType):
                continue
            name = self.tree.call_name(node)
            if name is not None and name not in STORE_FUNCTIONS:
                if any(aggregates_of(node)) or any(map(self._is_output, node.find_all(exp.Column))):
                    raise self.tree.refuse(
                        node, f"{name}() cannot be applied to an aggregate; {_INSTEAD}"
                    )
                self._refuse_many_windows(node, self.expressions.bind(node, self))
                continue  # of keys alone
            self._refuse_odd_forms(node, name)
            is_column = is_path(node) and self.expressions.bind(node, self).name is not None
            if not is_column and not isinstance(node, _STORE_NODES):
                raise self.tree.refuse(
                    self._place(node, root),
                    f"{_SIGNS.get(node.key, node.key.upper())} cannot be computed beside an "
                    f"aggregate; {_INSTEAD}",
                )
            waiting += [] if is_column else parts_of(node)

    def _refuse_odd_forms(self, node: exp.Expr, name: str | None) -> None:
        """Refuse forms of what the store computes that it does not."""
        if isinstance(node.args.get("expression"), exp.Any | exp.All | exp.SubqueryPredicate):
            raise self.tree.refuse(
                node, f"ANY and ALL cannot stand beside an aggregate; {_INSTEAD}"
            )
        if node.args.get("symmetric") is not None:
            raise self.tree.refuse(node, "SYMMETRIC is not supported; write BETWEEN low AND high")
        fewest, most = _ARGUMENTS.get(name or "", (0, 1_000))
        given = len(node.expressions)
        if isinstance(node, exp.Anonymous) and not fewest <= given <= most:
            wanted = fewest if fewest == most else f"{fewest} to {most}"
            plural = "" if most == 1 else "s"
            raise self.tree.refuse(node, f"{name}() takes {wanted} argument{plural}, not {given}")

    def _place(self, node: exp.Expr, root: exp.Expr) -> exp.Expr:
        if is_path(node) or isinstance(node, exp.Dot):
            return node.expression if isinstance(node, exp.Dot) else path_of(node)[-1]
        return node if node.find(exp.Column, AggregateCall) is not None else root


#: What names of outputs begin with while they stand in for expressions; no column can.
_OUTPUT = "_output "
