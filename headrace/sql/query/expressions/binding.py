"""Expressions of a query into scalars: their columns resolved, their text kept as written.

Promises:
- Every column exists, and is named as CREATE STREAM spells it.
- Two expressions are equal scalars when they differ in white space, comments, the case of names
  and words, the relation's alias, quotes around names and parentheses around the whole, and in
  nothing else. The keys of a MAP, `m.A` and `m.a`, are no names.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

from sqlglot import Token, TokenType, exp

from headrace.errors import Problem
from headrace.model.names import closest
from headrace.model.nodes import WATERMARK, WINDOW_COLUMNS
from headrace.model.scalars import Scalar, escape_braces
from headrace.schema.types import DataType
from headrace.sql.query.expressions.functions import refused_functions
from headrace.sql.query.expressions.scopes import Scope, Target, Unknown, field_of
from headrace.sql.query.expressions.special_times import special_times
from headrace.sql.query.expressions.windows import misplaced_window, read_edge
from headrace.sql.query.reading.cast_types import OTHER_TYPES, SAME_TYPES, SPARK_TYPES
from headrace.sql.query.reading.syntax import AggregateCall, Kind, holds, span_of
from headrace.sql.query.reading.trees import Tree, is_path, parts_of, path_of, strip_parentheses
from headrace.sql.text import (
    Hole,
    Refused,
    TooMany,
    identifier,
    plain_name,
    quoted_name,
    render,
    word,
    words,
)

__all__ = [
    "GROUPING_FUNCTIONS",
    "NO_SETS",
    "Expressions",
    "Rows",
    "check_functions",
    "name_of",
    "quoted_column",
    "quotes_of_text",
    "refuse_null",
]

_UNITS = words("year quarter month week day dayofyear hour minute second millisecond microsecond")
#: Functions whose first argument of three is the name of a unit.
_UNIT_FUNCTIONS = words("date_add date_diff dateadd datediff timestampadd timestampdiff")


#: Functions of functions.
_TAKE_LAMBDAS = words(
    "aggregate array_sort exists filter forall map_filter map_zip_with reduce transform "
    "transform_keys transform_values zip_with"
)
#: What tells which keys a grouping set leaves out.
GROUPING_FUNCTIONS = ("grouping", "grouping_id")
NO_SETS = (
    "{name}() tells which columns a grouping set leaves out, and there is none; write GROUP BY "
    "ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a, b), (a), ())"
)


class Rows(Protocol):
    """The rows of an aggregate: which of their columns stand for what; None: none does."""

    def column_of_node(self, node: exp.Expr) -> str | None:
        """Return the column that a node is, a path only if it is the name of an output."""

    def column_of_path(self, scalar: Scalar) -> str | None:
        """Return the column that a path is."""


@dataclass
class Expressions:
    """Binds the expressions of one SELECT to its scope."""

    tree: Tree
    scope: Scope

    def bind(self, node: exp.Expr, rows: Rows | None = None) -> Scalar:
        """Return an expression over the columns of the scope, or over those of an aggregate's rows.

        Refused: a name is not known, or stands for none of the rows' columns.
        """
        self._refuse_forms(node)
        binding = _Binding(self.tree, self.scope, rows)
        return binding.bind(strip_parentheses(node))

    def type_of(self, node: exp.Expr) -> DataType | None:
        """Return the type of a column or of a part of one; None: Spark will tell."""
        inner = strip_parentheses(node)
        if isinstance(inner, exp.Bracket):
            whole = self.type_of(inner.this)
            is_nested = whole is not None and whole.kind in ("ARRAY", "MAP")
            return whole.parts[-1] if is_nested and whole is not None else None
        if not is_path(inner):
            return self.type_of_field(inner) if isinstance(inner, exp.Dot) else None
        target = self.scope.find([part.name for part in path_of(inner)])
        return target.type if isinstance(target, Target) else None

    def known_type_of(self, node: exp.Expr) -> DataType | None:
        """Return the same; what is wrong with a column is said elsewhere."""
        try:
            return self.type_of(node)
        except Refused:
            return None

    def type_of_field(self, node: exp.Dot) -> DataType | None:
        """Return the type of a field of what is no path, such as items[0]. Refused: it has none."""
        if not isinstance(node.expression, exp.Identifier):
            return None
        whole = self.type_of(node.this)
        try:
            return field_of(whole, node.expression.name, self.tree.text(node.this))
        except ValueError as error:
            raise self.tree.refuse(node.expression, str(error)) from error

    def _refuse_forms(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Alias | exp.Aliases | exp.Star):
            raise self.tree.refuse(
                node, "one expression without a name is expected here; check its syntax"
            )
        if not holds(node, Kind.ODD):
            return
        # The arguments of an aggregate are expressions of their own.
        for each in node.walk(prune=lambda each: isinstance(each, AggregateCall)):
            if isinstance(each, exp.Placeholder | exp.Parameter | exp.SessionParameter):
                raise self.tree.refuse(
                    node, "parameters are not supported; write the value into the definition"
                )
            if isinstance(each, exp.Query | exp.Command | exp.QueryTransform):
                raise self.tree.refuse(node, "only expressions are allowed here, not statements")
            if isinstance(each, exp.JSONExtract | exp.JSONExtractScalar):
                raise self.tree.refuse(
                    self.tree.after(each.this) or each,
                    "a field of a STRUCT is written with a dot: s.field; for one of a JSON text "
                    "write get_json_object with its path, such as '$.field'",
                )
            if isinstance(each, exp.PropertyEQ):
                raise self.tree.refuse(
                    each,
                    "names and keys are arguments of their own here: named_struct('a', x) and "
                    "map('a', x)",
                )
            if isinstance(each, exp.Lambda) and not self._takes_lambda(each.parent):
                raise self.tree.refuse(
                    self.tree.after(each.expressions[0]) or each,
                    "-> makes a lambda, which is not allowed here; a field is written with a dot: "
                    "s.field",
                )
            if isinstance(each, exp.Star):
                raise self.tree.refuse(
                    node, "* is not allowed within an expression; name the columns"
                )

    def _takes_lambda(self, call: exp.Expr | None) -> bool:
        return call is not None and self.tree.call_name(call) in _TAKE_LAMBDAS


def check_functions(
    tree: Tree,
    scope: Scope,
    node: exp.Expr,
    *,
    may_be_window: bool = False,
    stays_text: bool = True,
) -> None:
    """Refuse what no expression of a view may use; an output of groups may be their window.

    `stays_text` says whether a text is one to what reads the expression, too.
    """
    tokens = tree.tokens_of(node)
    problems = refused_functions(tree.source, tokens, scope.columns)
    misplaced = misplaced_window(tree, node, may_be_output=may_be_window)
    if misplaced is not None:
        problems += misplaced.problems
    type_of = Expressions(tree, scope).known_type_of
    problems += special_times(tree, type_of, node, stays_text=stays_text)
    if problems:
        raise Refused(*problems)
    for token in tokens:
        if quoted_column(tree, scope, token) is not None:
            tree.warnings.append(tree.problem(token, quotes_of_text(tree, scope, token)))


def quoted_column(tree: Tree, scope: Scope, token: Token) -> str | None:
    """Return the column that a text in double quotes spells, as other engines write names."""
    is_quoted = token.token_type == TokenType.STRING and tree.source.text[token.start] == '"'
    return scope.columns.get(str(token.text).lower()) if is_quoted else None


def quotes_of_text(tree: Tree, scope: Scope, token: Token) -> str:
    """Return what to say about such a text."""
    column = quoted_column(tree, scope, token) or ""
    quoted = quoted_name(column)
    plain = "" if identifier(column) == quoted else f"{column} or "
    return f'"{token.text}" is a text, not the column; write {plain}{quoted}'


class _Binding:
    """One expression on its way to a scalar.

    Long chains of operators make deep trees, so no method calls itself.
    """

    def __init__(self, tree: Tree, scope: Scope, rows: Rows | None) -> None:
        self.tree = tree
        self.scope = scope
        self.rows = rows
        self.refs: list[str] = []
        self.holes: dict[int, Hole] = {}
        self.names: dict[int, str] = {}
        self.problems: list[Problem] = []
        self.lambdas: list[exp.Lambda] = []
        self.variables: set[int] = set()  # of lambdas, in another case, which are no columns

    def bind(self, root: exp.Expr) -> Scalar:
        self.lambdas = [*root.find_all(exp.Lambda)] if holds(root, Kind.LAMBDA) else []
        self.variables = {
            id(column)
            for each in self.lambdas
            for column in each.find_all(exp.Column)
            if column.parts[0].name.lower() in _variables(each)
        }
        waiting = [root]
        found: list[tuple[int, int, str]] = []
        while waiting:
            node = waiting.pop()
            try:
                column = self._column(node)
            except TooMany:
                raise
            except Refused as refused:
                self.problems += refused.problems
                continue
            if column is not None:
                found.append(column)
            elif not is_path(node):
                waiting += reversed(parts_of(node))
        if self.problems:
            raise Refused(*sorted(self.problems, key=lambda problem: problem.location))
        for first, last, name in sorted(found):
            if name not in self.refs:
                self.refs.append(name)
            self.holes[first] = Hole(last, f"{{{self.refs.index(name)}}}")
        self._rename_variables()
        begin, end = span_of(root)
        names = {
            at - begin: self.names.get(at) or self.tree.names[at]
            for at in range(begin, end + 1)
            if at in self.names or at in self.tree.names
        }
        holes = {at - begin: Hole(hole.last - begin, hole.text) for at, hole in self.holes.items()}
        text = render(self.tree.source, self.tree.tokens[begin : end + 1], names, holes)
        return Scalar(text, tuple(self.refs))

    def _column(self, node: exp.Expr) -> tuple[int, int, str] | None:
        """Return which tokens of a node are which column; None: it is none as a whole."""
        first, last = span_of(node)
        if is_path(node) and (first in self.names or self._is_variable(node)):  # or a unit
            return None
        name = None if self.rows is None else self.rows.column_of_node(node)
        if name is not None:
            return first, last, name
        called = self.tree.call_name(node) if isinstance(node, exp.Anonymous) else None
        if called == "watermark":
            self._refuse_timeless(node)
            return first, last, WATERMARK
        if called in GROUPING_FUNCTIONS:
            raise self.tree.refuse(node, NO_SETS.format(name=called))
        if called is not None and called.endswith(("_start", "_end", "_rowtime")):
            edge = read_edge(Expressions(self.tree, self.scope), node)
            if edge is not None:
                raise self.tree.refuse(
                    node, f"{called}() is over groups; add GROUP BY {called.split('_')[0]}(...)"
                )
        if called == "window_time":
            return first, last, self._window_time(node)
        if called in _UNIT_FUNCTIONS and len(node.expressions) == 3:
            self._name_unit(node.expressions[0])
        if isinstance(node, exp.Array | exp.Bracket):
            self._read_brackets(node)
        if isinstance(node, exp.DataType):
            self._read_type(node)
        if is_path(node):
            return self._path(node)
        if isinstance(node, exp.Dot):
            Expressions(self.tree, self.scope).type_of_field(node)
        return None

    def _read_type(self, node: exp.DataType) -> None:
        """Take the type of a cast as Spark calls it. Refused: there is no such type."""
        first, last = span_of(node)
        before = self.tree.tokens[first - 1]
        # `1L` is three tokens over the same two characters, and the second is `::`.
        is_real = before.start < self.tree.tokens[first].start
        is_cast = is_real and (word(before) == "AS" or before.text == "::")
        if not (is_cast or isinstance(node.parent, exp.DataType | exp.ColumnDef)):
            return  # sqlglot makes it up for the units of an interval, too
        written = word(self.tree.tokens[first])
        has_length = last > first and self.tree.tokens[first + 1].text == "("
        if written == "VARCHAR" and not has_length:
            self.holes[first] = Hole(first, "string")
        elif written in SAME_TYPES:
            self.holes[first] = Hole(last, SAME_TYPES[written])
        elif written == "TIMESTAMP" and has_length:
            self.holes[first] = Hole(last, "timestamp")
        elif written not in SPARK_TYPES and written:
            hint = OTHER_TYPES.get(written)
            hint = closest(written, SPARK_TYPES) if hint is None else f"; {hint}"
            raise self.tree.refuse(node, f"there is no type {written}{hint}")

    def _read_brackets(self, node: exp.Expr) -> None:
        """Take ARRAY[...] and MAP[...], as other engines write them, for array(...) and map(...).

        Refused: brackets that mean neither those nor one element.
        """
        first, last = span_of(node)
        tokens = self.tree.tokens
        if isinstance(node, exp.Array):
            inside = self.tree.source.slice(tokens[first : last + 1])[1:-1][:60]
            raise self.tree.refuse(node, f"an array is written array({inside})")
        # A variable of a lambda is no column, unless it is written in another case.
        is_word = isinstance(node.this, exp.Column) and not self._is_variable(node.this)
        maker = word(tokens[first]) if is_word and span_of(node.this) == (first, first) else ""
        is_made = maker == "ARRAY" or (maker == "MAP" and len(node.expressions) != 1)
        if is_made and maker.lower() not in self.scope.columns:
            self.names[first], self.names[first + 1], self.names[last] = maker.lower(), "(", ")"
        elif len(node.expressions) != 1:
            raise self.tree.refuse(
                node.expressions[1] if node.expressions else node,
                "one index or key is expected between [ and ], such as items[0]",
            )

    def _is_variable(self, node: exp.Expr) -> bool:
        while isinstance(node, exp.Dot):
            node = node.this
        return id(node) in self.variables

    def _rename_variables(self) -> None:
        """Give variables of lambdas names that no column has, where columns stand beside them.

        Spark would take a column for the variable of the same name. Over a query, the column may
        be one of those that this is computed from.
        """
        if not self.lambdas or not self.holes:
            return
        relation = self.scope.relation
        columns = {*self.scope.columns, *(each.name.lower() for each in relation.own)}
        starts = sorted(self.holes)
        covered = {at for first in starts for at in range(first, self.holes[first].last + 1)}
        for node in self.lambdas:
            begin, end = span_of(node)
            nearest = bisect_left(starts, begin)
            if nearest == len(starts) or starts[nearest] > end:
                continue
            names = {name for name in _variables(node) if name in columns or not relation.own}
            for each in node.find_all(exp.Identifier) if names else ():
                at = span_of(each)[0]
                is_field = isinstance(each.parent, exp.Dot) and each.arg_key == "expression"
                is_part = isinstance(each.parent, exp.Column) and each is not each.parent.parts[0]
                if each.name.lower() in names and not (is_field or is_part or at in covered):
                    self.names[at] = plain_name(f"_variable_{each.name.lower()}")

    def _path(self, node: exp.Expr) -> tuple[int, int, str] | None:
        parts = path_of(node)
        first = span_of(parts[0])[0]
        target = self.scope.find([part.name for part in parts])
        if target is None:
            return None
        if isinstance(target, Unknown):
            raise self.tree.refuse(parts[target.name], target.message)
        name, used = target.column, 0
        is_edge = self.scope.has_window and name in WINDOW_COLUMNS
        if self.rows is not None and not is_edge:
            name, used = self._column_of_rows(parts[target.names - 1], target)
        for part, field in zip(parts[target.names + used :], target.fields[used:], strict=True):
            self.names[span_of(part)[0]] = plain_name(field)
        return first, span_of(parts[target.names + used - 1])[1], name

    def _column_of_rows(self, part: exp.Expr, target: Target) -> tuple[str, int]:
        """Return the rows' column for the longest path that is one, and how many fields that is."""
        assert self.rows is not None
        for used in range(len(target.fields), -1, -1):
            fields = (escape_braces(plain_name(field)) for field in target.fields[:used])
            text = ".".join(["{0}", *fields])
            name = self.rows.column_of_path(Scalar(text, (target.column,)))
            if name is not None:
                return name, used
        # What a generator or a window makes has a name that is not the query's own.
        shown = part.name if target.column.startswith("_") else target.column
        raise self.tree.refuse(
            part,
            f"{shown} is neither grouped nor aggregated; add it to GROUP BY, or write max({shown})",
        )

    def _name_unit(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Column) and node.name.lower() in _UNITS and not node.table:
            self.names[span_of(node)[0]] = node.name.lower()

    def _refuse_timeless(self, node: exp.Expr) -> None:
        if self.rows is not None:
            raise self.tree.refuse(
                node,
                "watermark() belongs to a single record, and a row has many records; write "
                "max(watermark()), or look at _closed when you read the view",
            )
        relation = self.scope.relation
        if relation.event_time is None:
            raise self.tree.refuse(
                node,
                f"watermark() needs the event time of {relation.name}, which has none; "
                f"{relation.timeless}",
            )

    def _window_time(self, node: exp.Expr) -> str:
        if [token.text.lower() for token in self.tree.tokens_of(node)[2:-1]] != ["window"]:
            raise self.tree.refuse(
                node, "window_time() takes the view's window: window_time(window)"
            )
        if not self.scope.has_window:
            unknown = self.scope.find(["window", "time"])
            assert isinstance(unknown, Unknown)
            raise self.tree.refuse(node, unknown.message)
        return WINDOW_COLUMNS[2]


def _variables(node: exp.Lambda) -> set[str]:
    """Return the names of a lambda's variables, in lower case."""
    return {each.name.lower() for each in node.expressions}


def refuse_null(tree: Tree, node: exp.Expr) -> None:
    """Refuse a bare NULL as a column: it has no type."""
    if isinstance(strip_parentheses(node), exp.Null):
        raise tree.refuse(node, "NULL alone has no type; write CAST(NULL AS STRING)")


def name_of(tree: Tree, node: exp.Expr) -> str | None:
    """Return the name if a node is one bare or quoted name and nothing else."""
    tokens: tuple[Token, ...] = tree.tokens_of(node)
    return str(tokens[0].text) if len(tokens) == 1 and isinstance(node, exp.Column) else None
