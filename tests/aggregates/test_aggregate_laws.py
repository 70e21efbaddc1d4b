"""Any split, any order: partials merged or combined in whatever way give the reference's answer.

Method: every aggregate over columns of every kind it takes. The records are cut at random into
parts, 20 times (many more in `make soak`); one Spark job evaluates the partials of all parts of all
cuts. DuckDB puts the parts of every cut together, with the very SQL of the store, in four ways: one
after the other in a random order, the same with old and new exchanged, in pairs of pairs, and all
at once. The finals must equal what the reference works out from all records (DOUBLE: to 1e-12 of
the sum of absolute values, or of squares), and the audit must find no difference between the states
of any two ways. BIGINT sums pass far beyond BIGINT on the way.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from columns import COLUMNS, column_type, same
from drawing import CUTS, Drawn, column_name, draw, interpreting_session
from tolerance import error_of_asymmetry, error_over_pairs

from headrace.aggregates import AGGREGATES, Aggregate, Arguments, State
from headrace.model.nodes import Call
from headrace.plan.tables import Answer, Table, TableColumn
from headrace.reference.aggregates import Taken, aggregate, argument_of, result_type
from headrace.reference.pairs import PAIRED
from headrace.schema.types import parse_type
from headrace.store.duckdb.schema import SCHEMA
from headrace.store.duckdb.tables import merging
from headrace.store.duckdb.tables.comparing import compare_states
from headrace.store.duckdb.tables.finals import final_text
from headrace.time.placement import Forever

MOST_PARTS = 8
WAYS = ("in turn", "exchanged", "in pairs", "at once")
AT_ONCE = 40  # states that one statement compares


@dataclass(frozen=True)
class Case:
    """One aggregate over one or two columns."""

    function: str
    column: str
    by: str | None = None
    parameters: tuple[str, ...] = ()
    ignores_nulls: bool = False

    def make(self) -> Aggregate:
        by = None if self.by is None else column_type(self.by)
        arguments = Arguments(column_type(self.column), by, self.parameters, self.ignores_nulls)
        return AGGREGATES[self.function](arguments)

    def answer(self, drawn: Drawn) -> object:
        values = drawn.columns[self.column]
        orders = values if self.by is None else drawn.columns[self.by]
        call = Call(self.function, (), self.parameters, self.ignores_nulls)
        taken = [Taken(*each) for each in zip(values, orders, drawn.places, strict=True)]
        return aggregate(call, taken, self.argument_type)

    @property
    def argument_type(self) -> pa.DataType:
        column = [self.column, self.by][argument_of(self.function)]
        assert column is not None
        return column_type(column).arrow

    def __str__(self) -> str:
        shown = [self.column, self.by, *self.parameters, self.ignores_nulls and "no nulls"]
        return f"{self.function}-{'-'.join(str(each) for each in shown if each)}"


ASYMMETRY = ("skewness", "kurtosis")
SPREAD = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
NUMBERS = [name for name in COLUMNS if column_type(name).is_numeric]
# Sums of DOUBLE that overflow on their way are not promised.
SUMMED = [name for name in NUMBERS if not name.startswith("huge")]
ORDERED = [name for name in COLUMNS if column_type(name).is_orderable]
INTEGERS = [name for name in COLUMNS if column_type(name).is_integer]
CONDITIONS = [name for name in COLUMNS if COLUMNS[name][0] == "BOOLEAN"]
NESTED = [name for name in COLUMNS if not column_type(name).is_orderable]
KINDS = ["STRING", "no number", "null", *NESTED]
# Of every order there is: numbers with and without ties, texts, bytes, times, none at all.
RANKS = [
    "BIGINT", "DECIMAL(28,4)", "no number", "few doubles", "few", "BINARY", "TIMESTAMP", "BOOLEAN",
    "null",
]  # fmt: skip

# Close together and far from zero, constant, exact, without a number, too large.
PAIRS = [
    ("DOUBLE", "FLOAT"), ("INT", "few numbers"), ("few numbers", "INT"), ("few numbers", "same"),
    ("same", "few numbers"), ("same", "same"), ("close", "few numbers"), ("few numbers", "close"),
    ("DECIMAL(28,4)", "BIGINT"), ("large", "INT"), ("no number", "INT"), ("INT", "huge"),
    ("cancelling", "few numbers"), ("INT", "null"), ("null", "INT"),
]  # fmt: skip
AVERAGED = [("DECIMAL(3,1)", "few numbers"), ("INT", "DECIMAL(24,10)"), ("DOUBLE", "null")]

CASES = [
    *(Case("count", name) for name in COLUMNS),
    *(Case(function, name) for function in ("min", "max") for name in ORDERED),
    *(Case("sum", name) for name in SUMMED),
    *(Case("avg", name) for name in SUMMED if name != "DECIMAL(28,4)"),
    *(Case(function, name) for function in SPREAD for name in NUMBERS),
    *(Case(function, name) for function in ASYMMETRY for name in NUMBERS),
    *(Case(name, each) for name in ("bool_and", "bool_or", "count_if") for each in CONDITIONS),
    *(Case(function, name) for function in ("first", "last") for name in KINDS),
    *(Case(name, each, ignores_nulls=True) for name in ("first", "last") for each in KINDS),
    *(Case(name, each, by="few numbers") for name in ("min_by", "max_by") for each in KINDS),
    *(Case(name, "INT", by=each) for name in ("min_by", "max_by") for each in RANKS),
    *(Case("collect_list", name, parameters=("7",)) for name in KINDS),
    Case("collect_list", "few", parameters=("1000",)),
    *(Case(name, each, parameters=("7",)) for name in ("first_n", "last_n") for each in KINDS),
    *(Case("last_n", name, parameters=("7",), ignores_nulls=True) for name in KINDS),
    *(Case(name, each, "few numbers", ("5",)) for name in ("min_by", "max_by") for each in KINDS),
    *(Case(name, "INT", each, ("5",)) for name in ("min_by", "max_by") for each in RANKS),
    *(Case(name, each, parameters=("6",)) for name in ("topk", "bottomk") for each in ORDERED),
    *(Case("try_sum", name) for name in SUMMED),
    *(Case(name, each) for name in ("bit_and", "bit_or", "bit_xor") for each in INTEGERS),
    *(Case(function, y, by=x) for function in PAIRED for y, x in PAIRS),
    *(Case(name, y, by=x) for name in ("regr_avgx", "regr_avgy") for y, x in AVERAGED),
    *(Case("regr_count", y, by=x) for y, x in PAIRS),
]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return draw(20260101, most_parts=MOST_PARTS)


STATES: dict[tuple[str, str, str | None], str] = {}  # partial and columns to the state's name
for case in CASES:
    for state in case.make().states:
        STATES.setdefault((state.partial, case.column, case.by), f"s{len(STATES)}")


def names_of(case: Case) -> list[str]:
    return [STATES[state.partial, case.column, case.by] for state in case.make().states]


@pytest.fixture(scope="module")
def spark(drawn: Drawn) -> Any:
    session = interpreting_session()
    session.createDataFrame(drawn.table()).coalesce(1).createOrReplaceTempView("drawn")
    return session


@pytest.fixture(scope="module")
def partials(spark: Any) -> pa.Table:
    """Evaluate all partials of all parts of all cuts in one Spark job."""
    wanted = [
        f"{partial.format(x=column_name(x), y=column_name(y or x), tiebreak='tiebreak')} AS {name}"
        for (partial, x, y), name in STATES.items()
    ]
    return spark.sql(
        f"SELECT cut, part, {', '.join(wanted)} FROM "
        "(SELECT *, posexplode(parts) AS (cut, part) FROM drawn) GROUP BY cut, part"
    ).toArrow()


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.fixture(scope="module")
def merged(partials: pa.Table, store: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Put the parts of every cut together in every way; `answers` holds way, cut and states."""
    states = all_states()
    types = ", ".join(f"{name} {state.type.duckdb}" for name, state in states.items())
    listed = ", ".join(states)
    store.execute(f"CREATE TABLE parts (cut INTEGER, number INTEGER, {types})")
    store.execute(f"CREATE TABLE answers (way VARCHAR, cut INTEGER, {types})")
    store.register("partials", partials)
    store.execute(
        "INSERT INTO parts SELECT cut, row_number() OVER (PARTITION BY cut ORDER BY part) - 1, "
        f"{listed} FROM partials"
    )

    columns = [column_of(name, state) for name, state in states.items()]

    def merge(old: str, new: str) -> str:
        return ", ".join(
            f"CASE WHEN n.cut IS NULL THEN o.{column.name} ELSE "
            f"{merging.merge(column, f'{old}.{column.name}', f'{new}.{column.name}')} END"
            for column in columns
        )

    # Each way is one statement: to plan two hundred columns takes a second, to run them less.
    def put_together(way: str, first: str, step: str, steps: int) -> None:
        store.execute(
            f"INSERT INTO answers WITH RECURSIVE run(step, cut, number, {listed}) AS "
            f"(SELECT 0, * FROM parts {first} UNION ALL {step}) "
            f"SELECT '{way}', cut, {listed} FROM run WHERE step = {steps}"
        )

    last = MOST_PARTS - 1
    for way, sides in (("in turn", ("o", "n")), ("exchanged", ("n", "o"))):
        step = (
            f"SELECT o.step + 1, o.cut, 0, {merge(*sides)} FROM run o "
            f"LEFT JOIN parts n ON n.cut = o.cut AND n.number = o.step + 1 WHERE o.step < {last}"
        )
        put_together(way, "WHERE number = 0", step, last)
    rounds = MOST_PARTS.bit_length()
    step = (
        f"SELECT o.step + 1, o.cut, o.number // 2, {merge('o', 'n')} FROM run o "
        f"LEFT JOIN run n ON n.cut = o.cut AND n.number = o.number + 1 "
        f"WHERE o.number % 2 = 0 AND o.step < {rounds}"
    )
    put_together("in pairs", "", step, rounds)
    combined = ", ".join(merging.combine(column, column.name) for column in columns)
    store.execute(f"INSERT INTO answers SELECT 'at once', cut, {combined} FROM parts GROUP BY cut")
    return store


