"""Queries are answered in processes of their own: what is answered, and what they cannot reach.

Method: real processes over a real store with one view. What is refused, and with which words, is
compared with the store's own answer.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from refusals import CLOSED_FUNCTIONS, NOT_READING, OTHER_WAYS_OUT

from headrace.errors import EngineError, HeadraceError, QueryRefused, QueryTooLarge, TableNotFound
from headrace.serve.queries import pool as pool_module
from headrace.serve.queries.exports import Exports
from headrace.serve.queries.forms import Form
from headrace.serve.queries.pool import QueryPool
from headrace.serve.queries.worker import Worker
from serve.asking import MB, Filled, rows_of


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "loot.csv").write_text("a\n1\n")
    with duckdb.connect(str(folder / "loot.duckdb")) as connection:
        connection.execute("CREATE TABLE loot AS SELECT 42 AS a")
    filled = Filled(folder)
    yield filled
    filled.store.close()


@pytest.fixture(scope="module")
def pool(filled: Filled) -> Iterator[QueryPool]:
    os.environ["A_SECRET_OF_THE_ENGINE"] = "swordfish"
    with filled.pool(seconds=30.0, answer_bytes=4 * MB) as pool:
        yield pool
    del os.environ["A_SECRET_OF_THE_ENGINE"]


ROWS = [["a", "1.00", 1, 1, 1, False], ["b", "3.00", 4, 5, 2, False]]


def test_an_answer_says_the_commit_and_the_positions_that_it_was_read_at(
    filled: Filled, pool: QueryPool
) -> None:
    with filled.store.open() as snapshot:
        commit = snapshot.commits()
    answer = pool.ask("FROM hits ORDER BY k", form=Form.JSON)
    assert (answer.rows, answer.commit) == (2, commit)
    assert answer.positions == {"hits": "web.clicks/0@10"}
    assert answer.position == "web.clicks/0@10"
    told = json.loads(b"".join(answer.json_chunks()))
    assert told["rows"] == ROWS
    assert (told["commit"], told["positions"]) == (commit, {"hits": "web.clicks/0@10"})
    assert told["columns"][:2] == [
        {"name": "k", "type": "string"},
        {"name": "total", "type": "decimal128(38, 2)"},
    ]
    assert answer.file.closed
    errors = pool.ask('SELECT count(*) FROM "hits.errors", hits', form=Form.JSON)
    assert errors.positions == {"hits": "web.clicks/0@10", "hits.errors": "web.clicks/0@10"}


def test_an_answer_comes_in_the_form_that_is_asked_for(filled: Filled, pool: QueryPool) -> None:
    sql = "SELECT k, total, NULL AS nothing, [1, 2] AS list FROM hits ORDER BY k"
    with filled.store.open() as snapshot:
        expected = snapshot.query(sql)
    assert pool.ask(sql, form=Form.ARROW).table().equals(expected)
    content = b"".join(pool.ask(sql, form=Form.CSV).chunks())
    assert content == b'k,total,nothing,list\na,1.00,,"[1, 2]"\nb,3.00,,"[1, 2]"\n'
    empty = pool.ask("SELECT k FROM hits WHERE false", form=Form.JSON)
    assert json.loads(b"".join(empty.json_chunks()))["rows"] == []
    assert pool.ask("SELECT k FROM hits WHERE false").table().schema.names == ["k"]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH x AS (FROM hits) SELECT count(*) FROM x", [[2]]),
        ("SELECT sum(total) FROM hits", [["4.00"]]),
        ("SELECT a.k FROM hits a, hits b WHERE a.k < b.k", [["a"]]),
        ("SHOW TABLES", [["hits"], ["hits.errors"]]),
        ('SELECT count(*) FROM "hits.errors"', [[0]]),
        ("VALUES (1), (2)", [[1], [2]]),
        ("SELECT unnest(range(2))", [[0], [1]]),
        ("SELECT count(*) FROM information_schema.tables", [[2]]),
        ("SELECT make_timestamptz(0)::VARCHAR", [["1970-01-01 00:00:00+00"]]),
        ("SELECT CAST(TIMESTAMP '2026-01-01' AS TIMESTAMPTZ)", [["2026-01-01T00:00:00Z"]]),
    ],
)
def test_what_reads_tables_is_answered(pool: QueryPool, sql: str, rows: list[list[Any]]) -> None:
    assert rows_of(pool, sql) == rows


def outcome(ask: Any, sql: str) -> tuple[type, str]:
    try:
        ask(sql)
    except HeadraceError as error:
        return type(error), str(error)
    raise AssertionError(f"{sql} is answered")


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC 1",
        "SELECT nobody FROM hits",
        "SELECT foo(1)",
        "SELECT k FROM hits GROUP BY total",
        "SELECT CAST(k AS INTEGER) FROM hits",
        "FROM nowhere",
        "SELECT error('here') FROM hits",
        "SELECT CASE WHEN range = 9000 THEN error('late') ELSE 'x' END FROM range(10000)",
        *(sql for sql in (*NOT_READING, *CLOSED_FUNCTIONS)),
    ],
)
def test_a_refusal_has_the_words_that_the_store_has(
    filled: Filled, pool: QueryPool, sql: str
) -> None:
    asked = sql.format(folder=filled.folder)
    with filled.store.open() as snapshot:
        expected = outcome(snapshot.query, asked)
    assert outcome(pool.ask, asked) == expected
    assert not (filled.folder / "out.csv").exists()


@pytest.mark.parametrize(
    "sql",
    [
        *OTHER_WAYS_OUT,
        "FROM headrace.units",
        "FROM headrace.engine",
        "FROM store.headrace.units",
        "FROM python_arrow_scan()",
        "FROM arrow_scan(1, 1, 1)",
        "FROM '/proc/self/environ'",
        "SELECT getenv('PATH')",
        "SELECT getvariable('x'), current_setting('threads')",
        "FROM duckdb_settings()",
        "FROM 'file:///etc/passwd'",
    ],
)
def test_other_ways_out_are_refused(filled: Filled, pool: QueryPool, sql: str) -> None:
    with pytest.raises(QueryRefused):
        pool.ask(sql.format(folder=filled.folder))


def test_nothing_of_another_schema_is_listed(pool: QueryPool) -> None:
    listed = rows_of(pool, "SELECT DISTINCT schema_name FROM duckdb_views() WHERE NOT internal")
    assert listed == [["main"]]
    assert rows_of(pool, "SELECT count(*) FROM duckdb_tables()") == [[0]]


def test_a_process_has_nothing_of_the_engines_environment(pool: QueryPool) -> None:
    rows_of(pool, "SELECT 1")
    for pid in pool.processes():
        assert b"swordfish" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_a_commit_is_seen_by_the_next_query(tmp_path: Path) -> None:
    filled = Filled(tmp_path)
    with filled.pool(workers=1) as pool:
        first = pool.ask("SELECT sum(_events) FROM hits")
        filled.turn(("a", 5, 5, 5, 5), ("c", 1, 1, 1, 1))
        second = pool.ask("SELECT sum(_events) FROM hits")
        assert second.commit == first.commit + 1
        assert second.positions == {"hits": "web.clicks/0@20"}
        assert [first.table()[0][0].as_py(), second.table()[0][0].as_py()] == [3, 9]
        with pytest.raises(TableNotFound):
            pool.ask("FROM visits")
        filled.add_view("visits")
        assert rows_of(pool, "SELECT count(*) FROM visits, hits") == [[0]]
        filled.store.drop(filled.epoch, [held for held in held_by(filled) if held.name == "visits"])
        with pytest.raises(TableNotFound):
            pool.ask("FROM visits")
    filled.store.close()


def held_by(filled: Filled) -> list[Any]:
    with filled.store.open() as snapshot:
        return list(snapshot.holdings())


def test_an_answer_over_the_limits_is_refused(pool: QueryPool) -> None:
    with pytest.raises(QueryRefused, match="more than 5 rows; add LIMIT 5"):
        pool.ask("FROM range(6)", max_rows=5)
    with pytest.raises(QueryRefused, match=r"the answer has more than 4194304 bytes; ask for"):
        pool.ask("SELECT repeat('x', 1000000) FROM range(10)", form=Form.ARROW)
    assert rows_of(pool, "FROM range(5)", max_rows=5) == [[0], [1], [2], [3], [4]]


def many(rows: int) -> pa.Table:
    numbers = pa.array(range(rows), pa.int64())
    names = pa.array([f"card {number:060}" for number in range(rows)])
    decimals = numbers.cast(pa.decimal128(38, 2))
    columns = {"k": names, "_events": numbers, "total": decimals, "least": numbers}
    return pa.table({**columns, "greatest": numbers})


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    filled = Filled(tmp_path_factory.mktemp("large"))
    filled.fold(many(100_000))
    yield filled
    filled.store.close()


def export(exports: Exports, needs: dict[str, list[str]]) -> Any:
    tables = exports.known().tables
    return exports.hand_out(needs, tables, deadline=float("inf"), cancelled=lambda: False)


def test_a_query_that_reads_too_much_is_told_what_to_do(large: Filled) -> None:
    exports = Exports(large.store, most_bytes=2 * MB, folder=large.folder)
    exports.known()
    before = open_files()
    for columns in (["_events", "total", "least", "greatest"], ["k"]):
        # Of the first the rows alone are too many; of the second that shows while it is written.
        with pytest.raises(QueryTooLarge) as refused:
            export(exports, {"hits": columns})
        assert str(refused.value) == (
            "the query reads more than the 2 MB of columns that one query is handed (hits); name "
            "fewer columns, ask for a smaller view, or take the rows out: `headrace export hits "
            "--output hits.parquet`"
        )
    assert open_files() == before
    with large.pool(export_bytes=2 * MB, workers=1) as pool:
        with pytest.raises(QueryTooLarge):
            pool.ask("SELECT max(k) FROM hits")
        assert rows_of(pool, "SELECT count(*), max(least) FROM hits") == [[100_002, 99_999]]


def test_columns_are_exported_once_for_a_commit_and_dropped_when_none_reads_them(
    large: Filled,
) -> None:
    exports = Exports(large.store, most_bytes=64 * MB, folder=large.folder, kept_seconds=0.0)
    before = open_files()
    first = export(exports, {"hits": ["least", "greatest"]})
    second = export(exports, {"hits": ["greatest"]})
    assert first.descriptors() == second.descriptors()
    with os.fdopen(os.dup(first.descriptors()[0]), "rb") as file:
        columns = pa.ipc.open_file(file).read_all()
    assert (columns.num_rows, max(columns["greatest"].to_pylist())) == (100_002, 99_999)
    exports.give_back(first)
    assert exports.tidy()  # the second has them
    large.turn(("z", 1, 1, 1, 1))
    third = export(exports, {"hits": ["greatest"]})
    assert third.descriptors() != second.descriptors()
    os.fstat(second.descriptors()[0])  # it is open as long as a query has it
    exports.give_back(second)
    exports.give_back(third)
    assert not exports.tidy()
    assert open_files() == before


def test_what_is_kept_for_others_is_bounded(large: Filled) -> None:
    exports = Exports(large.store, most_bytes=2 * MB, folder=large.folder)
    before = open_files()
    for columns in (["least"], ["greatest"], ["_events"], ["least"]):
        exports.give_back(export(exports, {"hits": columns}))
    assert open_files() - before == 2  # each has 800,000 bytes
    exports.close()
    assert open_files() == before


@pytest.mark.parametrize("place", ["/nowhere", "/proc"])
def test_without_shared_memory_the_runtime_folder_is_used(
    large: Filled, tmp_path: Path, place: str
) -> None:
    exports = Exports(
        large.store, most_bytes=64 * MB, folder=tmp_path, shared=Path(place), kept_seconds=0.0
    )
    handed = export(exports, {"hits": ["least"]})
    device = os.fstat(handed.descriptors()[0]).st_dev
    assert device == tmp_path.stat().st_dev
    assert list(tmp_path.iterdir()) == []  # it has no name
    exports.give_back(handed)
    exports.close()


def test_a_query_waits_for_the_first_process_however_long_that_takes_to_start(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just after a start nothing is under way, so there are not too many queries."""

    class Slow(Worker):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            time.sleep(0.5)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(pool_module, "Worker", Slow)
    with filled.pool(patience_seconds=0.1) as pool:
        assert pool.processes() == []
        assert pool.ask("FROM hits").rows == 2


def test_why_no_process_starts_is_told_without_waiting_for_one(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Worker:
        raise EngineError("no process starts")

    monkeypatch.setattr(pool_module, "Worker", fail)
    with (
        filled.pool(patience_seconds=0.1) as pool,
        pytest.raises(EngineError, match="no process starts"),
    ):
        pool.ask("FROM hits")
