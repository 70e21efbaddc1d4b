"""Queries over columns that were handed over: what they need is found, and less never passes.

Method: a planner and tables in this process, as a child has them; Arrow tables stand for exports.
"""

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from refusals import MADE

from headrace import scratch
from headrace.errors import QueryRefused, TableNotFound
from headrace.schema.types import parse_type
from headrace.store.duckdb.apart.failing import NotHandedOver, OutOfMemory
from headrace.store.duckdb.apart.planning import QueryPlanner
from headrace.store.duckdb.apart.reading import HandedTables

TABLES = {
    "hits": [("k", "VARCHAR"), ("n", "BIGINT"), ("place", "STRUCT(city VARCHAR, zip INTEGER)")],
    "hits.errors": [("k", "VARCHAR"), ("odd.name", "VARCHAR")],
    "Visits": [("k", "VARCHAR"), ("_closed", "BOOLEAN")],
}
SECONDS = {"max_seconds": 20.0, "limit_seconds": 20.0}


@pytest.fixture(scope="module")
def planner() -> QueryPlanner:
    planner = QueryPlanner()
    planner.learn({"gone": [("a", "INTEGER")]})
    planner.learn(TABLES)
    return planner


@pytest.fixture
def tables() -> HandedTables:
    tables = HandedTables(memory_bytes=64 << 20)
    tables.learn(TABLES)
    return tables


def answer(tables: HandedTables, sql: str, handed: dict[str, pa.Table]) -> list[dict[str, Any]]:
    with tables.answering(sql, handed, max_rows=1_000, **SECONDS) as (schema, batches):
        found: list[dict[str, Any]] = pa.Table.from_batches(batches, schema).to_pylist()
        return found


EVERY = ["k", "n", "place"]


@pytest.mark.parametrize(
    ("sql", "needs"),
    [
        ("SELECT k FROM hits", {"hits": ["k"]}),
        ("SELECT k FROM hits WHERE n > 1", {"hits": ["k", "n"]}),
        ("FROM hits", {"hits": EVERY}),
        ("SELECT h FROM hits h", {"hits": EVERY}),
        ("SELECT * EXCLUDE (k) FROM main.HITS", {"hits": ["n", "place"]}),
        ("SELECT place.city FROM hits", {"hits": ["place"]}),
        ("SELECT count(*) FROM hits", {"hits": ["place"]}),  # one column tells how many rows
        ("SELECT 1 FROM hits WHERE false", {"hits": ["place"]}),
        ('SELECT "odd.name" FROM "hits.errors"', {"hits.errors": ["odd.name"]}),
        ("SELECT n FROM hits JOIN visits USING (k)", {"hits": ["k", "n"], "Visits": ["k"]}),
        (
            "SELECT k FROM hits WHERE EXISTS (FROM visits v WHERE v.k = hits.k AND _closed)",
            {"hits": EVERY, "Visits": ["k", "_closed"]},  # more than it needs
        ),
        ("WITH hits AS (SELECT 1 AS a) FROM hits", {}),
        ("WITH x AS (FROM hits) SELECT max(x.n) FROM x, x AS y", {"hits": ["n"]}),
        ("SELECT (SELECT max(n) FROM hits)", {"hits": ["n"]}),
        ("SELECT k FROM hits UNION ALL SELECT k FROM visits", {"hits": ["k"], "Visits": ["k"]}),
        ("SUMMARIZE hits", {"hits": EVERY}),
        ("DESCRIBE hits", {}),
        ("SHOW TABLES", {}),
        ("SELECT 'FROM hits'", {}),
        ("FROM range(3)", {}),
        ("EXPLAIN SELECT k FROM hits", {"hits": ["k"]}),
        ("EXPLAIN ANALYZE -- how\n SELECT k FROM hits", {"hits": ["k"]}),
        ("explain (analyze, format json) SELECT (n) FROM hits", {"hits": ["n"]}),
        ("EXPLAIN (SELECT k FROM hits)", {"hits": ["k"]}),
        ("EXPLAIN ANALYZE (FORMAT 'json') SELECT k FROM hits", {"hits": ["k"]}),
    ],
)
def test_the_columns_that_a_query_reads_are_found(
    planner: QueryPlanner, sql: str, needs: dict[str, list[str]]
) -> None:
    assert planner.needs(sql, **SECONDS) == needs


@pytest.mark.parametrize("sql", ["FROM gone", "FROM headrace.units", 'FROM kept."7"'])
def test_a_table_that_is_not_there_is_named(planner: QueryPlanner, sql: str) -> None:
    with pytest.raises(TableNotFound):
        planner.needs(sql, **SECONDS)


def test_an_error_speaks_of_the_text_that_was_asked(planner: QueryPlanner) -> None:
    with pytest.raises(QueryRefused, match="Scalar Function with name foo does not exist") as told:
        planner.needs("SELECT foo(1)", **SECONDS)
    assert "EXPLAIN" not in str(told.value)


HITS = pa.table(
    {
        "k": ["a", "b"],
        "n": pa.array([1, 2], pa.int64()),
        "place": pa.array(
            [{"city": "Oslo", "zip": 150}, None],
            pa.struct([("city", pa.string()), ("zip", pa.int32())]),
        ),
    }
)


