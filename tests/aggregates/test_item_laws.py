"""Aggregates that keep items: any split, any order, same answer; and the error that they state.

Method: records are cut at random into parts, 20 times (many more in `make soak`). For every
case one Spark job makes the item rows of all parts of all cuts, and DuckDB merges and trims them
with the very SQL of the store: the first part first, then the last part first; a third way combines
all at once, as panes are. The finals must equal what the reference works out from all records. Then
the sketches' errors, on a million values.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from columns import COLUMNS, column_type, same
from drawing import CUTS, RECORDS, Drawn, column_name, draw, interpreting_session
from soaking import SOAKING

from headrace.aggregates import AGGREGATES, Aggregate, Arguments
from headrace.engine.spark.session import start_spark
from headrace.model.nodes import Call
from headrace.plan.states import answer_of, items_table
from headrace.plan.tables import Table, TableColumn
from headrace.reference.aggregates import Taken, aggregate, result_type
from headrace.reference.hashes import hash_of
from headrace.schema.types import parse_type
from headrace.store.duckdb.schema import SCHEMA
from headrace.store.duckdb.tables.finals import items_text
from headrace.store.duckdb.tables.merging import combine
from headrace.store.duckdb.tables.names import physical
from headrace.store.duckdb.tables.statements import create, merge, trim
from headrace.time.placement import Forever

pytestmark = pytest.mark.spark

MOST_PARTS = 6 if SOAKING else 4
GROUPS = [TableColumn("cut", parse_type("INT"))]


@dataclass(frozen=True)
class Case:
    """One aggregate over one column."""

    function: str
    column: str
    parameters: tuple[str, ...] = ()

    def make(self) -> Aggregate:
        arguments = Arguments(column_type(self.column), parameters=self.parameters)
        return AGGREGATES[self.function](arguments)

    def __str__(self) -> str:
        return "-".join((self.function, self.column, *self.parameters))


NUMBERS = ["BIGINT", "INT", "DECIMAL(28,4)", "DOUBLE", "no number", "few doubles", "large", "null"]
KINDS = ["STRING", "few", "no number", "few doubles", "DECIMAL(3,1)", "TIMESTAMP", "null"]
NESTED = ["few arrays", "few structs", "ARRAY", "STRUCT"]
SUMMED = [
    "BIGINT", "INT", "DECIMAL(24,10)", "DECIMAL(3,1)", "DOUBLE", "FLOAT", "few doubles", "null",
]  # fmt: skip
CASES = [
    *(Case("count_distinct", name) for name in (*KINDS, *NESTED)),
    *(Case("approx_count_distinct", name) for name in COLUMNS if column_type(name).is_orderable),
    *(Case("approx_percentile", name, ("0.5",)) for name in NUMBERS),
    *(Case("approx_percentile", "DOUBLE", (share,)) for share in ("0", "0.999", "1")),
    *(Case("approx_top_k", name, ("3",)) for name in KINDS),
    *(Case("collect_set", name, ("3",)) for name in (*KINDS, *NESTED)),
    Case("collect_set", "few", ("1000",)),
    *(Case("collect_set_with_nulls", name, ("3",)) for name in (*KINDS, *NESTED)),
    *(Case(name, each, ("3",)) for name in ("topk_distinct", "bottomk_distinct") for each in KINDS),
    *(Case(name, each) for name in ("histogram", "mode") for each in KINDS),
    *(Case(name, each) for name in ("sum_distinct", "avg_distinct") for each in SUMMED),
]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return draw(20260102, most_parts=MOST_PARTS)


@pytest.fixture(scope="module")
def spark() -> Any:
    return start_spark().newSession()


@pytest.fixture(scope="module")
def cuts(drawn: Drawn) -> Any:
    """Return a session whose `drawn` has every record once per cut."""
    session = interpreting_session()
    frame = session.createDataFrame(drawn.table()).coalesce(1)
    frame.selectExpr("*", "posexplode(parts) AS (cut, part)").createOrReplaceTempView("drawn")
    return session


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE TABLE cuts AS SELECT CAST(range AS INTEGER) AS cut FROM range({CUTS})"
        )
        yield connection


@cache
def rows_of(spark: Any, query: str) -> pa.Table:
    """Return the rows of a query; several aggregates of a column keep the same items."""
    return spark.sql(query).toArrow()


def item_rows(spark: Any, made: Aggregate, column: str, by: str, relation: str) -> pa.Table:
    assert made.items is not None
    item = made.items.item.format(x=column, tiebreak="tiebreak")
    partials = [
        f"{state.partial.format(x=column, tiebreak='tiebreak')} AS a0_{i}"
        for i, state in enumerate(made.states)
    ]
    query = f"SELECT *, {item} AS a0_item FROM {relation}"
    columns = ", ".join([*by.split(", "), "a0_item", *partials])
    rows = rows_of(spark, f"SELECT {columns} FROM ({query}) GROUP BY {by}, a0_item")
    return rows.filter(rows["a0_item"].is_valid())


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_cut_and_order_gives_the_answer(
    case: Case, drawn: Drawn, cuts: Any, store: duckdb.DuckDBPyConnection
) -> None:
    made = case.make()
    rows = item_rows(cuts, made, column_name(case.column), "cut, part", "drawn")
    call = Call(case.function, (), case.parameters)
    taken = [
        Taken(*each)
        for each in zip(drawn.columns[case.column], [None] * RECORDS, drawn.places, strict=True)
    ]
    expected = aggregate(call, taken, column_type(case.column).arrow)
    assert result_type(case.function, column_type(case.column).arrow) == made.type.arrow
    for way in (range(MOST_PARTS), reversed(range(MOST_PARTS)), None):
        answers = put_together(store, made, rows, way)
        assert len(answers) == CUTS
        wrong = [each for each in answers if not close(each, expected)]
        assert not wrong, (expected, wrong[:3])


def items_of(made: Aggregate) -> Table:
    return items_table("laws", "v1", Forever(), GROUPS, "a0", made)


def at_once(store: duckdb.DuckDBPyConnection, table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows of all parts combined, as those of panes are."""
    store.register("parts", rows)
    keys = [column.name for column in table.keys]
    states = [f"{combine(column, column.name)} AS {column.name}" for column in table.values]
    selected = ", ".join([*keys, *states])
    query = f"SELECT {selected} FROM parts GROUP BY {', '.join(keys)}"
    return store.execute(query).to_arrow_table()  # `sql` would plan it twice


