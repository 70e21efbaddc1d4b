"""Any split, any order: partials merged or combined in whatever way give the exact answer.

Method: one Spark job evaluates every aggregate's partials over columns of every type it takes,
grouped by a random split; DuckDB merges the states in random trees, and combines all of them at
once, with the very SQL of the store; the finals must equal what Python works out exactly from the
values (DOUBLE: to 1e-12 of the sum of absolute values). BIGINT sums pass far beyond BIGINT on the
way.
"""

import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from headrace.aggregates import AGGREGATES, Aggregate
from headrace.engine.session import start_spark
from headrace.schema.types import parse_type
from headrace.store.duckdb_schema import SCHEMA

RECORDS = 600
SPLITS = 24
ORDERS = 6
EXACT = Context(prec=100)

Values = list[Any]


def decimals(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def draw(rng: random.Random) -> Decimal:
        digits = rng.randint(0, precision)
        return Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale, EXACT)

    return draw


def integers(bits: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.randint(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def moment(rng: random.Random) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randint(-(10**16), 10**16))


TYPES: dict[str, Callable[[random.Random], Any]] = {
    "BIGINT": integers(64),
    "INT": integers(32),
    "SMALLINT": integers(16),
    "TINYINT": integers(8),
    "DECIMAL(28,4)": decimals(28, 4),
    "DECIMAL(24,10)": decimals(24, 10),
    "DECIMAL(24,24)": decimals(24, 24),
    "DECIMAL(24,0)": decimals(24, 0),
    "DECIMAL(3,1)": decimals(3, 1),
    "DOUBLE": lambda rng: rng.uniform(-1, 1) * 10.0 ** rng.randint(-15, 15),
    "FLOAT": lambda rng: float(rng.randint(-(2**20), 2**20)) / 64,
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "STRING": lambda rng: "".join(rng.choices("aZ é\U0001f600\uffee0", k=rng.randint(0, 4))),
    "BINARY": lambda rng: rng.randbytes(rng.randint(0, 3)),
    "TIMESTAMP": moment,
    "DATE": lambda rng: date(1970, 1, 1) + timedelta(days=rng.randint(-(10**5), 10**5)),
}


def average_type(type: str) -> Decimal:
    scale = parse_type(type).scale
    return Decimal(1).scaleb(-scale - 4)


def exact(function: str, type: str, values: Values) -> Any:
    """Return the answer as Python works it out, from all values at once."""
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        pick = min if function == "min" else max
        if type == "STRING":
            return pick(known, key=str.encode)
        return pick(known)
    if type in ("DOUBLE", "FLOAT"):
        total = math.fsum(known)
        return total if function == "sum" else total / len(known)
    whole = Decimal(0)
    for value in known:
        whole = EXACT.add(whole, Decimal(value))
    if function == "sum":
        return whole if type.startswith("DECIMAL") else int(whole)
    if type.startswith("DECIMAL"):
        mean = EXACT.divide(whole, Decimal(len(known)))
        return mean.quantize(average_type(type), ROUND_HALF_UP, EXACT)
    return float(whole) / len(known)


def draw_values(rng: random.Random, type: str) -> Values:
    values = [None if rng.random() < 0.1 else TYPES[type](rng) for _ in range(RECORDS)]
    if type == "BIGINT":
        # All the large ones first, then their opposites: the sum comes back to where it began.
        values = [2**63 - 1] * 200 + [None] + [-(2**63 - 1)] * 200 + values[401:] + [0]
        rest = sum(value or 0 for value in values)
        while abs(rest) >= 2**63:
            step = max(-(2**63), min(2**63 - 1, -rest))
            values.append(step)
            rest += step
    return values


@pytest.fixture(scope="module")
def drawn() -> tuple[list[int], dict[str, Values]]:
    """Return the split of every record and the values of every type; "none" is all null."""
    rng = random.Random(20260101)
    columns = {type: draw_values(rng, type) for type in TYPES}
    longest = max(map(len, columns.values()))
    columns = {type: values + [None] * (longest - len(values)) for type, values in columns.items()}
    # Records stay in order over half of the splits, so that some split holds only large ones.
    splits = [
        i * SPLITS // longest if rng.random() < 0.5 else rng.randrange(SPLITS)
        for i in range(longest)
    ]
    return splits, columns


def make(function: str, type: str) -> Aggregate | None:
    try:
        return AGGREGATES[function](parse_type(type))
    except ValueError:
        return None


CASES = {
    f"{function}_{index}": (function, type, aggregate)
    for function in AGGREGATES
    for index, type in enumerate(TYPES)
    if (aggregate := make(function, type)) is not None
}


@pytest.fixture(scope="module")
def partials(drawn: tuple[list[int], dict[str, Values]]) -> pa.Table:
    """Evaluate all partials of all splits in one Spark job."""
    splits, columns = drawn
    names = {type: f"c{index}" for index, type in enumerate(TYPES)}
    table = pa.table(
        {"split": pa.array(splits, pa.int32())}
        | {
            names[type]: pa.array(values, parse_type(type).arrow)
            for type, values in columns.items()
        }
    )
    wanted = [
        f"{state.partial.format(x=names[type])} AS {case}_{i}"
        for case, (_, type, aggregate) in CASES.items()
        for i, state in enumerate(aggregate.states)
    ]
    session = start_spark().newSession()
    # Compiling one query of a hundred columns takes longer than running it here.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.createDataFrame(table).coalesce(1).createOrReplaceTempView("drawn")
    return session.sql(f"SELECT split, {', '.join(wanted)} FROM drawn GROUP BY split").toArrow()


@pytest.fixture(scope="module")
def merged(partials: pa.Table) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[int]]]:
    """Merge the states of all splits in random trees; return the rows that hold everything."""
    rng = random.Random(7)
    states = {
        f"{case}_{i}": state
        for case, (_, _, aggregate) in CASES.items()
        for i, state in enumerate(aggregate.states)
    }
    with duckdb.connect(config={"threads": 1}) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("SET TimeZone = 'UTC'")
        types = ", ".join(f"{name} {state.type.duckdb}" for name, state in states.items())
        connection.execute(f"CREATE TABLE states (id INTEGER, {types})")
        connection.register("partials", partials)
        connection.execute(f"INSERT INTO states SELECT split, {', '.join(states)} FROM partials")
        merges = ", ".join(
            state.merge.format(old=f"o.{name}", new=f"n.{name}") for name, state in states.items()
        )
        following = SPLITS
        roots = []
        for _ in range(ORDERS):
            waiting = list(range(SPLITS))
            while len(waiting) > 1:
                old = waiting.pop(rng.randrange(len(waiting)))
                new = waiting.pop(rng.randrange(len(waiting)))
                connection.execute(
                    f"INSERT INTO states SELECT {following}, {merges} "
                    f"FROM states o, states n WHERE o.id = {old} AND n.id = {new}"
                )
                waiting.append(following)
                following += 1
            roots.append(waiting[0])
        combined = ", ".join(state.combine.format(x=name) for name, state in states.items())
        connection.execute(
            f"INSERT INTO states SELECT {following}, {combined} FROM states WHERE id < {SPLITS}"
        )
        roots.append(following)
        yield connection, roots


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(CASES[case][:2]))
def test_every_split_and_order_gives_the_exact_answer(
    case: str,
    drawn: tuple[list[int], dict[str, Values]],
    merged: tuple[duckdb.DuckDBPyConnection, list[int]],
) -> None:
    function, type, aggregate = CASES[case]
    connection, roots = merged
    values = drawn[1][type]
    names = [f"{case}_{i}" for i in range(len(aggregate.states))]
    found = connection.sql(
        f"SELECT {aggregate.final.format(*names)} AS answer FROM states WHERE id IN {tuple(roots)}"
    ).to_arrow_table()
    assert found.schema.field("answer").type == aggregate.type.arrow
    answers = found["answer"].to_pylist()
    assert len(answers) == ORDERS + 1
    expected = exact(function, type, values)
    if aggregate.type.kind == "DOUBLE" and function in ("sum", "avg"):
        bound = 1e-12 * math.fsum(abs(value) for value in values if value is not None)
        assert all(abs(answer - expected) <= bound for answer in answers)
    else:
        assert answers == [expected] * (ORDERS + 1)


