"""Expressions over merged aggregates, as SQL of the store.

They are evaluated when a table is read, so a table at a position is a function of the state at
that position; an expression that fails (a division by zero) fails the read, as in SQL. Allowed is
what means the same in Spark and in the store; a division of decimals does not, and is refused.
"""

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import expressions as exp

from headrace.schema.types import DataType

__all__ = ["divisions", "store_expression"]


def divisions(expression: str) -> list[str]:
    """Return the divisions within an expression as Spark SQL, to ask for their types."""
    tree = sqlglot.parse_one(expression, read="spark")
    return [node.sql(dialect="spark") for node in tree.find_all(exp.Div)]


def store_expression(expression: str, references: Mapping[str, str]) -> str:
    """Return Spark SQL over key and aggregate names as SQL of the store.

    `references` gives the store's SQL for every name. ValueError: a cast that rounds or prints
    differently in the store.
    """
    # What a name stands for is put in as it is: it may be more than sqlglot can write again.
    mark = "__stands_for_"
    while mark in expression:
        mark += "_"
    text = _store_text(expression, {name: f"{mark}{name}" for name in references})
    return re.sub(rf"\b{mark}(\w+)\b", lambda found: references[found[1]], text)


def _store_text(expression: str, references: Mapping[str, str]) -> str:
    tree = sqlglot.parse_one(expression, read="spark")
    return tree.transform(lambda node: _translate(node, references)).sql(dialect="duckdb")


def _translate(node: exp.Expr, references: Mapping[str, str]) -> exp.Expr:
    if isinstance(node, exp.Column):
        return sqlglot.parse_one(f"({references[node.name]})", read="duckdb")
    if isinstance(node, exp.Div):
        # Spark divides integers as DOUBLE and fails on zero, unless there is nothing to divide; the
        # store would answer infinity.
        dividend = _store_text(node.this.sql(dialect="spark"), references)
        divisor = _store_text(node.expression.sql(dialect="spark"), references)
        return sqlglot.parse_one(
            f"CASE WHEN ({divisor}) = 0 AND ({dividend}) IS NOT NULL "
            f"THEN error('division by zero') "
            f"ELSE CAST(({dividend}) AS DOUBLE) / CAST(({divisor}) AS DOUBLE) END",
            read="duckdb",
        )
    if isinstance(node, exp.Cast):
        if not node.to.is_type("double"):
            raise ValueError(
                f"{node.sql(dialect='spark')}: over aggregates only a cast to DOUBLE means the "
                f"same everywhere; cast when you read the view instead"
            )
        # sqlglot takes Spark's CAST for one that gives NULL, as it does without ANSI.
        operand = _store_text(node.this.sql(dialect="spark"), references)
        return exp.Cast(this=sqlglot.parse_one(operand, read="duckdb"), to=node.to)
    return node


def check_division(division: str, type: DataType) -> None:
    """Refuse a division whose answer would be a rounded decimal. ValueError."""
    if type.kind == "DECIMAL":
        raise ValueError(
            f"{division} divides decimals, which rounds differently everywhere; write "
            f"CAST(... AS DOUBLE) / ..., or avg(...)"
        )
