"""Every function over aggregates means in the store what it means in Spark, on every type it takes.

Method: for each entry of the one table of functions, and each operator, expressions over columns of
every type that it takes are asked of Spark and, as the store's very text, of DuckDB, over rows of
extreme and random values; then functions of functions. Value is compared with value to the last
bit, the sign of zero among it, and a row fails in both or in neither. The store tells which rows
fail, and raises nothing, also where all rows are asked together.
"""

import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.probing import _without_sharing, try_all
from headrace.engine.spark.session import start_spark
from headrace.model.functions import FUNCTIONS, Function
from headrace.model.operators import Operator
from headrace.plan.finals import Names, to_term, typed_parts
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.expressions.failing import Asked, ask
from headrace.store.duckdb.expressions.failing import Names as StoreNames
from headrace.store.duckdb.expressions.functions import FUNCTIONS as SAID
from tests.plan.values import COLUMNS, make_rows

ROWS = 32
FAILS = "fails"
_FIVE = ("tiny", "big", "narrow", "wide", "money")
_INTEGERS = ("tiny", "whole", "big", "other")
_NUMBERS = (*_INTEGERS, "narrow", "wide", "broad", "money", "rate", "huge", "3", "2.5")
_TIMES = ("day", "moment")
_ALIKE = (
    ("tiny", "big"), ("big", "other"), ("narrow", "wide"), ("wide", "broad"), ("big", "wide"),
    ("money", "rate"), ("money", "big"), ("word", "part"), ("word", "'x'"), ("day", "date2"),
    ("moment", "time2"), ("flag", "NOT flag"), ("NULL", "whole"), ("whole", "7"), ("huge", "money"),
)  # fmt: skip
#: What stands for each word of `Function.takes`.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "number": _NUMBERS,
    "integer": ("few", "2", "-1"),
    "fraction": ("narrow", "wide", "broad"),
    "text": ("word", "part", "'a'"),
    "truth": ("flag", "big > 0"),
    "date": ("day", "date2"),
    "moment": ("moment", "time2"),
    "time": _TIMES,
    "list": ("numbers", "fractions", "words"),
    "texts": ("words",),
    "map": ("counts",),
    "group": ("numbers", "counts", "words"),
    "any": (*_NUMBERS[:4], "word", "flag", "day", "numbers"),
    "modulus": ("1", "7"),
    "shown": ("word", "part", "big", "money", "flag", "day", "moment", "'-'"),
    "places": ("0", "1", "2", "5"),
    "bits": ("256",),
    "separator": ("','", "''"),
    "unit": tuple(f"'{unit}'" for unit in (
        "year", "YYYY", "quarter", "month", "mon", "week", "day", "dd", "hour", "minute", "second",
        "millisecond", "microsecond")),
    "pattern": tuple(f"'{pattern}'" for pattern in (
        "yyyy-MM-dd HH:mm:ss", "HH:mm", "yy/M/d H:m:s.SSS", "EEEE, dd MMMM", "EEE MMM hh:mm a",
        "h a", "yyyyMMdd", "SSSSSS", "DDD", "yyyy-MM-dd\\'T\\'HH:mm:ssXXX", "E EE", "% yyyy d.")),
    "true": ("true", "false"),
}  # fmt: skip
#: Places where other arguments are needed than the word alone says.
_OWN = {
    "element_at": [("numbers", "few"), ("words", "-1"), ("counts", "word"), ("top", "1")],
    "try_element_at": [("numbers", "few"), ("words", "-1"), ("counts", "word")],
    "[]": [("numbers", "few"), ("words", "0"), ("counts", "word"), ("counts", "'a'")],
    "array_contains": [("numbers", "big"), ("words", "word"), ("fractions", "wide")],
    "slice": [("numbers", "few", "few"), ("words", "-2", "2"), ("numbers", "1", "few")],
    "map": [("'a'", "big"), ("'a'", "big", "'b'", "whole"), ("'ä'", "wide", "''", "2.5D")],
    "named_struct": [("'a'", "tiny", "'B'", "narrow"), ("'n'", "numbers", "'d'", "day")],
    "array": [("big", "3"), ("tiny", "whole", "big"), ("word", "part"), ("wide", "narrow", "big")],
    "timestamp_seconds": [("whole",), ("few",), ("tiny",)],
    "timestamp_millis": [("whole",), ("few",)],
    "timestamp_micros": [("whole",), ("few",)],
    "pmod": [(each, "7") for each in _INTEGERS],
    "&": [*itertools.product(_INTEGERS, _INTEGERS)],
    "|": [*itertools.product(_INTEGERS, _INTEGERS)],
    "^": [*itertools.product(_INTEGERS, _INTEGERS)],
    "~": [(each,) for each in _INTEGERS],
    "nvl2": [("big", *pair) for pair in _ALIKE],
    "if": [("flag", *pair) for pair in _ALIKE],
    "like": [("word", "'a%'"), ("word", "'_'"), ("part", "'%b_'"), ("word", "''")],
    "size": [("numbers",), ("counts",)],
    "date_trunc": [*itertools.product(ARGUMENTS["unit"], _TIMES)],
    "trunc": [*itertools.product(_TIMES, ("'year'", "'MM'", "'week'", "'quarter'"))],
    "date_format": [*itertools.product(_TIMES, ARGUMENTS["pattern"])],
}
_INFIX = {"[]": "{0}[{1}]", "like": "{0} LIKE {1}", "~": "~{0}"}
_INFIX |= {sign: f"{{0}} {sign} {{1}}" for sign in ("&", "|", "^", "DIV")}
_TYPES = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(38,0)",
    "DECIMAL(3,1)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP",
)  # fmt: skip


