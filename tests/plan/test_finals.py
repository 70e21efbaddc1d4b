"""Expressions over merged aggregates mean in the store what they mean in Spark, or are refused.

Method: the same expressions over the same rows, extreme ones among them, are asked of Spark and,
translated, of DuckDB; every pair of types is among them. What is refused is told in user's words.
"""

import math
import random
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from headrace.engine.gears.probing import _without_sharing, try_all
from headrace.engine.spark.session import start_spark
from headrace.plan.finals import Names, to_term, typed_parts
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.tables.terms import term_text

COLUMNS = {
    "tiny": "TINYINT",
    "big": "BIGINT",
    "narrow": "FLOAT",
    "wide": "DOUBLE",
    "money": "DECIMAL(22,2)",
    "word": "STRING",
    "flag": "BOOLEAN",
    "day": "DATE",
    "moment": "TIMESTAMP",
}
NUMBERS = list(COLUMNS)[:5]
INFINITY, NAN = math.inf, math.nan
ROWS = [
    (5, 5_000_000_000, 0.1, 0.1, Decimal("12.34"), "b", True, "2024-01-31", "2024-01-31T12:00Z"),
    (127, 2**63 - 1, 2.0**24, 1e308, Decimal("9" * 20), "", False, "0001-01-01", "2024-01-01T00Z"),
    (0, 0, -0.0, -0.0, Decimal(0), "ab", True, "9999-12-31", "1969-12-31T23:59:59.999999Z"),
    (None,) * 9,
    (-128, -(2**63), NAN, INFINITY, Decimal("-0.01"), "ä", None, "1969-12-31", "9999-12-31T00Z"),
    (1, 1, -INFINITY, NAN, Decimal(1), "a", False, "2024-02-01", "2024-01-31T12:00:00.000005Z"),
]
EXPRESSIONS = [
    *(f"{a} {sign} {b}" for a in NUMBERS for b in NUMBERS if a <= b for sign in "+*<"),
    *(f"coalesce({a}, {b})" for a in NUMBERS for b in NUMBERS if a < b),
    *(f"{a} {sign} {b}" for a in NUMBERS for b in ("100", "0.1", "1e3") for sign in "*>"),
    *(text.format(a) for a in NUMBERS for text in ("-{}", "abs({})", "CAST({} AS DOUBLE)")),
    *("tiny / big", "big / tiny", "narrow / tiny", "wide / narrow", "big / wide", "money / wide"),
    *(f"{a} IN (1, 2.5) OR {a} BETWEEN 0 AND 99 OR {a} <=> NULL" for a in NUMBERS),
    "CASE big WHEN 1 THEN tiny WHEN NULL THEN narrow ELSE 3.5 END",
    "CASE if(flag, big, 1) WHEN 1 THEN 2 ELSE if(flag, tiny, wide) END",
    # Spark rounds to FLOAT, and refuses what TINYINT cannot hold, at every step.
    *("narrow + narrow + narrow", "narrow + narrow > 0.2", "(tiny + tiny) * 2", "-(-tiny) > 0"),
    *("tiny / (big - big)", "CAST(NULL AS DOUBLE) / 0", "wide / CAST(NULL AS DOUBLE)"),
    *("8 / 2 / 2", "8 / (2 / 4)", "1 + 1 / 4", "CASE WHEN tiny = 0 THEN 1 ELSE 1 / tiny END"),
    *("big + 2L", "wide * 1.5D", "money > 1.50BD", "tiny + 1S", "big = -1L"),
    *("word > 'a'", "word IN ('b', 'ä') AND NOT flag", "coalesce(word, 'x')", "nullif(word, '')"),
    *("if(flag, word, NULL)", "flag IS TRUE", "flag <=> (tiny > 0)", "word IS NULL OR flag"),
    *("moment > TIMESTAMP '2024-01-01'", "moment = TIMESTAMP '2024-01-31T13:00:00.000005+01:00'"),
    *("moment > '2024-01-01 00:00:00'", "'5' < big", "coalesce(day, '2024-01-01')"),
    *("day = DATE '2024-01-31'", "nullif(day, DATE '9999-12-31')", "day <= day"),
]


