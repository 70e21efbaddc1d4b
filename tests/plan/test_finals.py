"""Expressions over merged aggregates mean in the store what they mean in Spark, or are refused.

Method: terms and their SQL written out, and what is refused, which is told in the user's words.
tests/plan/test_final_functions.py asks Spark and the store for the values.
"""

import pytest

from headrace.plan.finals import Names, to_term, typed_parts
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.expressions.terms import term_text

COLUMNS = {
    "tiny": "TINYINT",
    "big": "BIGINT",
    "narrow": "FLOAT",
    "wide": "DOUBLE",
    "money": "DECIMAL(22,2)",
    "huge": "DECIMAL(38,10)",
    "word": "STRING",
    "flag": "BOOLEAN",
    "day": "DATE",
    "moment": "TIMESTAMP",
}


def names(types: dict[str, DataType], **written: str) -> Names:
    return Names({name: parse_type(type) for name, type in COLUMNS.items()}, written, types)


def store_expression(expression: str, given: Names) -> str:
    return term_text(to_term(expression, given), {name: name for name in COLUMNS})


def assumed(expression: str) -> dict[str, DataType]:
    """Return types as Spark would tell them, as far as these tests need it."""
    known = COLUMNS | {"day - day": "INT", "money + huge": "DECIMAL(38,9)"}
    known |= {"-huge": "DECIMAL(38,10)", "moment - INTERVAL big DAY": "TIMESTAMP"}
    types = {}
    for text in typed_parts([expression]):
        kind = known.get(text, "BOOLEAN" if {">", "IS"} & set(text.split()) else "DOUBLE")
        is_text = text.startswith(("'", "upper", "date_format", "word ||"))
        types[text] = parse_type("STRING" if is_text else kind)
    return types


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("big", "(big)"),
        ("tiny", "(tiny)"),
        ("big + wide * 2", "(CAST((big) AS DOUBLE)) + ((wide) * 2)"),
        ("(CAST(big AS DOUBLE) + 1) * 2", "((CAST((big) AS DOUBLE)) + 1) * 2"),
        ("CAST(big AS DOUBLE)", "CAST((big) AS DOUBLE)"),
        ("big > 1 AND word IS NULL", "((big) > 1) AND ((word) IS NULL)"),
        ("narrow > 0.1", "CAST((narrow) AS DOUBLE) > 0.1"),
        (
            "wide / wide",
            "CASE WHEN ((wide)) <> 0 THEN ((wide)) / ((wide)) END",
        ),
    ],
)
def test_an_expression_becomes_sql_of_the_store(expression: str, expected: str) -> None:
    assert store_expression(expression, names(assumed(expression))) == expected


@pytest.mark.parametrize(
    "cast",
    [
        *("CAST(wide AS STRING)", "CAST(word AS BIGINT)", "CAST(word AS DATE)"),
        *("CAST(big AS TIMESTAMP)", "CAST(day AS BIGINT)", "TRY_CAST(big AS INT)"),
    ],
)
def test_a_cast_that_prints_or_reads_differently_is_refused(cast: str) -> None:
    known = {cast: parse_type(cast.split(" AS ")[1].rstrip(")"))}
    with pytest.raises(ValueError, match="over aggregates") as error:
        store_expression(cast, names(known))
    assert "when you read the view" in str(error.value)


@pytest.mark.parametrize(
    "literal",
    ["DATE '2024-1-1'", "DATE '2024-02-30'", "TIMESTAMP '2024'", "CAST('x' AS DOUBLE)"],
)
def test_a_literal_that_may_be_read_in_two_ways_is_refused(literal: str) -> None:
    with pytest.raises(ValueError, match="over aggregates a text is not read as anything else"):
        store_expression(f"big = {literal}", names(assumed(f"big = {literal}")))


@pytest.mark.parametrize(
    ("expression", "refusal"),
    [
        ("word > 5", "max(j) > 5: max(j) is STRING and 5 is DOUBLE, and over aggregates only"),
        ("word + 1", "max(j) + 1: max(j) is STRING, and over aggregates only numbers are computed"),
        ("abs(word)", "abs(max(j)): max(j) is STRING, not a number; compute it when you read"),
        ("-word", "-max(j): max(j) is STRING"),
        ("big / word", "big / max(j): max(j) is STRING"),
        ("coalesce(big, word)", "big is BIGINT and max(j) is STRING"),
        ("CASE WHEN flag THEN big ELSE word END", "big is BIGINT and max(j) is STRING"),
        ("CASE word WHEN 5 THEN 1 END", "max(j) is STRING and 5 is DOUBLE"),
        ("big IN (1, '2.5')", "big is BIGINT and '2.5' is STRING"),
        ("moment > '2024'", "write both alike, such as max(CAST(... AS BIGINT)) > 5 or max("),
        ("moment > day", "max(ts) is TIMESTAMP and day is DATE"),
        ("NOT word", "max(j) is STRING; write a condition"),
        ("CASE WHEN word THEN 1 END", "max(j) is STRING; write a condition"),
        ("round(wide, big)", "round(wide, big): big is not a number from 0 to 18"),
        ("round(wide)[0]", "round(wide) is DOUBLE, not an ARRAY or MAP"),
        ("upper(word)", "upper(max(j)) cannot be computed over aggregates or windows that"),
        ("big | 1 & 2", "write parentheses around big | 1"),
        ("word || big + 1", "write parentheses around big + 1"),
        ("date_format(moment, 'QQQ')", "'QQQ' has letters that are not proven to mean the same"),
        ("date_trunc('eon', moment)", "'eon' is not a unit such as 'hour', 'day' or 'month'"),
        ("moment - INTERVAL big DAY", "this interval is not a literal of one unit; write whole"),
        ("word LIKE word", "max(j) is not a pattern that is written out, without escapes"),
        ("money + huge", "sum(x) + huge: the exact result takes more than 38 digits on the way"),
        ("-huge", "-huge: Spark rounds a DECIMAL(38,10) when it changes the sign"),
    ],
)
def test_what_the_store_would_convert_otherwise_is_refused(expression: str, refusal: str) -> None:
    given = names(assumed(expression), word="max(j)", moment="max(ts)", money="sum(x)")
    with pytest.raises(ValueError) as error:  # noqa: PT011 - its text is what matters
        store_expression(expression, given)
    assert refusal in str(error.value)