def calls() -> Iterator[str]:
    """Yield every function over every type that it takes, at every place."""
    chance = random.Random(4)
    done = set()
    for name, function in FUNCTIONS.items():
        if name == "cast":
            continue
        text = _INFIX.get(name, f"{name}({{}})")
        given = choices(name, function, chance)
        # Another name for the same is asked once.
        is_alias = (
            function.operator,
            function.takes,
        ) in done and function.operator != Operator.CAST
        done.add((function.operator, function.takes))
        for arguments in given[:1] if is_alias else given:
            is_call = name not in _INFIX
            yield text.format(", ".join(arguments)) if is_call else text.format(*arguments)


def choices(name: str, function: Function, chance: random.Random) -> list[tuple[str, ...]]:
    if name in _OWN:
        return _OWN[name]
    if name == "DIV":
        return []  # among the operators
    if function.takes[-1] in ("alike", "ordered"):
        return [pair for pair in _ALIKE if "NULL" not in pair or function.takes[-1] == "alike"]
    found: list[tuple[str, ...]] = []
    for count in {function.fewest, min(function.most, len(function.takes) + 1)}:
        given = [ARGUMENTS[function.word(at)] for at in range(count)]
        product = list(itertools.product(*given))
        longest = max(map(len, given))
        # Each value of each place at least once, and some pairs more.
        found += zip(
            *([each[at % len(each)] for at in range(longest)] for each in given), strict=True
        )
        found += chance.sample(product, min(len(product), 3))
    return list(dict.fromkeys(found))


def operations() -> Iterator[str]:
    """Yield operators over every pair of types, and casts between all."""
    for sign in ("+", "-", "*", "/", "%", "DIV", "<", "<=>"):
        pairs = [*itertools.product(_NUMBERS[::2], _NUMBERS[1::2]), ("money", "money")]
        for one, other in [*pairs, ("money", "big"), ("money", "3"), ("rate", "rate")]:
            has_fraction = not {"narrow", "wide", "broad"}.isdisjoint((one, other))
            if not (has_fraction and sign == "DIV"):  # which Spark refuses
                yield f"{one} {sign} {other}"
    for column in ("tiny", "whole", "big", "narrow", "wide", "money", "huge", "flag"):
        yield from (f"CAST({column} AS {type})" for type in _TYPES[:-2])
    for column in ("day", "moment"):
        yield from (f"CAST({column} AS {type})" for type in ("STRING", "DATE", "TIMESTAMP"))
    yield from ("CAST(moment AS BIGINT)", "CAST(moment AS DOUBLE)", "wide::INT")
    for unit in ("SECOND", "MINUTES", "HOUR", "DAYS", "WEEK", "MONTH", "YEARS"):
        yield from (f"{time} {sign} INTERVAL 5 {unit}" for time in _TIMES for sign in "+-")
    yield from ("moment - INTERVAL '1 hour 30 minutes'", "INTERVAL 1 MONTH + day")
    for part in ("YEAR", "MONTH", "WEEK", "DAY", "DOW", "DOY", "HOUR", "MINUTE", "QUARTER"):
        yield f"extract({part} FROM moment)"
    yield from ("trim(BOTH FROM word)", "trim(LEADING FROM word)", "substring(word FROM 2 FOR 1)")
    yield from ("position('a' IN word)", "word || '-' || big", "word NOT LIKE 'a%'", "pair.item")
    yield from ("top[0].item", "pair.count + 1", "element_at(top, 1).count", "size(top)")
    yield from ("sort_array(numbers)[0]", "named_struct('a', big, 'b', word).b", "~tiny + 1")


