"""Scalar Spark SQL, evaluated row by row with DuckDB, for the reference alone.

Promises:
- An expression that fails on a row fails on that row only, and says so as a `Failed` value.
- As in Spark with ANSI on, a division by zero, an overflow and a bad cast fail.
Not promised: the whole of Spark SQL. Where the two languages differ (a cast of a fraction to an
integer rounds here and truncates there; division of decimals; TINYINT, SMALLINT and FLOAT beside
larger numbers; a TIMESTAMP that `||` and concat take as a text) the oracle is not to be asked.
Functions that DuckDB computes otherwise under the same name are refused with NotImplementedError.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one

from headrace.model.scalars import Scalar, escape_braces
from headrace.schema.codec import UNSENT
from headrace.scratch import connect

__all__ = ["Failed", "Scalars", "Values", "calls_over"]

#: Functions of Spark that DuckDB knows under the same name, and means something else by.
_OTHERWISE = (
    exp.AddMonths, exp.ArrayContains, exp.ArraySlice, exp.Ceil, exp.DateTrunc, exp.DayOfWeek,
    exp.Floor, exp.Sign, exp.StrToUnix, exp.TsOrDsAdd,
)  # fmt: skip
#: What may leave an argument out; what is written as a call and converts, or connects conditions.
_GUARDS = (exp.Case, exp.Coalesce, exp.If, exp.Nvl2)
_NO_CALLS = (exp.Abs, exp.Cast, exp.Connector, exp.Nullif)
_OTHERWISE_BY_NAME = frozenset({"trunc", "weekday"})


@dataclass(frozen=True)
class Failed:
    """What stands for the value where an expression fails; `reason` is DuckDB's sentence."""

    reason: str


@dataclass(frozen=True)
class Values:
    """One expression over all rows: a value or Failed for each, and the type of the values."""

    type: pa.DataType
    values: list[object]


class Scalars:
    """An evaluator, for one thread."""

    def __init__(self) -> None:
        self._connection = connect()

    def evaluate(self, expressions: Sequence[Scalar], rows: pa.Table) -> list[Values]:
        """Return the values of each expression over the rows.

        If one expression fails on a row, all of them are Failed there. NotImplementedError:
        DuckDB does not know the expression at all, so the oracle has no answer.
        """
        selected = [
            f"{_to_duckdb(each.render(_quoted))} AS e{at}" for at, each in enumerate(expressions)
        ]
        if not selected:
            return []
        return self._evaluate(f"SELECT {', '.join(selected)} FROM given", rows, len(expressions))

    def _evaluate(self, query: str, rows: pa.Table, width: int) -> list[Values]:
        try:
            table = self._select(query, rows)
        except duckdb.Error as error:
            return self._evaluate_apart(query, rows, str(error), width)
        return [Values(column.type, column.to_pylist()) for column in table.columns]

    def _evaluate_apart(self, query: str, rows: pa.Table, reason: str, width: int) -> list[Values]:
        """Halve rows on which a query fails until those that it fails on stand alone."""
        if rows.num_rows <= 1:
            return [Values(pa.null(), [Failed(reason)] * rows.num_rows) for _ in range(width)]
        half = rows.num_rows // 2
        found = [
            self._evaluate(query, part, width) for part in (rows.slice(0, half), rows.slice(half))
        ]
        # The type is the one that the rows which do not fail agree on.
        return [
            Values(one.type if other.type == pa.null() else other.type, one.values + other.values)
            for one, other in zip(*found, strict=True)
        ]

    def _select(self, query: str, rows: pa.Table) -> pa.Table:
        self._connection.register("given", rows)
        try:
            return self._connection.sql(query).to_arrow_table()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            raise NotImplementedError(f"the reference cannot evaluate {query}: {error}") from error
        finally:
            self._connection.unregister("given")