def column_of(name: str, state: State) -> TableColumn:
    return TableColumn(name, state.type, state.merge, state.most)


def answer_of(made: Aggregate, states: Sequence[str]) -> str:
    """Return the final of an aggregate over states as SQL of the store."""
    columns = tuple(map(column_of, states, made.states))
    answer = Answer("a0", made.final, made.type, tuple(states), made.parameter)
    return final_text(answer, Table("v", "v1", columns, Forever()))


def states_of(case: Case) -> list[tuple[str, State]]:
    return list(zip(names_of(case), case.make().states, strict=True))


def all_states() -> dict[str, State]:
    return {name: state for case in CASES for name, state in states_of(case)}


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_cut_and_order_gives_the_answer(
    case: Case, drawn: Drawn, merged: duckdb.DuckDBPyConnection
) -> None:
    made = case.make()
    query = f"SELECT {answer_of(made, names_of(case))} AS answer FROM answers"
    table = merged.execute(query).to_arrow_table()  # `sql` would plan it twice
    assert table.schema.field("answer").type == made.type.arrow
    if made.type.kind not in ("MAP", "STRUCT"):
        found_type = result_type(case.function, case.argument_type, case.parameters)
        assert found_type == made.type.arrow
    answers = table["answer"].to_pylist()
    assert len(answers) == CUTS * len(WAYS)
    expected = case.answer(drawn)
    if expected is not None and math.isfinite(allowed := allowed_error(case, drawn)):
        wrong = [each for each in answers if not abs(each - expected) <= allowed]
    else:
        wrong = [each for each in answers if not same(each, expected)]
    assert not wrong, (expected, wrong[:3])


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, len(STATES), AT_ONCE))
def test_the_audit_finds_no_difference_between_ways(
    first: int, merged: duckdb.DuckDBPyConnection
) -> None:
    """To the audit each answer is a row of its own, recorded so and replayed as the first one."""
    states = list(all_states().items())[first : first + AT_ONCE]
    columns = [column_of(name, state) for name, state in states]
    key = TableColumn("row", parse_type("BIGINT"))
    audited = Table("v", "v1", (key, *columns), Forever())
    listed = ", ".join(name for name, _ in states)
    recorded = merged.sql(f"SELECT row_number() OVER () AS row, {listed} FROM answers")
    replayed = merged.sql(
        f"SELECT row, first.* FROM (SELECT row_number() OVER () AS row FROM answers), "
        f"(SELECT {listed} FROM answers LIMIT 1) AS first"
    )
    rows = recorded.to_arrow_table(), replayed.to_arrow_table()
    assert compare_states(audited, *rows) == compare_states(audited, *rows[::-1]) == []