def nested() -> Iterator[str]:
    """Yield functions of functions, of every kind of type."""
    chance = random.Random(7)

    def number(depth: int) -> str:
        if depth == 0:
            return chance.choice(("tiny", "whole", "big", "narrow", "wide", "rate", "few", "2"))
        one = number(depth - 1)
        match chance.randrange(12):
            case 0:
                return f"round({one}, {chance.randrange(4)})"
            case 1:
                return f"greatest({one}, {number(depth - 1)})"
            case 2:
                return f"CAST({one} AS {chance.choice(('INT', 'DOUBLE', 'DECIMAL(20,3)'))})"
            case 3:
                return f"length({text(depth - 1)})"
            case 4:
                return f"coalesce({one}, {number(0)})"
            case 5:
                return f"{chance.choice(('floor', 'ceil', 'abs', '-'))}({one})"
            case 6:
                return f"{chance.choice(('year', 'hour', 'dayofyear'))}({time(depth - 1)})"
            case 7:
                return f"if({one} > {number(0)}, {one}, {number(depth - 1)})"
            case 8:
                return f"try_divide({one}, {number(depth - 1)})"
        sign = chance.choice(("+", "-", "*", "/", "%"))
        other = number(depth - 1)
        return f"({one}) {sign} {other if chance.random() < 0.3 else f'({other})'}"

    def text(depth: int) -> str:
        if depth == 0:
            return chance.choice(("word", "part", "'ab'"))
        match chance.randrange(5):
            case 0:
                return (
                    f"concat({text(depth - 1)}, CAST(CAST({number(depth - 1)} AS INT) AS STRING))"
                )
            case 1:
                return f"substring({text(depth - 1)}, few, {chance.randrange(5)})"
            case 2:
                return f"lpad({text(depth - 1)}, 6, {text(0)})"
            case 3:
                return f"date_format({time(depth - 1)}, 'yyyy-MM-dd HH:mm')"
        return f"CASE WHEN flag THEN {text(depth - 1)} ELSE {text(depth - 1)} || '!' END"

    def time(depth: int) -> str:
        if depth == 0:
            return chance.choice(("moment", "time2"))
        return chance.choice(
            # Back and forth, so that no year has five digits.
            (
                f"date_trunc('hour', {time(depth - 1)})",
                f"{time(0)} - INTERVAL 1 DAY + INTERVAL 1 DAY",
            )
        )

    for count in range(90):
        yield (number, text)[count % 3 == 0](1 + count % 4)


CHOSEN = [
    *(f"{a} {sign} {b}" for a in _FIVE for b in _FIVE if a <= b for sign in "+*<"),
    *(f"coalesce({a}, {b})" for a in _FIVE for b in _FIVE if a < b),
    *(f"{a} {sign} {b}" for a in _FIVE for b in ("100", "0.1", "1e3") for sign in "*>"),
    *(text.format(a) for a in _FIVE for text in ("-{}", "abs({})", "CAST({} AS DOUBLE)")),
    *("tiny / big", "big / tiny", "narrow / tiny", "wide / narrow", "big / wide", "money / wide"),
    *(f"{a} IN (1, 2.5) OR {a} BETWEEN 0 AND 99 OR {a} <=> NULL" for a in _FIVE),
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
    *("narrow = 1.5F", "big = CAST(2.5 AS INT)", "word = CAST(5 AS STRING)", "tiny < 100Y"),
    # Counts are INT; a list of nulls; years beyond 1 and 9999.
    *("substr(word, other)", "left(word, other)", "right(word, other)", "slice(numbers, 1, other)"),
    *("slice(words, other, 1)", "array_join(array(nullif(word, word)), '-')"),
    *(f"CAST({time} {sign} INTERVAL 13 MONTHS AS STRING)" for time in _TIMES for sign in "+-"),
    *("day = DATE '2024-01-31'", "nullif(day, DATE '9999-12-31')", "day <= day"),
]