def nested(chance: random.Random, depth: int, *, truth: bool = False) -> str:
    """Return a random expression over numbers, its parts in parentheses or not.

    It is never a constant: Spark cannot hand over a struct that is null with a field that never is.
    """

    def inner(*, truth: bool = False) -> str:
        text = nested(chance, depth - 1, truth=truth)
        return f"({text})" if chance.random() < 0.7 else text

    if truth:
        if depth == 0:
            return chance.choice(("flag", "tiny > 0", "big <> 5", "wide <= 1"))
        sign = chance.choice(("AND", "OR", "NOT", "<", "="))
        if sign == "NOT":
            return f"NOT ({nested(chance, depth - 1, truth=True)})"
        if sign.isalpha():  # over what never fails: neither engine promises to ask one side only
            return " ".join([nested(chance, 0, truth=True), sign, nested(chance, 0, truth=True)])
        return f"{inner()} {sign} {inner()}"
    if depth == 0:
        return chance.choice(("tiny", "narrow", "wide", "CAST(big AS DOUBLE)", "100 - tiny"))
    match chance.randrange(6):
        case 0:
            return f"CASE WHEN {inner(truth=True)} THEN {inner()} ELSE {inner()} END"
        case 1:
            return f"if({inner(truth=True)}, {inner()}, {inner()})"
        case 2:
            return f"-({nested(chance, depth - 1)})"
    return f"{inner()} {chance.choice('+-*/')} {inner()}"


# What is within what must not show in the text: 100 - (tiny - 1) is not 100 - tiny - 1.
_CHANCE = random.Random(12)
EXPRESSIONS += [nested(_CHANCE, 1 + number % 3, truth=number % 4 == 0) for number in range(120)]


#: What the store raises for overflow, for casts and for a division by zero. No binder's error.
FAILURES = (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException)


def names(types: dict[str, DataType], **written: str) -> Names:
    return Names({name: parse_type(type) for name, type in COLUMNS.items()}, written, types)


def store_expression(expression: str, given: Names) -> str:
    return term_text(to_term(expression, given), {name: name for name in COLUMNS})


def assumed(expression: str) -> dict[str, DataType]:
    """Return types as Spark would tell them, as far as these tests need it."""
    known = COLUMNS | {"day - day": "INT", "money / money": "DECIMAL(38,6)"}
    types = {}
    for text in typed_parts([expression]):
        kind = known.get(text, "BOOLEAN" if {">", "IS"} & set(text.split()) else "DOUBLE")
        types[text] = parse_type("STRING" if text.startswith("'") else kind)
    return types


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return one == other