def allowed_error(case: Case, drawn: Drawn) -> float:
    """Return how far from the true answer a sum over DOUBLE may be; infinity: not at all."""
    if case.function in PAIRED:
        assert case.by is not None
        both = zip(drawn.columns[case.column], drawn.columns[case.by], strict=True)
        pairs = [(float(y), float(x)) for y, x in both if y is not None and x is not None]
        return error_over_pairs(case.function, pairs)
    if case.function in ASYMMETRY:
        values = [float(value) for value in drawn.columns[case.column] if value is not None]
        answer = case.answer(drawn)
        assert isinstance(answer, float)
        return error_of_asymmetry(case.function, values, answer)
    if case.make().type.kind != "DOUBLE" or case.function not in ("sum", "try_sum", "avg", *SPREAD):
        return math.inf
    values = [float(value) for value in drawn.columns[case.column] if value is not None]
    if case.function in ("sum", "try_sum", "avg"):
        return 1e-12 * math.fsum(map(abs, values)) if all(map(math.isfinite, values)) else math.inf
    try:
        square = 1e-12 * math.fsum(value**2 for value in values) / len(values)
    except OverflowError:
        return math.inf
    # The root of a variance that is off by that much.
    spread = case.answer(drawn)
    assert isinstance(spread, float)
    return square if case.function.startswith("var") else square / max(spread, math.sqrt(square))


