"""Expressions over merged aggregates mean in the store what they mean in Spark, or are refused.

Method: translated text, and its value when DuckDB evaluates it.
"""

import duckdb
import pytest

from headrace.plan.finals import check_division, divisions, store_expression
from headrace.schema.types import parse_type

REFERENCES = {"a0": "a0_0", "a1": "a1_0", "k0": "k0", "window_start": "window_start"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a0", "(a0_0)"),
        ("a0 + a1 * 2", "(a0_0) + (a1_0) * 2"),
        ("CAST(a0 AS DOUBLE)", "CAST((a0_0) AS DOUBLE)"),
        ("a0 > 1 AND k0 IS NULL", "(a0_0) > 1 AND (k0) IS NULL"),
        (
            "a0 / a1",
            "CASE WHEN ((a1_0)) = 0 AND NOT ((a0_0)) IS NULL THEN ERROR('division by zero') "
            "ELSE CAST(((a0_0)) AS DOUBLE) / CAST(((a1_0)) AS DOUBLE) END",
        ),
    ],
)
def test_an_expression_becomes_sql_of_the_store(expression: str, expected: str) -> None:
    assert store_expression(expression, REFERENCES) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", 3.5),  # Spark divides integers as DOUBLE
        ("-7 / 2", -3.5),
        ("8 / 2 / 2", 2.0),
        ("8 / (2 / 4)", 16.0),
        ("1 + 1 / 4", 1.25),
        ("CAST(NULL AS DOUBLE) / 2", None),
        ("CAST(NULL AS DOUBLE) / 0", None),
        ("0 / CAST(NULL AS DOUBLE)", None),
        ("CASE WHEN 0 = 0 THEN 1 ELSE 1 / 0 END", 1.0),
    ],
)
def test_the_store_gives_sparks_answer(expression: str, expected: object) -> None:
    with duckdb.connect() as connection:
        sql = store_expression(expression, {})
        assert connection.execute(f"SELECT {sql}").fetchall() == [(expected,)]


@pytest.mark.parametrize("expression", ["1 / 0", "1 / (2 - 2)", "1.0 / 0.0"])
def test_a_division_by_zero_fails_the_read(expression: str) -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(duckdb.InvalidInputException, match="division by zero"),
    ):
        connection.execute(f"SELECT {store_expression(expression, {})}").fetchall()


@pytest.mark.parametrize(
    "type", ["STRING", "INT", "BIGINT", "FLOAT", "DECIMAL(10, 2)", "DATE", "TIMESTAMP"]
)
def test_a_cast_that_prints_or_rounds_differently_is_refused(type: str) -> None:
    with pytest.raises(ValueError, match="only a cast to DOUBLE means the same") as error:
        store_expression(f"CAST(a0 AS {type}) + 1", REFERENCES)
    assert "cast when you read the view instead" in str(error.value)


def test_every_division_is_found_to_ask_for_its_type() -> None:
    assert divisions("a0 / (a1 / 2) + 1") == ["a0 / (a1 / 2)", "a1 / 2"]
    assert divisions("a0 + 1") == []


def test_a_division_of_decimals_is_refused() -> None:
    check_division("a / b", parse_type("DOUBLE"))
    with pytest.raises(ValueError, match=r"write CAST\(\.\.\. AS DOUBLE\) / \.\.\., or avg"):
        check_division("a / b", parse_type("DECIMAL(10,2)"))