def test_a_query_is_answered_from_what_was_handed_over(tables: HandedTables) -> None:
    found = answer(tables, "SELECT k, place.city FROM hits ORDER BY n DESC", {"hits": HITS})
    assert found == [{"k": "b", "city": None}, {"k": "a", "city": "Oslo"}]
    assert answer(tables, "SHOW TABLES", {}) == [{"name": name} for name in sorted(TABLES)]


@pytest.mark.parametrize(
    "sql", ["SELECT n FROM hits", "FROM hits", "SELECT k FROM hits WHERE n IS NULL"]
)
def test_a_column_that_was_not_handed_over_is_never_taken_for_empty(
    tables: HandedTables, sql: str
) -> None:
    with pytest.raises(NotHandedOver):
        answer(tables, sql, {"hits": HITS.select(["k"])})


def test_a_table_that_was_not_handed_over_is_never_taken_for_empty(tables: HandedTables) -> None:
    assert answer(tables, "SELECT count(*) AS n FROM hits", {"hits": HITS}) == [{"n": 2}]
    with pytest.raises(NotHandedOver):
        answer(tables, "SELECT count(*) AS n FROM hits", {})


#: What a question could find of those before it.
LEFT = """
SELECT (SELECT sum(n) FROM hits) AS total, getvariable('made'), current_schema(),
    make_timestamptz(0)::VARCHAR,
    (SELECT list(view_name || coalesce(comment, '')) FROM duckdb_views() WHERE NOT internal),
    (SELECT list(table_name) FROM duckdb_tables()), (SELECT count(*) FROM duckdb_types()),
    (SELECT count(*) FROM duckdb_schemas()), (SELECT count(*) FROM duckdb_databases()),
    (SELECT list(function_name) FROM duckdb_functions() WHERE NOT internal),
    (SELECT count(*) FROM duckdb_sequences()), (SELECT count(*) FROM duckdb_prepared_statements())
"""


def test_no_statement_leaves_anything_to_the_next_question_even_if_it_is_run(
    planner: QueryPlanner, tables: HandedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of statements is off, so that the sessions alone have to hold."""

    def let_pass(_: object, sql: str) -> str:
        return sql

    def look() -> dict[str, Any]:
        return answer(tables, LEFT, {"hits": HITS})[0]

    for module in ("planning", "reading"):
        monkeypatch.setattr(f"headrace.store.duckdb.apart.{module}.check_query", let_pass)
    before = look()
    assert before["total"] == 3
    ran = 0
    for sql in (*MADE, *(f"EXPLAIN ANALYZE {sql}" for sql in MADE)):
        with suppress(QueryRefused, TableNotFound):
            planner.needs(sql, **SECONDS)
        with suppress(QueryRefused, TableNotFound):
            answer(tables, sql, {"hits": HITS})
            ran += 1
        assert answer(tables, "SELECT sum(n) AS n FROM hits", {"hits": HITS}) == [{"n": 3}], sql
        assert planner.needs("SELECT sum(n) FROM hits", **SECONDS) == {"hits": ["n"]}, sql
    assert look() == before
    assert ran > 10, "statements of a session are run, and forgotten"


def test_the_seed_of_one_question_is_not_that_of_the_next(tables: HandedTables) -> None:
    drawn = []
    for _ in range(2):
        answer(tables, "SELECT setseed(0.5)", {})
        drawn += [row["x"] for row in answer(tables, "SELECT random() AS x", {})]
    assert drawn[0] != drawn[1]


def test_what_needs_more_memory_than_there_is_is_told_apart(tables: HandedTables) -> None:
    with pytest.raises(OutOfMemory):
        answer(tables, "SELECT list(i) FROM range(100000000) t(i)", {})
    assert answer(tables, "SELECT 1 AS a", {}) == [{"a": 1}]


TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY"),
    *("DATE", "TIMESTAMP", "DECIMAL(9,2)", "DECIMAL(38,0)", "ARRAY<STRUCT<a: INT, b: STRING>>"),
    *("MAP<STRING, ARRAY<TIMESTAMP>>", "STRUCT<a: DECIMAL(20,4), `b.c`: BINARY>"),
)


@pytest.mark.parametrize("text", TYPES)
def test_a_column_has_the_same_type_as_in_the_store(text: str) -> None:
    type = parse_type(text).duckdb
    store = scratch.connect()
    handed = store.sql(f"SELECT CAST(NULL AS {type}) AS a").to_arrow_table()
    described = store.sql(f"DESCRIBE SELECT CAST(NULL AS {type}) AS a").fetchall()[0][1]
    tables = HandedTables(memory_bytes=64 << 20)
    tables.learn({"t": [("a", described)]})
    assert answer(tables, "DESCRIBE t", {})[0]["column_type"] == described
    with tables.answering("FROM t", {"t": handed}, max_rows=9, **SECONDS) as (schema, batches):
        assert schema == handed.schema
        assert sum(batch.num_rows for batch in batches) == 1