OVER_PAIRS = (*PAIRED, "regr_count", "regr_avgx", "regr_avgy")
#: Spark's own calls whose answer does not depend on the order of the rows.
SPARKS = [
    *((Case(name, y, by=x), f"{name}({{x}}, {{y}})") for name in OVER_PAIRS
      for y, x in (*PAIRS[:3], ("DECIMAL(3,1)", "close"), ("INT", "null"))),
    # Spark's own corr fails where a column is constant.
    *((Case(name, "same", by=x), f"{name}({{x}}, {{y}})") for name in OVER_PAIRS if name != "corr"
      for x in ("few numbers", "same")),
    *((Case(name, x), f"{name}({{x}})") for name in ASYMMETRY
      for x in ("INT", "few numbers", "DECIMAL(3,1)", "DOUBLE", "same")),
    (Case("topk", "DOUBLE", parameters=("5",)), "max_by({x}, {x}, 5)"),
    (Case("bottomk", "few doubles", parameters=("5",)), "min_by({x}, {x}, 5)"),
    (Case("mode", "few"), "mode() WITHIN GROUP (ORDER BY {x})"),
    (Case("sum_distinct", "few numbers"), "sum(DISTINCT {x})"),
    (Case("avg_distinct", "DECIMAL(3,1)"), "avg(DISTINCT {x})"),
    (Case("try_sum", "INT"), "try_sum({x})"),
    (Case("bit_and", "few numbers"), "bit_and({x})"),
    (Case("bit_or", "SMALLINT"), "bit_or({x})"),
    (Case("bit_xor", "BIGINT"), "bit_xor({x})"),
]  # fmt: skip


@pytest.mark.spark
def test_the_reference_means_what_spark_does(drawn: Drawn, spark: Any) -> None:
    asked = ", ".join(
        f"{text.format(x=column_name(case.column), y=column_name(case.by or case.column))} AS a{at}"
        for at, (case, text) in enumerate(SPARKS)
    )
    answers = spark.sql(f"SELECT {asked} FROM drawn").toArrow().to_pylist()[0].values()
    for (case, text), found in zip(SPARKS, answers, strict=True):
        expected = case.answer(drawn)
        if isinstance(expected, float) and found is not None:
            assert abs(found - expected) <= allowed_error(case, drawn), (str(case), text)
        else:
            assert same(found, expected), (str(case), text)


