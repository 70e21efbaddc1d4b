"""What is DuckDB's alone: its file, who may open it, a full disk, and its macros.

Method: files that are missing, foreign, of another release or in use; a limit on the size of files
stands in for a full disk, because the system then fails the same writes.
"""

import os
import stat
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import StoreBusy, StoreError, Unreachable
from headrace.store.duckdb.schema import SCHEMA, SCHEMA_VERSION
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import counts, read

FILL_THE_DISK = """
import resource, signal, sys
from headrace.errors import DiskFull
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import counts, delta, holding, planned, stream_holding, turn_of

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = counts()
store = DuckDBStore(sys.argv[1])
epoch = store.begin_epoch()
store.hold(epoch, [stream_holding(), holding(table)], {})
store.prepare(table)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
for turn in range(1, 100):
    rows = [(f"{turn} {n} {'x' * 50}", 1, 1, 1, 1) for n in range(500)]
    try:
        store.commit(turn_of(planned(epoch, turn), {table: (delta(table, *rows),)}))
    except DiskFull as error:
        print(turn, error)
        break
"""


def test_a_full_disk_is_said_and_only_the_turn_under_way_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    run = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path)], capture_output=True, text=True
    )
    turn, _, message = run.stdout.partition(" ")
    assert "the store's disk is full and nothing of this was committed" in message, run.stderr
    store = DuckDBStore(path)
    with store.open() as snapshot:
        assert snapshot.units() == {"main": int(turn) - 1}
    assert len(read(store, counts())) == (int(turn) - 1) * 500
    store.close()


def test_a_store_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "block" / "store.duckdb"
    with pytest.raises(Unreachable, match="no store yet: run `headrace run`"):
        DuckDBStore(path, read_only=True)
    assert not path.parent.exists()


def test_a_store_can_be_read_without_being_written(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    DuckDBStore(path).close()
    before = path.read_bytes()
    store = DuckDBStore(path, read_only=True)
    with store.open() as snapshot:
        assert snapshot.units() == {"main": 0}
    with pytest.raises(StoreError, match="read-only"):
        store.begin_epoch()
    store.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_that_this_process_has_open_is_busy(tmp_path: Path, read_only: bool) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    with pytest.raises(StoreBusy, match=r"has the store open\. While an engine runs, ask it"):
        DuckDBStore(store.path, read_only=read_only)
    store.begin_epoch()
    store.close()
    DuckDBStore(store.path).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_that_another_process_has_open_is_busy(tmp_path: Path, read_only: bool) -> None:
    code = (
        "import sys; from headrace.store.duckdb.store import DuckDBStore\n"
        "store = DuckDBStore(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    path = tmp_path / "store.duckdb"
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(StoreBusy):
        DuckDBStore(path, read_only=read_only)
    other.communicate()
    DuckDBStore(path, read_only=read_only).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_an_error(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "lock.duckdb"
    path.write_text("not a database " * 1000)
    with pytest.raises(StoreError, match="not a valid DuckDB database") as error:
        DuckDBStore(path, read_only=read_only)
    assert not isinstance(error.value, StoreBusy)


def test_a_database_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(
        StoreError, match="has no ledger, so its write-ahead log is damaged or another"
    ):
        DuckDBStore(path, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_another_release_is_left_as_it_is(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "store.duckdb"
    DuckDBStore(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE headrace.engine SET schema_version = 99")
        connection.execute("ALTER TABLE headrace.units DROP planned_ranges")
    for _ in range(2):  # the refusal lets go of the file
        with pytest.raises(
            StoreError, match=f"format 99, this one reads {SCHEMA_VERSION}"
        ) as error:
            DuckDBStore(path, read_only=read_only)
        assert "\n" not in str(error.value)


def test_a_name_that_duckdb_would_confuse_with_the_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Call the file store\.duckdb"):
        DuckDBStore(tmp_path / "headrace.duckdb")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="its folder cannot be made"):
        DuckDBStore(tmp_path / "file" / "store.duckdb")


def test_only_its_owner_can_read_the_store(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "kept" / "store.duckdb")
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(store.path.parent).st_mode) == 0o700
    store.close()


def open_macros() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for statement in SCHEMA:
        connection.execute(statement)
    return connection


def test_the_exact_average_is_exact() -> None:
    with open_macros() as macros:

        @settings(max_examples=200, deadline=None)
        @given(
            total=st.integers(min_value=0, max_value=10**32),
            negative=st.booleans(),
            n=st.integers(min_value=1, max_value=10**9),
            scale=st.integers(min_value=0, max_value=24),
        )
        def check(total: int, negative: bool, n: int, scale: int) -> None:
            total %= n * 10**24  # what n values of DECIMAL(24, s) can add up to
            with localcontext() as context:
                context.prec = 80
                exact = Decimal(-total if negative else total).scaleb(-scale)
                found = macros.execute(
                    f"SELECT headrace.exact_average('{exact:f}'::DECIMAL(38,{scale}), ?, ?)",
                    [n, scale + 4],
                ).fetchall()[0][0]
                step = Decimal(1).scaleb(-scale - 4)
                assert Decimal(found) == (exact / n).quantize(step, ROUND_HALF_UP)

        check()


def test_the_average_of_nothing_is_null() -> None:
    with open_macros() as macros:
        sql = "SELECT headrace.exact_average(CAST(NULL AS DECIMAL(38,2)), 0, 6)"
        assert macros.execute(sql).fetchall() == [(None,)]
