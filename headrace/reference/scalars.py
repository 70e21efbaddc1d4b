"""Scalar Spark SQL, evaluated row by row with DuckDB, for the reference alone.

Promises:
- An expression that fails on a row fails on that row only, and says so as a `Failed` value.
- As in Spark with ANSI on, a division by zero, an overflow and a bad cast fail.
Not promised: the whole of Spark SQL. Where the two languages differ (a cast of a fraction to an
integer rounds here and truncates there; division of decimals; TINYINT, SMALLINT and FLOAT beside
larger numbers) the oracle is not to be asked. Functions that DuckDB computes otherwise under the
same name are refused with NotImplementedError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one

from headrace.model.scalars import Scalar
from headrace.scratch import connect

__all__ = ["Failed", "Scalars", "Values"]

#: Functions of Spark that DuckDB knows under the same name, and means something else by.
_OTHERWISE = (
    exp.AddMonths, exp.ArrayContains, exp.ArraySlice, exp.Ceil, exp.DayOfWeek, exp.Floor, exp.Sign,
    exp.StrToUnix, exp.TsOrDsAdd,
)  # fmt: skip
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
        query = f"SELECT {', '.join(selected)} FROM given"
        try:
            table = self._select(query, rows)
        except duckdb.Error as error:
            return self._evaluate_singly(query, rows, str(error), len(expressions))
        return [Values(column.type, column.to_pylist()) for column in table.columns]

    def _evaluate_singly(self, query: str, rows: pa.Table, reason: str, width: int) -> list[Values]:
        if rows.num_rows == 1:
            return [Values(pa.null(), [Failed(reason)]) for _ in range(width)]
        # The type is the one that the rows which do not fail agree on.
        types = [pa.null()] * width
        values: list[list[object]] = [[] for _ in range(width)]
        for at in range(rows.num_rows):
            try:
                table = self._select(query, rows.slice(at, 1))
            except duckdb.Error as error:
                for column in values:
                    column.append(Failed(str(error)))
            else:
                types = [column.type for column in table.columns]
                for column, found in zip(values, table.columns, strict=True):
                    column += found.to_pylist()
        return [Values(type_, column) for type_, column in zip(types, values, strict=True)]

    def _select(self, query: str, rows: pa.Table) -> pa.Table:
        self._connection.register("given", rows)
        try:
            return self._connection.sql(query).to_arrow_table()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            raise NotImplementedError(f"the reference cannot evaluate {query}: {error}") from error
        finally:
            self._connection.unregister("given")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@lru_cache(maxsize=1024)
def _to_duckdb(expression: str) -> str:
    tree = exp.Paren(this=parse_one(expression, read="spark"))
    # From the leaves up, because a division is replaced by text that holds its operands.
    for node in reversed(list(tree.walk())):
        is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _OTHERWISE_BY_NAME
        if isinstance(node, _OTHERWISE) or is_named:
            raise NotImplementedError(f"the reference does not know {node.sql(dialect='spark')}")
        if isinstance(node, exp.TryCast) and not node.args.get("safe"):
            # sqlglot takes Spark's CAST for one that gives null, as it does without ANSI.
            node.replace(exp.Cast(this=node.this, to=node.args["to"]))
        elif isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
            node.replace(_guarded(node))
    return str(tree.sql(dialect="duckdb", identify=True))


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