def nested_numbers(chance: random.Random, depth: int, *, truth: bool = False) -> str:
    """Return a random expression over numbers, its parts in parentheses or not.

    It is never a constant: Spark cannot hand over a struct that is null with a field that never is.
    """

    def inner(*, truth: bool = False) -> str:
        text = nested_numbers(chance, depth - 1, truth=truth)
        return f"({text})" if chance.random() < 0.7 else text

    if truth:
        if depth == 0:
            return chance.choice(("flag", "tiny > 0", "big <> 5", "wide <= 1"))
        sign = chance.choice(("AND", "OR", "NOT", "<", "="))
        if sign == "NOT":
            return f"NOT ({nested_numbers(chance, depth - 1, truth=True)})"
        if sign.isalpha():  # over what never fails: neither engine promises to ask one side only
            return " ".join(
                [nested_numbers(chance, 0, truth=True), sign, nested_numbers(chance, 0, truth=True)]
            )
        return f"{inner()} {sign} {inner()}"
    if depth == 0:
        return chance.choice(("tiny", "narrow", "wide", "CAST(big AS DOUBLE)", "100 - tiny"))
    match chance.randrange(6):
        case 0:
            return f"CASE WHEN {inner(truth=True)} THEN {inner()} ELSE {inner()} END"
        case 1:
            return f"if({inner(truth=True)}, {inner()}, {inner()})"
        case 2:
            return f"-({nested_numbers(chance, depth - 1)})"
    return f"{inner()} {chance.choice('+-*/')} {inner()}"


# What is within what must not show in the text: 100 - (tiny - 1) is not 100 - tiny - 1.
_CHANCE = random.Random(12)
CHOSEN += [nested_numbers(_CHANCE, 1 + number % 3, truth=number % 4 == 0) for number in range(60)]


def names(types: dict[str, DataType]) -> Names:
    return Names({name: parse_type(type) for name, type in COLUMNS.items()}, {}, types)


def ask_types(given: DataFrame, expressions: Sequence[str]) -> dict[str, DataType]:
    """Return the types that Spark gives to expressions and to all of their parts."""
    texts = list(dict.fromkeys([*expressions, *typed_parts(expressions)]))
    found: dict[str, DataType] = {}
    for begin in range(0, len(texts), 200):
        some = texts[begin : begin + 200]
        schema = given.selectExpr(*(f"{text} AS p{at}" for at, text in enumerate(some))).schema
        told = (parse_type(field.dataType.simpleString()) for field in schema.fields)
        found |= dict(zip(some, told, strict=True))
    return found


def listed(column: pa.Array) -> list[object]:
    """Return values, times as numbers: Python has none beyond the year 9999."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    found: list[object] = column.to_pylist()
    return found


def ask_spark(
    spark: SparkSession, given: DataFrame, expressions: Sequence[str]
) -> dict[str, list[object]]:
    """Return the values of expressions by row, FAILS where one fails."""
    answers: dict[str, list[object]] = {}
    for begin in range(0, len(expressions), 100):
        some = expressions[begin : begin + 100]
        # Never a constant: Spark cannot hand over a struct that is null with a field that is not.
        values = [f"if(row < 0, NULL, {text})" for text in some]
        tried = (try_all(spark, {"v": text}).alias(f"t{at}") for at, text in enumerate(values))
        found = given.select("row", *tried).toArrow().sort_by("row")
        for at, text in enumerate(some):
            column = found[f"t{at}"].combine_chunks()
            pairs = zip(listed(column.field("v")), column.is_valid().to_pylist(), strict=True)
            answers[text] = [value if sound else FAILS for value, sound in pairs]
    return answers


def ask_store(
    store: duckdb.DuckDBPyConnection, asked: Mapping[str, Asked], types: Mapping[str, DataType]
) -> dict[str, list[object]]:
    """Return the values of expressions by row, FAILS where one fails: no row raises an error."""
    answers: dict[str, list[object]] = {}
    given = list(asked.items())
    for begin in range(0, len(given), 25):
        some = given[begin : begin + 25]
        columns = [
            f"CAST({each.value} AS {types[text].duckdb}) AS v{at}, "
            f"{' OR '.join(each.fails.values()) or 'false'} AS f{at}"
            for at, (text, each) in enumerate(some)
        ]
        query = f'SELECT {", ".join(columns)} FROM given ORDER BY "row"'
        found = store.execute(query).to_arrow_table()  # `sql` would plan it twice
        for at, (text, _) in enumerate(some):
            values = listed(found[f"v{at}"].combine_chunks())
            pairs = zip(values, found[f"f{at}"].to_pylist(), strict=True)
            answers[text] = [FAILS if fails else value for value, fails in pairs]
    return answers


def same(one: object, other: object) -> bool:
    """Whether two values are the same to the last bit."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