@pytest.mark.spark
def test_states_of_nothing_are_neutral(
    partials: pa.Table, merged: tuple[duckdb.DuckDBPyConnection, list[int]]
) -> None:
    connection, roots = merged
    for case, (_, _, aggregate) in CASES.items():
        for i, state in enumerate(aggregate.states):
            name = f"{case}_{i}"
            empty = (
                "0" if state.partial.startswith("count") else f"CAST(NULL AS {state.type.duckdb})"
            )
            for old, new in ((name, empty), (empty, name)):
                merge = state.merge.format(old=old, new=new)
                sql = f"SELECT ({merge}) IS NOT DISTINCT FROM {name} FROM states WHERE id = ?"
                assert connection.execute(sql, [roots[0]]).fetchall() == [(True,)], (case, merge)
            combine = state.combine.format(x="x")
            sql = (
                f"SELECT ({combine}) IS NOT DISTINCT FROM any_value(x) FROM (SELECT {name} AS x "
                f"FROM states WHERE id = ? UNION ALL SELECT {empty})"
            )
            assert connection.execute(sql, [roots[0]]).fetchall() == [(True,)], (case, combine)


@pytest.mark.parametrize(
    ("total", "n", "expected"),
    [
        ("0.0000000001", 2, "0.00000000005000"),
        ("0.0000000001", 20_000, "0.00000000000001"),  # a half: away from zero
        ("-0.0000000001", 20_000, "-0.00000000000001"),
        ("0.0000000001", 20_001, "0.00000000000000"),
        ("-0.0000000001", 20_001, "0.00000000000000"),
        ("-7.0000000000", 3, "-2.33333333333333"),
        ("-5.0000000000", 3, "-1.66666666666667"),
        ("99999999999999.9999999999", 1, "99999999999999.99999999990000"),
    ],
)
def test_an_average_of_decimals_is_rounded_half_up_once(total: str, n: int, expected: str) -> None:
    aggregate = AGGREGATES["avg"](parse_type("DECIMAL(24,10)"))
    assert aggregate.type == parse_type("DECIMAL(28,14)")
    with duckdb.connect() as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        final = aggregate.final.format(f"CAST('{total}' AS DECIMAL(38,10))", n)
        assert connection.execute(f"SELECT {final}").fetchall() == [(Decimal(expected),)]