@pytest.mark.spark
@pytest.mark.parametrize("first", range(0, len(STATES), AT_ONCE))
def test_states_of_nothing_are_neutral(first: int, merged: duckdb.DuckDBPyConnection) -> None:
    columns = [column_of(*each) for each in list(all_states().items())[first : first + AT_ONCE]]
    partials = {name: partial for (partial, _, _), name in STATES.items()}
    listed = ", ".join(column.name for column in columns)
    known = f"(SELECT {listed} FROM answers WHERE way = 'in turn' AND cut = 0)"
    nothing = "(SELECT {})".format(
        ", ".join(f"{nothing_of(each, partials[each.name])} AS {each.name}" for each in columns)
    )
    combined = ", ".join(f"{merging.combine(each, each.name)} AS {each.name}" for each in columns)
    combined = f"(SELECT {combined} FROM (FROM {known} UNION ALL FROM {nothing}))"
    equal = [
        f"({sql}) IS NOT DISTINCT FROM k.{each.name}"
        for each in columns
        for sql in (
            merging.merge(each, f"k.{each.name}", f"n.{each.name}"),
            merging.merge(each, f"n.{each.name}", f"k.{each.name}"),
            f"c.{each.name}",
        )
    ]
    query = f"SELECT {', '.join(equal)} FROM {known} k, {nothing} n, {combined} c"
    [found] = merged.execute(query).fetchall()
    assert [sql for sql, same in zip(equal, found, strict=True) if not same] == []


def nothing_of(column: TableColumn, partial: str) -> str:
    """Return the state of no records as SQL of the store."""
    if column.type.kind == "ARRAY":
        return f"CAST([] AS {column.type.duckdb})"
    value = "0" if "count" in partial[:5] else "NULL"
    return f"CAST({value} AS {column.type.duckdb})"


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
    aggregate = AGGREGATES["avg"](Arguments(parse_type("DECIMAL(24,10)")))
    assert aggregate.type == parse_type("DECIMAL(28,14)")
    with duckdb.connect() as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        final = answer_of(aggregate, [f"CAST('{total}' AS DECIMAL(38,10))", str(n)])
        assert connection.execute(f"SELECT {final}").fetchall() == [(Decimal(expected),)]


def test_no_sum_past_bigint_fails_a_read() -> None:
    """The row of `sum` is one of the view's errors instead: headrace/testing/store/failing.py."""
    finals = {
        function: answer_of(
            AGGREGATES[function](Arguments(parse_type("BIGINT"))), ["CAST(1e30 AS DECIMAL(38,0))"]
        )
        for function in ("sum", "try_sum")
    }
    with duckdb.connect() as connection:
        for text in finals.values():
            assert connection.execute(f"SELECT {text}").fetchall() == [(None,)]
    taken = [Taken(2**62, None, (at,)) for at in range(2)]
    assert aggregate(Call("try_sum"), taken, pa.int64()) is None


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
        (
            "stddev_samp",
            "DATE",
            "stddev_samp needs a number, not DATE; write stddev_samp(CAST(... AS DOUBLE))",
        ),
        (
            "var_pop",
            "STRING",
            "var_pop needs a number, not STRING; write var_pop(CAST(... AS DOUBLE))",
        ),
        ("bool_and", "INT", "bool_and needs a condition, not INT; write bool_and(x > 0)"),
        ("bool_or", "STRING", "bool_or needs a condition, not STRING; write bool_or(x > 0)"),
        (
            "bit_or",
            "DOUBLE",
            "bit_or needs a whole number, not DOUBLE; write bit_or(CAST(... AS BIGINT))",
        ),
        ("count_if", "BIGINT", "count_if needs a condition, not BIGINT; write count_if(x > 0)"),
    ],
)
def test_what_cannot_be_exact_is_refused_with_what_to_write(
    function: str, type: str | None, message: str
) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared
        AGGREGATES[function](Arguments(None if type is None else parse_type(type)))
    assert str(error.value) == message


def test_count_needs_no_argument() -> None:
    assert AGGREGATES["count"](Arguments(None)).states[0].partial == "count(1)"


def test_what_has_no_order_cannot_be_ordered_by() -> None:
    arguments = Arguments(parse_type("INT"), by=parse_type("ARRAY<INT>"))
    with pytest.raises(ValueError, match=r"max_by orders by .* no order: ARRAY<INT>; pick a field"):
        AGGREGATES["max_by"](arguments)


def test_every_aggregate_without_items_is_tried() -> None:
    kept = {case.function for case in CASES}
    assert all(case.make().items is None for case in CASES)
    assert set(AGGREGATES) - kept == {
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "avg_distinct",
        "bottomk_distinct",
        "collect_set",
        "collect_set_with_nulls",
        "count_distinct",
        "histogram",
        "mode",
        "sum_distinct",
        "topk_distinct",
    }