def put_together(
    store: duckdb.DuckDBPyConnection, made: Aggregate, rows: pa.Table, way: Any
) -> list[Any]:
    """Return the answer of every cut, its parts merged one by one or, without a way, at once."""
    table = items_of(made)
    store.execute(f"DROP TABLE IF EXISTS {physical(table.name)}")
    store.execute(create(table))
    if way is None:
        deltas = [at_once(store, table, rows)]
    else:
        deltas = [rows.filter(pa.compute.equal(rows["part"], part)) for part in way]
    for delta in deltas:
        wanted = pa.schema([(each.name, each.type.arrow) for each in table.columns])
        store.register("delta", delta.select(wanted.names).cast(wanted))
        store.execute(merge(table, "delta"))
        if table.keep is not None:
            store.execute(trim(table, "delta"))
    if table.keep is not None:
        most = store.execute(
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM {physical(table.name)} GROUP BY cut)"
        ).fetchall()[0][0]
        assert most is None or most <= table.keep
    final = items_text(answer_of("a0", made), table, [], combines=False)
    query = f"SELECT ({final}) AS answer FROM cuts AS g ORDER BY cut"
    found = store.execute(query).to_arrow_table()
    assert found.schema.field("answer").type == made.type.arrow
    return list(found["answer"].to_pylist())


def close(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, float) and math.isfinite(expected):
        return math.isclose(found, expected, rel_tol=1e-12)  # the last digit of exp()
    return same(found, expected)