def calls_over(scalar: Scalar, columns: Collection[str]) -> list[Scalar]:
    """Return the function calls within an expression that read some of these columns, and no other.

    Of what CASE, IF or COALESCE guards, the guard is a call if a call is in it, and no part of it
    is. Operators, casts, abs and nullif are no calls.
    """
    marks = {f"__ref{at}": name for at, name in enumerate(scalar.refs)}
    text = scalar.render(lambda name: f"`__ref{scalar.refs.index(name)}`")
    found: list[Scalar] = []
    waiting: list[exp.Expr] = [parse_one(text, read="spark")]
    while waiting:
        node = waiting.pop()
        is_guard = isinstance(node, _GUARDS)
        read = {each.name for each in node.find_all(exp.Identifier)} & set(marks)
        is_over = bool(read) and {marks[mark] for mark in read} <= set(columns)
        if is_over and (_is_call(node) or (is_guard and any(map(_is_call, node.walk())))):
            found.append(_scalar(node, marks))
        elif not is_guard:
            waiting += node.iter_expressions()
    return found


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Func) and not isinstance(node, (*_GUARDS, *_NO_CALLS))


def _scalar(node: exp.Expr, marks: Mapping[str, str]) -> Scalar:
    """Return a part of an expression, in which marks stand for columns."""
    refs = list(marks.values())
    text = escape_braces(node.sql(dialect="spark"))
    for at, mark in enumerate(marks):
        text = text.replace(f"`{mark}`", f"{{{at}}}")
    return Scalar(text, tuple(refs)).substitute({})


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@lru_cache(maxsize=1024)
def _to_duckdb(expression: str) -> str:
    tree = exp.Paren(this=parse_one(expression, read="spark"))
    # From the leaves up, because a division is replaced by text that holds its operands.
    for node in reversed(list(tree.walk())):
        is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _OTHERWISE_BY_NAME
        # An array with a null in it is told apart by Spark; that of names has none.
        is_known = isinstance(node, exp.ArrayContains) and node.this.name == UNSENT
        if (isinstance(node, _OTHERWISE) and not is_known) or is_named or _is_otherwise(node):
            raise NotImplementedError(f"the reference does not know {node.sql(dialect='spark')}")
        if isinstance(node, exp.TryCast) and not node.args.get("safe"):
            # sqlglot takes Spark's CAST for one that gives null, as it does without ANSI.
            node.replace(_cast(node))
        elif isinstance(node, exp.Cast) and node.is_type(exp.DataType.Type.TEXT):
            node.replace(_cast(node))
        elif isinstance(node, exp.TsOrDsToDate):
            # As above: to_date(x) gives null only without ANSI.
            node.replace(exp.Cast(this=node.this, to=exp.DataType.build("date")))
        elif isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
            node.replace(_guarded(node))
    return str(tree.sql(dialect="duckdb", identify=True))


def _is_otherwise(node: exp.Expr) -> bool:
    """Whether its arguments mean something else to Spark: patterns of time, groups to put in."""
    if isinstance(node, exp.TsOrDsToDate):
        return node.args.get("format") is not None
    text = node.args.get("replacement") if isinstance(node, exp.RegexpReplace) else None
    return text is not None and re.search(r"[$\\]", text.name) is not None


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a cast that fails on what it cannot read, and that writes a time without its zone."""
    cast = exp.Cast(this=node.this, to=node.args["to"])
    if not cast.is_type(exp.DataType.Type.TEXT):
        return cast
    value = node.this.sql(dialect="duckdb", identify=True)
    return parse_one(
        f"CASE WHEN typeof({value}) = 'TIMESTAMP WITH TIME ZONE' "
        f"THEN replace(CAST({value} AS TEXT), '+00', '') ELSE CAST({value} AS TEXT) END",
        read="duckdb",
    )


def _guarded(node: exp.Binary) -> exp.Expr:
    """Return a division that fails on zero, where DuckDB would answer infinity or null.

    As in Spark, NULL divided by zero is NULL.
    """
    operators: Mapping[type, str] = {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%"}
    dividend, divisor = (
        side.sql(dialect="duckdb", identify=True) for side in (node.this, node.expression)
    )
    return parse_one(
        f"CASE WHEN ({divisor}) = 0 AND ({dividend}) IS NOT NULL THEN error('division by zero') "
        f"ELSE ({dividend}) {operators[type(node)]} ({divisor}) END",
        read="duckdb",
    )