@pytest.mark.spark
def test_the_store_gives_sparks_answer() -> None:
    single = list(dict.fromkeys([*calls(), *operations()]))
    deep = list(dict.fromkeys([*CHOSEN, *nested()]))
    rows = make_rows(ROWS, seed=1)
    spark = start_spark()
    with _without_sharing(spark):
        given = spark.createDataFrame(rows).coalesce(1)
        known = names(ask_types(given, [*single, *deep]))
        terms, refused = {}, {}
        for text in (*single, *deep):
            try:
                terms[text] = to_term(text, known)
            except ValueError as error:
                refused[text] = str(error)
        answers = ask_spark(spark, given, list(terms))
    check_refusals(refused)
    differences = []
    with duckdb.connect() as store:
        store.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{name} {parse_type(type).duckdb}" for name, type in COLUMNS.items())
        store.execute(f'CREATE TABLE given ({columns}, "row" BIGINT)')
        store.register("rows", rows)
        store.execute("INSERT INTO given FROM rows")
        own = StoreNames({name: name for name in COLUMNS})
        asked = {text: ask(term, own) for text, term in terms.items()}
        found = ask_store(store, asked, known.types)
        for text in terms:
            for row, (wanted, value) in enumerate(zip(answers[text], found[text], strict=True)):
                if same(wanted, value) or (text in deep and is_open(rows, row, text, value)):
                    continue
                used = {name: rows[name][row].as_py() for name in COLUMNS if name in text}
                differences.append((text, used, wanted, value, asked[text]))
    assert differences == []


def is_open(rows: pa.Table, row: int, text: str, value: object) -> bool:
    """Whether what the store does with a row is left open: nobody promises it.

    Where one operand is NULL, or what `try_divide` divides by is zero, Spark may leave the others
    out, which fail in the store.
    """
    used = [name for name in COLUMNS if re.search(rf"\b{name}\b", text)]
    has_null = any(not rows[name][row].is_valid for name in used)
    return value is FAILS and (has_null or "try_divide" in text)


def check_refusals(refused: Mapping[str, str]) -> None:
    """Only what no store could do to the last digit, or would write in another way, is refused."""
    for text, reason in refused.items():
        digits = "38 digits on the way" in reason or "when it changes the sign" in reason
        fractions = "is written in many ways" in reason
        assert digits or fractions, (text, reason)
    assert len(refused) < 60


def test_every_operator_is_said_by_the_store() -> None:
    infix = {
        *["=", "<>", "<", "<=", ">", ">=", "<=>"],
        "between",
        "in",
        "and",
        "or",
        "not",
        "is null",
    }
    infix |= {"is not null", "is true", "is false", "negate", "abs", "cast", "case", "case of"}
    assert {each.value for each in Operator} - {each.value for each in SAID} == infix


def test_every_function_of_the_table_is_known_at_the_front_door_and_to_the_plan() -> None:
    said = {*SAID, Operator.ABSOLUTE, Operator.NEGATE, Operator.CAST, Operator.CASE}
    said |= {Operator.IS_NULL, Operator.IS_NOT_NULL}
    for name, function in FUNCTIONS.items():
        assert function.operator in said, name
        assert {function.word(at) for at in range(len(function.takes))} <= {
            *ARGUMENTS, "alike", "ordered"
        }, name  # fmt: skip
        assert any(text.startswith(name) for text in calls()) or name in (*_INFIX, "cast"), name


def test_hundreds_of_conditions_are_told_by_short_texts() -> None:
    text = " OR ".join(f"big = {number}" for number in range(600))
    parts = typed_parts([text])
    assert sum(map(len, parts)) < 4_000
    term = to_term(text, names({part: parse_type("INT") for part in parts}))
    assert ask(term, StoreNames({"big": "big"})).value.count(" OR ") == 599
    with pytest.raises(ValueError, match="at most 100 operations deep; write it in simpler steps"):
        typed_parts([" + ".join(["big"] * 102)])