def test_every_aggregate_with_items_is_tried() -> None:
    assert all(case.make().items is not None for case in CASES)
    assert {case.function for case in CASES} == {
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


def answer_over(
    spark: Any, store: duckdb.DuckDBPyConnection, made: Aggregate, relation: str
) -> Any:
    """Return the answer of each group `cut` of a relation with the column `x`."""
    rows = item_rows(spark, made, "x", "cut", relation)
    table = items_of(made)
    store.execute(f"DROP TABLE IF EXISTS {physical(table.name)}")
    store.execute(create(table))
    wanted = pa.schema([(each.name, each.type.arrow) for each in table.columns])
    store.register("delta", rows.select(wanted.names).cast(wanted))
    store.execute(merge(table, "delta"))
    return read_answers(store, made)


def read_answers(store: duckdb.DuckDBPyConnection, made: Aggregate) -> dict[int, Any]:
    table = items_of(made)
    cuts = f"(SELECT DISTINCT cut FROM {physical(table.name)})"
    final = items_text(answer_of("a0", made), table, [], combines=False)
    return dict(store.execute(f"SELECT cut, ({final}) FROM {cuts} AS g").fetchall())


def test_approx_count_distinct_keeps_its_error_from_one_value_to_a_million(
    spark: Any, store: duckdb.DuckDBPyConnection
) -> None:
    made = AGGREGATES["approx_count_distinct"](Arguments(parse_type("BIGINT")))
    sizes = [1, 2, 3, 10, 100, 1_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000]
    relation = " UNION ALL ".join(
        f"SELECT {size} AS cut, id * 7919 + {size} AS x, CAST(NULL AS INT) AS place "
        f"FROM range({size})"
        for size in sizes
    )
    answers = answer_over(spark, store, made, f"({relation})")
    errors = {size: (answers[size] - size) / size for size in sizes}
    # Three standard errors of 1.04 / sqrt(4096).
    assert all(abs(error) < 3 * 0.01625 for error in errors.values()), errors
    assert [answers[size] for size in (1, 2, 3, 10)] == [1, 2, 3, 10]


def test_approx_count_distinct_is_not_off_to_one_side(
    spark: Any, store: duckdb.DuckDBPyConnection
) -> None:
    made = AGGREGATES["approx_count_distinct"](Arguments(parse_type("BIGINT")))
    sets, size = 100, 10_000
    relation = (
        f"(SELECT CAST(id % {sets} AS INT) AS cut, id AS x, CAST(NULL AS INT) AS place "
        f"FROM range({sets * size}))"
    )
    errors = np.array(
        [each / size - 1 for each in answer_over(spark, store, made, relation).values()]
    )
    assert len(errors) == sets
    # Of a million values in a hundred sets: no bias (0.16 % is its own standard error), and the
    # spread that is stated.
    assert abs(errors.mean()) < 3 * 0.01625 / math.sqrt(sets)
    assert errors.std() < 0.02


def test_approx_percentile_keeps_its_error_on_a_million_values(
    spark: Any, store: duckdb.DuckDBPyConnection
) -> None:
    rng = np.random.default_rng(7)
    values = np.concatenate([rng.lognormal(0, 3, 600_000), -rng.lognormal(0, 3, 400_000)])
    frame = pa.table({"cut": pa.array(np.zeros(len(values), np.int32)), "x": values})
    frame = frame.append_column("tiebreak", pa.nulls(len(values), pa.int32()))
    spark.createDataFrame(frame).createOrReplaceTempView("values_")
    ordered = np.sort(values)
    shares = ("0.5", "0", "0.001", "0.25", "0.9", "0.99", "0.9999", "1")
    sketches = [
        AGGREGATES["approx_percentile"](Arguments(parse_type("DOUBLE"), None, (share,)))
        for share in shares
    ]
    answer_over(spark, store, sketches[0], "values_")
    rows = store.execute(f"SELECT count(*) FROM {physical('laws__v1__items_a0')}").fetchall()
    assert rows[0][0] < 5_000  # the same for every share
    for share, made in zip(shares, sketches, strict=True):
        found = read_answers(store, made)[0]
        true = ordered[max(1, math.ceil(len(values) * Decimal(share))) - 1]
        assert abs(found - true) <= 0.01 * abs(true) * (1 + 1e-12), share


def test_the_references_hash_is_sparks(spark: Any) -> None:
    texts = ["", "a", "abc", "abcdefg", "abcdefghi", "x" * 31, "é" * 16, "0123456789" * 10]
    selected = ", ".join(f"xxhash64('{text}')" for text in texts)
    found = [each % 2**64 for each in spark.sql(f"SELECT {selected}").collect()[0]]
    assert found == [hash_of(text, pa.string()) for text in texts]


@pytest.mark.parametrize(
    ("function", "name"),
    [("count_distinct", "count(DISTINCT x)"), ("collect_set", "collect_set")],
)
def test_maps_cannot_be_told_apart(function: str, name: str) -> None:
    type = parse_type("ARRAY<STRUCT<a: MAP<STRING, INT>>>")
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared
        AGGREGATES[function](Arguments(type, None, ("1",)))
    assert str(error.value) == (
        f"{name} cannot tell values of {type.sql} apart: a MAP has no order; write "
        "array_sort(map_entries(...)) in its place"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("approx_count_distinct", "approx_count_distinct takes single values, not ARRAY<INT>"),
        ("approx_top_k", "approx_top_k takes single values, not ARRAY<INT>; pick a field of it"),
        ("histogram", "histogram takes single values, not ARRAY<INT>; pick a field of it"),
        ("mode", "mode takes single values, not ARRAY<INT>; pick a field of it"),
        ("topk_distinct", "topk_distinct needs a value with an order, not ARRAY<INT>; pick a "),
        ("sum_distinct", "sum needs a number, not ARRAY<INT>; write sum(CAST(... AS DECIMAL(18,2"),
        ("approx_percentile", "approx_percentile needs a number, not ARRAY<INT>; write approx_"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(function: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared
        AGGREGATES[function](Arguments(parse_type("ARRAY<INT>"), None, ("1",)))
    assert message in str(error.value)
