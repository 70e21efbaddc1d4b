"""Queries from outside read the project's tables and nothing else.

Method: every way out of the tables that DuckDB has is tried in a store that holds one view, beside
a file and a database that are worth reading; each must be refused with a text that says why.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from refusals import CLOSED_FUNCTIONS, HIDDEN, MADE, NOT_READING, OTHER_WAYS_OUT

from headrace.errors import QueryRefused, StoreError
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import counts, delta, holding, planned, stream_holding, turn_of

LOOT = pa.table({"a": [1]})  # what a replacement scan would find in Python


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBStore]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "loot.csv").write_text("a\n1\n")
    with duckdb.connect(str(folder / "loot.duckdb")) as connection:
        connection.execute("CREATE TABLE loot AS SELECT 42 AS a")
    store = DuckDBStore(folder / "store.duckdb")
    table = counts()
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(table)], {})
    store.prepare(table)
    store.show(epoch, "main", [table])
    store.commit(turn_of(planned(epoch, 1), {table: (delta(table, ("a", 1, 1, 1, 1)),)}))
    yield store
    store.close()


@pytest.mark.parametrize("sql", NOT_READING)
def test_what_does_not_read_is_refused(store: DuckDBStore, sql: str) -> None:
    with (
        store.open() as snapshot,
        pytest.raises(QueryRefused, match="only one reading statement is answered here"),
    ):
        snapshot.query(sql.format(folder=store.path.parent))
    assert not (store.path.parent / "out.csv").exists()


def test_an_explain_of_what_does_not_read_is_refused_and_changes_nothing(
    store: DuckDBStore,
) -> None:
    folder = store.path.parent
    asked = [f"{head} {sql}" for head in ("EXPLAIN", "EXPLAIN ANALYZE") for sql in MADE] + HIDDEN
    with store.open() as snapshot:
        before = [snapshot.query(f"FROM {table}") for table in ("headrace.engine", "hits")]
        for sql in asked:
            with pytest.raises(QueryRefused):
                snapshot.query(sql.format(folder=folder))
        # The transaction is still the one that reads only.
        with pytest.raises(QueryRefused, match="read-only"):
            snapshot.query("WITH x AS (DELETE FROM headrace.engine RETURNING *) FROM x")
    with store.open() as snapshot:
        after = [snapshot.query(f"FROM {table}") for table in ("headrace.engine", "hits")]
        assert after == before
        assert snapshot.query("SHOW TABLES").num_rows == 2
    assert not (folder / "out.csv").exists()


def test_text_that_is_not_unicode_is_refused(store: DuckDBStore) -> None:
    with (
        store.open() as snapshot,
        pytest.raises(QueryRefused, match="half of a surrogate pair stands alone at character 9"),
    ):
        snapshot.query("SELECT '\ud800'")


@pytest.mark.parametrize("sql", CLOSED_FUNCTIONS)
def test_functions_that_leave_the_tables_are_refused_by_name(store: DuckDBStore, sql: str) -> None:
    with (
        store.open() as snapshot,
        pytest.raises(QueryRefused, match=r"\(\.\.\.\) is not answered here: a query reads the"),
    ):
        snapshot.query(sql.format(folder=store.path.parent))


@pytest.mark.parametrize("sql", OTHER_WAYS_OUT)
def test_other_ways_out_fail_and_change_nothing(store: DuckDBStore, sql: str) -> None:
    LOOT_OF_A_CALLER = LOOT  # noqa: N806, F841 - a replacement scan would look here
    with store.open() as snapshot:
        before = snapshot.query("FROM headrace.engine").to_pylist()
        with pytest.raises(QueryRefused):
            snapshot.query(sql.format(folder=store.path.parent))
    with store.open() as snapshot:
        assert snapshot.query("FROM headrace.engine").to_pylist() == before


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT k, _events FROM hits", 1),
        ("FROM hits", 1),
        ("WITH x AS (FROM hits) SELECT count(*) FROM x", 1),
        ("VALUES (1), (2)", 2),
        ("DESCRIBE hits", 6),
        ("SHOW TABLES", 2),
        ("SUMMARIZE hits", 6),
        ("EXPLAIN SELECT * FROM hits", 1),
        ("-- explain it\nEXPLAIN /* ) */ (SELECT * FROM hits);", 1),
        ("EXPLAIN ANALYZE (FORMAT 'json') FROM hits", 1),
        ("EXPLAIN DESCRIBE hits", 1),
        ("SELECT unnest(range(3))", 3),
        ("SELECT 1;", 1),
        ("SELECT count(*) FROM information_schema.tables", 1),
        ("SELECT 'read_blob(1)' AS text, 1 AS glob", 1),
        ("SELECT * FROM hits WHERE false", 0),
    ],
)
def test_what_reads_tables_is_answered(store: DuckDBStore, sql: str, rows: int) -> None:
    with store.open() as snapshot:
        assert snapshot.query(sql).num_rows == rows


def test_times_are_answered_in_utc_wherever_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        store = DuckDBStore(tmp_path / "store.duckdb")
        with store.open() as snapshot:
            answer = snapshot.query(
                "SELECT make_timestamptz(0) AS t, CAST(make_timestamptz(0) AS VARCHAR) AS text"
            )
        store.close()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert answer.schema.field("t").type == pa.timestamp("us", "UTC")
    assert answer["text"].to_pylist() == ["1970-01-01 00:00:00+00"]


def test_an_error_after_the_first_rows_is_refused_with_its_text(store: DuckDBStore) -> None:
    sql = "SELECT CASE WHEN range = 900000 THEN error('here') ELSE 'x' END FROM range(1000000)"
    with store.open() as snapshot, pytest.raises(QueryRefused, match=r"the query fails: .*here"):
        snapshot.query(sql, max_rows=None)


def test_a_query_that_streams_is_limited_in_time_too(store: DuckDBStore) -> None:
    with store.open() as snapshot, pytest.raises(QueryRefused, match="took more than"):
        snapshot.query("FROM range(100000000000)", max_rows=10**12, max_seconds=0.1)


def test_a_wrong_query_says_what_is_wrong(store: DuckDBStore) -> None:
    with store.open() as snapshot:
        with pytest.raises(QueryRefused, match="cannot be parsed"):
            snapshot.query("SELEC 1")
        with pytest.raises(QueryRefused, match=r"the query fails: .*nobody"):
            snapshot.query("SELECT nobody FROM hits")


def test_closing_ends_a_query_under_way(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    failures: list[BaseException] = []
    begun = threading.Event()

    def ask() -> None:
        try:
            with store.open() as snapshot:
                begun.set()
                snapshot.query("SELECT count(*) FROM range(10000000) a, range(10000000) b")
        except QueryRefused as error:
            failures.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    begun.wait()
    time.sleep(0.1)
    store.close()
    asker.join(10)
    assert not asker.is_alive()
    assert len(failures) == 1
    with pytest.raises(StoreError), store.open():
        pass