@pytest.mark.spark
def test_the_store_gives_sparks_answer() -> None:
    schema = pa.schema([(name, parse_type(type).arrow) for name, type in COLUMNS.items()])
    values = [
        row if row[-1] is None
        else (*row[:-2], date.fromisoformat(row[-2]), datetime.fromisoformat(row[-1]))
        for row in ROWS
    ]  # fmt: skip
    rows = pa.Table.from_pylist(
        [dict(zip(COLUMNS, row, strict=True)) for row in values], schema=schema
    ).append_column("row", pa.array(range(len(ROWS))))
    spark = start_spark()
    with _without_sharing(spark):
        given = spark.createDataFrame(rows).coalesce(1)
        parts = typed_parts(EXPRESSIONS)
        found = given.selectExpr(*(f"{text} AS p{i}" for i, text in enumerate(parts))).schema
        types = {
            text: parse_type(field.dataType.simpleString())
            for text, field in zip(parts, found.fields, strict=True)
        }
        tried = (try_all(spark, {"v": text}).alias(f"t{i}") for i, text in enumerate(EXPRESSIONS))
        sparks = given.select("row", *tried).toArrow().sort_by("row").to_pylist()
    differences = []
    with duckdb.connect() as store:
        store.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{name} {parse_type(type).duckdb}" for name, type in COLUMNS.items())
        store.execute(f'CREATE TABLE given ({columns}, "row" BIGINT)')
        store.register("rows", rows)
        store.execute("INSERT INTO given FROM rows")
        for at, expression in enumerate(EXPRESSIONS):
            [whole] = typed_parts([expression])[:1]
            text = f"CAST({store_expression(expression, names(types))} AS {types[whole].duckdb})"
            for row in sparks:
                wanted = "fails" if row[f"t{at}"] is None else row[f"t{at}"]["v"]
                try:
                    asked = store.sql(f'SELECT {text} AS v FROM given WHERE "row" = {row["row"]}')
                    value = asked.to_arrow_table()["v"][0].as_py()
                except FAILURES:
                    value = "fails"
                if not same(wanted, value):
                    differences.append((expression, ROWS[row["row"]], wanted, value, text))
    assert differences == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("big", "(big)"),
        ("tiny", "(tiny)"),
        ("big + wide * 2", "(big) + ((wide) * 2)"),
        ("(CAST(big AS DOUBLE) + 1) * 2", "((CAST((big) AS DOUBLE)) + 1) * 2"),
        ("CAST(big AS DOUBLE)", "CAST((big) AS DOUBLE)"),
        ("big > 1 AND word IS NULL", "((big) > 1) AND ((word) IS NULL)"),
        ("narrow > 0.1", "CAST((narrow) AS DOUBLE) > 0.1"),
        (
            "wide / big",
            "CASE WHEN ((big)) = 0 AND ((wide)) IS NOT NULL THEN error('division by zero') "
            "ELSE CAST(((wide)) AS DOUBLE) / CAST(((big)) AS DOUBLE) END",
        ),
    ],
)
def test_an_expression_becomes_sql_of_the_store(expression: str, expected: str) -> None:
    assert store_expression(expression, names(assumed(expression))) == expected


@pytest.mark.parametrize(
    "type", ["STRING", "INT", "BIGINT", "FLOAT", "DECIMAL(10, 2)", "DATE", "TIMESTAMP"]
)
def test_a_cast_that_prints_or_rounds_differently_is_refused(type: str) -> None:
    with pytest.raises(ValueError, match="only a cast to DOUBLE means the same") as error:
        store_expression(f"CAST(big AS {type})", names(assumed(f"CAST(big AS {type})")))
    assert "cast when you read the view instead" in str(error.value)


@pytest.mark.parametrize(
    "literal",
    [
        *("DATE '2024-1-1'", "DATE '2024-02-30'", "TIMESTAMP '2024'", "CAST('x' AS DOUBLE)"),
        *("CAST(2.5 AS INT)", "CAST(1.55 AS DECIMAL(2, 1))", "CAST(5 AS STRING)", "200Y", "1.5F"),
    ],
)
def test_a_literal_that_may_be_read_in_two_ways_is_refused(literal: str) -> None:
    with pytest.raises(ValueError, match="over aggregates only"):
        store_expression(f"big = {literal}", names(assumed(f"big = {literal}")))


@pytest.mark.parametrize(
    ("expression", "refusal"),
    [
        ("word > 5", "max(j) > 5: max(j) is STRING and 5 is DOUBLE, and over aggregates only"),
        ("word + 1", "max(j) + 1: max(j) is STRING, and over aggregates only numbers are computed"),
        ("abs(word)", "ABS(max(j)): max(j) is STRING"),
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
        ("CAST(moment AS DOUBLE)", "CAST(max(ts) AS DOUBLE): max(ts) is TIMESTAMP, and over aggre"),
        ("money / money", "sum(x) / sum(x) divides decimals, which rounds differently everywhere;"),
    ],
)
def test_what_the_store_would_convert_otherwise_is_refused(expression: str, refusal: str) -> None:
    given = names(assumed(expression), word="max(j)", moment="max(ts)", money="sum(x)")
    with pytest.raises(ValueError) as error:  # noqa: PT011 - its text is what matters
        store_expression(expression, given)
    assert refusal in str(error.value)