def test_a_sum_past_bigint_fails_when_it_is_read() -> None:
    final = AGGREGATES["sum"](parse_type("BIGINT")).final.format("CAST(1e30 AS DECIMAL(38,0))")
    with duckdb.connect() as connection, pytest.raises(duckdb.ConversionException):
        connection.execute(f"SELECT {final}")


@pytest.mark.parametrize(
    ("function", "type", "message"),
    [
        ("sum", "STRING", "sum needs a number, not STRING; write sum(CAST(... AS DECIMAL(18,2)))"),
        ("sum", None, "sum needs a number, not nothing; write sum(CAST(... AS DECIMAL(18,2)))"),
        ("avg", "DATE", "avg needs a number, not DATE; write avg(CAST(... AS DECIMAL(18,2)))"),
        (
            "sum",
            "DECIMAL(29,4)",
            "sum over DECIMAL(29,4) may overflow; write sum(CAST(... AS DECIMAL(28,4)))",
        ),
        (
            "avg",
            "DECIMAL(25,4)",
            "avg over DECIMAL(25,4) may overflow; write avg(CAST(... AS DECIMAL(24,4)))",
        ),
        (
            "min",
            "ARRAY<INT>",
            "min needs a value with an order, not ARRAY<INT>; pick a field of it",
        ),
        ("max", None, "max needs a value with an order, not nothing; pick a field of it"),
    ],
)
def test_what_cannot_be_exact_is_refused_with_what_to_write(
    function: str, type: str | None, message: str
) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared
        AGGREGATES[function](None if type is None else parse_type(type))
    assert str(error.value) == message


def test_count_needs_no_argument() -> None:
    assert AGGREGATES["count"](None).states[0].partial == "count(1)"
