"""GROUP BY: the keys and calls of an aggregate, and what is selected over them.

Promises:
- Only GROUP BY makes keys. What else is selected is an expression over keys, calls and the window.
- The same expression is one key, the same call is one call, however often they are written.
- Over windows that overlap, what is over aggregates uses nothing but what every store computes as
  Spark does, since rows are put together when they are read; everything else is refused. Elsewhere
  Spark evaluates what the store cannot.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from headrace.errors import Location
from headrace.model.functions import FUNCTIONS, MANY, Function
from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    Call,
    Node,
    Window,
    call_column,
    key_column,
)
from headrace.model.scalars import Scalar
from headrace.sql.query.expressions.aggregates import read_call
from headrace.sql.query.expressions.binding import (
    GROUPING_FUNCTIONS,
    NO_SETS,
    Expressions,
    name_of,
    refuse_null,
)
from headrace.sql.query.expressions.windows import (
    is_window,
    misplaced_window,
    read_edge,
    read_window,
)
from headrace.sql.query.reading.precedence import regrouping_operator
from headrace.sql.query.reading.syntax import AggregateCall
from headrace.sql.query.reading.trees import (
    aggregates_of,
    is_path,
    parts_of,
    path_of,
    strip_parentheses,
)
from headrace.sql.query.selecting.grouping_sets import GROUPING_ID, GROUPING_SET, GroupingSets
from headrace.sql.text import Refused, TooMany

__all__ = ["MAX_CALLS", "Groups"]

#: Different aggregates of one view: each is a column, or several, of its state.
MAX_CALLS = 1_000

#: What the store computes, types permitting; `model/functions.py` has those with names.
_STORE_NODES = (
    exp.Add, exp.And, exp.Anonymous, exp.Between, exp.BitwiseAnd, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseXor, exp.Boolean, exp.Bracket, exp.Case, exp.Cast, exp.DPipe, exp.DataType, exp.Div,
    exp.Dot, exp.EQ, exp.Extract, exp.GT, exp.GTE, exp.Identifier, exp.If, exp.In, exp.IntDiv,
    exp.Interval, exp.Is, exp.LT, exp.LTE, exp.Like, exp.Literal, exp.Mod, exp.Mul, exp.NEQ,
    exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.Or, exp.Paren, exp.StrPosition, exp.Sub,
    exp.Substring, exp.Trim, exp.TryCast, exp.Var,
)  # fmt: skip
#: Calls with a syntax, and nodes, of their own.
_OWN_SYNTAX = frozenset({"cast", "extract", "position", "substr", "substring", "trim", "try_cast"})
#: What users call the nodes that sqlglot names otherwise.
_SIGNS = {
    "bitwiseleftshift": "<<",
    "bitwiserightshift": ">>",
    "escape": "ESCAPE",
    "nullsafeneq": "IS DISTINCT FROM",
    "regexplike": "RLIKE",
}
#: Functions that mean the same; those of keys alone are computed by Spark.
_AS_CALLS = {
    "bitwiseleftshift": "shiftleft",
    "bitwiserightshift": "shiftright",
    "ilike": "ilike",
    "regexplike": "regexp_like",
}
#: Functions that name the fields of what they make after columns.
_NAMING = ("arrays_zip", "struct")
_INSTEAD = "compute it when you read the view"


class Groups:
    """The keys and calls of one grouped SELECT, as they are found."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.tree = expressions.tree
        self.window: Window | None = None
        self.keys: list[Scalar] = []
        self.calls: dict[Call, int] = {}  # with their numbers
        self._numbers: dict[Scalar, int] = {}  # of the keys
        self._places: list[Location] = []  # of those that GROUP BY names
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
        return Aggregate(node, self.window, tuple(keys), tuple(self.calls), tuple(self._places))

    def set_sets(self, sets: Sequence[frozenset[int]]) -> None:
        """Group by several sets of the keys, which are all known now."""
        self._sets = GroupingSets(sets, len(self.keys))
        self._add(Scalar.column(GROUPING_ID))
        if self._sets.has_twins:
            self._add(Scalar.column(GROUPING_SET))

    def _add(self, key: Scalar) -> int:
        """Return the number of a key, which is added if it is none yet."""
        if key not in self._numbers:
            self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return self._numbers[key]

    def add_key(self, node: exp.Expr) -> int | None:
        """Return the number of a key, which is added if it is none yet; None: the window's edge."""
        scalar = self.expressions.bind(node)
        refuse_null(self.tree, node)
        if scalar.name in WINDOW_COLUMNS and self.window is not None:
            return None
        self._refuse_many_windows(node, scalar)
        self._kinds.add(type(strip_parentheses(node)))
        if scalar not in self._numbers:
            self._places.append(self.tree.location(node))
        return self._add(scalar)

    def bind(self, node: exp.Expr, outputs: Mapping[str, Scalar] | None = None) -> Scalar:
        """Return an expression of SELECT or HAVING over the columns of the aggregate.

        `outputs` are those that may be used by name. Refused: it uses a column that is not
        grouped, or what the store cannot compute.
        """
        self._outputs = outputs or {}
        whole = strip_parentheses(node)
        if is_window(self.tree, whole) or self._is_window_by_name(whole):
            return self._window_struct(whole)
        scalar = self.expressions.bind(node, self)
        refuse_null(self.tree, node)
        if scalar.name is None and self._is_known_later(node, scalar):
            self._refuse_foreign(node)
        return self._written_out(scalar)

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
        column = self.column_of_path(self.expressions.bind(inner))
        operator = None if column is None else regrouping_operator(node)
        if operator is not None:
            raise self.tree.refuse(
                node,
                f"Spark groups the operators of {self.tree.text(operator)} differently; write "
                f"parentheses around {self.tree.text(node)}",
            )
        return column

    def _window_struct(self, node: exp.Expr) -> Scalar:
        """Return the window as a column: its start and its end."""
        misplaced = misplaced_window(self.tree, node)
        if self.window is None and misplaced is not None:
            raise misplaced
        if is_window(self.tree, node) and read_window(self.expressions, node) != self.window:
            raise self.tree.refuse(
                node, "this is not the window that GROUP BY names; write the same, or window.start"
            )
        return Scalar("named_struct('start', {0}, 'end', {1})", WINDOW_COLUMNS[:2])

    def _is_window_by_name(self, node: exp.Expr) -> bool:
        """Whether a node is the window of the groups by its own name."""
        scope, name = self.expressions.scope, (name_of(self.tree, node) or "").lower()
        known = ("window", "session_window") if scope.has_session else ("window",)
        return scope.has_window and name in known and name not in scope.columns

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
            return key_column(self._numbers[Scalar.column(GROUPING_ID)])
        if len(arguments) != 1 or arguments[0] not in keys:
            raise self.tree.refuse(
                node, "grouping() takes one of the columns that GROUP BY names; write grouping(a)"
            )
        return key_column(self._add(self._sets.is_left_out(keys.index(arguments[0]))))

    def _is_output(self, node: exp.Expr) -> bool:
        is_name = isinstance(node, exp.Column) and not node.table
        return is_name and node.name.lower() in self._outputs

    def column_of_path(self, scalar: Scalar) -> str | None:
        """Return the column for a key."""
        return key_column(self._numbers[scalar]) if scalar in self._numbers else None

    def _add_call(self, node: exp.Expr) -> str:
        call = read_call(self.expressions, node)
        if call not in self.calls and len(self.calls) == MAX_CALLS:
            raise TooMany(
                self.tree.problem(
                    node,
                    f"a view keeps at most {MAX_CALLS:,} different aggregates; make several views",
                )
            )
        return call_column(self.calls.setdefault(call, len(self.calls)))

    def _is_known_later(self, node: exp.Expr, scalar: Scalar) -> bool:
        """Whether no record knows the value: it is over an aggregate, or over windows to come."""
        if any(aggregates_of(node)):
            return True
        refs = {*self._written_out(scalar).refs}
        if not refs.isdisjoint(map(call_column, range(len(self.calls)))):
            return True
        return self._has_many_windows and not refs.isdisjoint(WINDOW_COLUMNS)

    def _written_out(self, scalar: Scalar) -> Scalar:
        """Return an expression over the columns of the aggregate, without names of outputs."""
        return scalar.substitute({f"{_OUTPUT}{name}": each for name, each in self._outputs.items()})

    @property
    def _has_many_windows(self) -> bool:
        """Whether a record has several windows, or does not know its own."""
        window = self.window
        return window is not None and (window.overlaps or window.gap_us is not None)

    def _refuse_many_windows(self, node: exp.Expr, scalar: Scalar) -> None:
        """Refuse a key over the window where a record has several, or knows none.

        Such a one has a value per window, or one that records still to come decide.
        """
        if scalar.name or not set(scalar.refs) & set(WINDOW_COLUMNS):
            return
        if self.window is not None and self._has_many_windows:
            which = "windows that overlap" if self.window.overlaps else "sessions"
            raise self.tree.refuse(
                node,
                f"records of {which} cannot be grouped by an expression over window.start or "
                "window.end; move it from GROUP BY to SELECT",
            )

    def _refuse_foreign(self, root: exp.Expr) -> None:
        """Refuse what nobody computes beside an aggregate, or over windows that overlap."""
        if self.window is None or not self.window.overlaps:
            self._refuse_naming(root)
            return
        waiting = [root]
        while waiting:
            node = waiting.pop(0)
            if self.column_of_node(node) is not None or isinstance(node, exp.DataType):
                continue
            name = self.tree.call_name(node)
            if name is not None and name not in _OWN_SYNTAX:
                if not self._is_known_later(node, self.expressions.bind(node, self)):
                    continue  # of keys alone
                if name not in FUNCTIONS:
                    raise self._refuse_call(node, name)
            self._refuse_odd_forms(node, name)
            if not isinstance(node, _STORE_NODES) and not is_path(node):
                raise self._refuse_operator(node, root)
            waiting += [] if is_path(node) else parts_of(node)

    def _refuse_naming(self, root: exp.Expr) -> None:
        """Refuse calls whose fields Spark names after columns: a merged row has others."""
        waiting = [root]
        while waiting:
            node = waiting.pop(0)
            if self.column_of_node(node) is not None or isinstance(node, exp.DataType):
                continue
            name = self.tree.call_name(node)
            if name in _NAMING and self._is_known_later(node, self.expressions.bind(node, self)):
                raise self._refuse_call(node, name)
            waiting += [] if is_path(node) else parts_of(node)

    def _refuse_operator(self, node: exp.Expr, root: exp.Expr) -> Refused:
        sign, function, instead = _SIGNS.get(node.key, node.key.upper()), "", _INSTEAD
        if isinstance(node, exp.Binary):
            function = _AS_CALLS.get(node.key, "")
        if function and not self._is_known_later(node, self.expressions.bind(node, self)):
            sides = (self.tree.text(node.this), self.tree.text(node.expression))
            instead = f"write {function}({', '.join(sides)})"
        return self.tree.refuse(
            self._place(node, root),
            f"{sign} cannot be computed beside {self._what(root)}; {instead}",
        )

    def _refuse_call(self, node: exp.Expr, name: str) -> Refused:
        what = self._what(node)
        if name == "struct":
            parts = [
                f"'{each.alias_or_name or f'col{at}'}', {self.tree.text(each.unalias())}"
                for at, each in enumerate(node.expressions, 1)
            ]
            return self.tree.refuse(
                node,
                f"struct() cannot be applied to {what}; write named_struct({', '.join(parts)})",
            )
        instead = f"compute it when you read: SELECT {name}(...) FROM view"
        if "aggregate" in what:
            instead += ", or apply it to the argument"
        return self.tree.refuse(node, f"{name}() cannot be applied to {what}; {instead}")

    def _what(self, node: exp.Expr) -> str:
        overlaps = self.window is not None and self.window.overlaps
        if any(aggregates_of(node)) or any(map(self._is_output, node.find_all(exp.Column))):
            return _AGGREGATE if overlaps else "an aggregate"
        return f"an edge of {'windows that overlap' if overlaps else 'sessions'}"

    def _refuse_odd_forms(self, node: exp.Expr, name: str | None) -> None:
        """Refuse forms of what the store computes that it does not."""
        if isinstance(node.args.get("expression"), exp.Any | exp.All | exp.SubqueryPredicate):
            raise self.tree.refuse(
                node, f"ANY and ALL cannot stand beside {_AGGREGATE}; {_INSTEAD}"
            )
        if node.args.get("symmetric") is not None:
            raise self.tree.refuse(node, "SYMMETRIC is not supported; write BETWEEN low AND high")
        if isinstance(node, exp.Interval) and isinstance(node.args.get("unit"), exp.IntervalSpan):
            raise self.tree.refuse(
                node,
                f"an interval of two units cannot stand beside {_AGGREGATE}; write one unit, such "
                "as INTERVAL 90 SECONDS",
            )
        if isinstance(node, exp.Anonymous) and name in FUNCTIONS:
            function, given = FUNCTIONS[name], len(node.expressions)
            if not function.fewest <= given <= function.most:
                raise self.tree.refuse(node, _wrong_count(name, function, given))

    def _place(self, node: exp.Expr, root: exp.Expr) -> exp.Expr:
        if is_path(node) or isinstance(node, exp.Dot):
            return node.expression if isinstance(node, exp.Dot) else path_of(node)[-1]
        return node if node.find(exp.Column, AggregateCall) is not None else root


_AGGREGATE = "an aggregate of windows that overlap"
#: What names of outputs begin with while they stand in for expressions; no column can.
_OUTPUT = "_output "


def _wrong_count(name: str, function: Function, given: int) -> str:
    fewest, most = function.fewest, function.most
    if most == MANY:
        wanted = f"{fewest} or more"
    else:
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    plural = "" if wanted == "1" else "s"
    return (
        f"{name}() takes {wanted} argument{plural} over aggregates of windows that overlap, not "
        f"{given}; {_INSTEAD}"
    )
