"""The store's memory does not suffice: one view is at fault, never the engine, never a reader.

Method: a store of 30 MB, deltas that are too large for it, and a query that holds what there is.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from headrace.errors import MergeFailed, QueryRefused, StoreError
from headrace.plan.tables import Table
from headrace.store.duckdb import file
from headrace.store.duckdb import snapshot as snapshot_module
from headrace.store.duckdb.errors import lacks_memory, translated
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import counts, holding, planned, stream_holding, turn_of

LARGE, SMALL = counts("large"), counts("small")
#: Sorted in memory: it holds nearly all there is for as long as it runs.
GREEDY = "SELECT max(s) FROM (SELECT list(repeat('x', 1000) || i) AS s FROM range(20000) r(i))"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DuckDBStore]:
    monkeypatch.setitem(file._CONFIG, "memory_limit", "30MB")
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


@pytest.fixture
def epoch(store: DuckDBStore) -> int:
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(LARGE), holding(SMALL)], {})
    for table in (LARGE, SMALL):
        store.prepare(table)
    return epoch


def rows(table: Table, count: int, width: int) -> pa.Table:
    """Return rows whose keys do not compress."""
    random = Random(0)
    keys = [random.randbytes(width // 2).hex() for _ in range(count)]
    ones = pa.array([1] * count)
    schema = pa.schema([(each.name, each.type.arrow) for each in table.columns])
    return pa.table([keys, ones, ones, ones, ones], schema.names).cast(schema)


def test_the_view_that_needs_most_is_set_aside_and_the_others_are_committed(
    store: DuckDBStore, epoch: int
) -> None:
    deltas = {LARGE: (rows(LARGE, 5_000, 20_000),), SMALL: (rows(SMALL, 1_000, 10),)}
    plan = planned(epoch, 1)
    with pytest.raises(MergeFailed, match="view large: the store has too little memory") as failed:
        store.commit(turn_of(plan, deltas))
    assert failed.value.view == "large"
    # Whichever statement it is that fails.
    with pytest.raises(MergeFailed) as failed:
        store.commit(turn_of(plan, dict(reversed(deltas.items()))))
    assert failed.value.view == "large"
    store.commit(turn_of(plan, {SMALL: deltas[SMALL]}))
    with store.open() as snapshot:
        assert snapshot.states(LARGE).num_rows == 0
        assert snapshot.states(SMALL).num_rows == 1_000
        assert snapshot.units() == {"main": 1}


def test_a_query_that_holds_the_memory_is_ended_and_the_turn_is_committed(
    store: DuckDBStore, epoch: int
) -> None:
    began = threading.Event()
    refused: list[QueryRefused] = []

    def ask() -> None:
        began.set()
        while not refused:
            try:
                with store.open() as snapshot:
                    snapshot.query(GREEDY)
            except QueryRefused as error:
                if "ended the query" in str(error):
                    refused.append(error)

    reader = threading.Thread(target=ask, daemon=True)
    reader.start()
    began.wait()
    turn = 0
    while not refused:
        turn += 1
        assert turn < 300
        delta = rows(SMALL, 10_000, 300)
        store.commit(turn_of(planned(epoch, turn), {SMALL: (delta,)}))
    reader.join()
    assert "Ask again" in str(refused[0])
    with store.open() as snapshot:
        assert snapshot.units() == {"main": turn}


def test_queries_that_are_asked_again_at_once_do_not_keep_the_memory_from_a_turn(
    store: DuckDBStore, epoch: int
) -> None:
    stop = threading.Event()
    asked = threading.Semaphore(0)

    def ask() -> None:
        while not stop.is_set():
            asked.release()
            with suppress(QueryRefused, StoreError), store.open() as snapshot:
                snapshot.query(GREEDY)

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(1, 6):
            for _ in readers:
                asked.acquire()
            delta = rows(SMALL, 10_000, 300)
            store.commit(turn_of(planned(epoch, turn), {SMALL: (delta,)}))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    with store.open() as snapshot:
        assert snapshot.units() == {"main": 5}


class GivenUp:
    """A connection to a database that DuckDB gives up in a commit, before it is made or after."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, made: bool) -> None:
        self._connection = connection
        self._made = made
        self._is_given_up = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: Any, *parameters: Any) -> Any:
        if statement == "COMMIT" and self._made:
            self._connection.execute(statement)
        self._is_given_up |= statement == "COMMIT"
        if self._is_given_up:
            raise duckdb.FatalException("FATAL Error: Failed to rollback transaction")
        return self._connection.execute(statement, *parameters)


@pytest.mark.parametrize("made", [False, True])
def test_a_database_that_duckdb_gives_up_in_a_commit_is_opened_anew(
    store: DuckDBStore, epoch: int, made: bool
) -> None:
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with suppress(StoreError, QueryRefused), store.open() as snapshot:
                snapshot.holdings()
                snapshot.query("SELECT 1")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        store.commit(turn_of(planned(epoch, 1), {SMALL: (rows(SMALL, 10, 10),)}))
        store._file._writer = GivenUp(store._file._writer, made=made)
        store.commit(turn_of(planned(epoch, 2), {SMALL: (rows(SMALL, 20, 20),)}))
    finally:
        stop.set()
        reader.join()
    assert not isinstance(store._file._writer, GivenUp)
    with store.open() as snapshot:
        assert snapshot.units() == {"main": 2}
        assert snapshot.states(SMALL).num_rows == 30
        with pytest.raises(QueryRefused):
            snapshot.query("SELECT * FROM read_text('/etc/hostname')")
    with pytest.raises(duckdb.Error, match="locked"):
        store._file._writer.execute("SET enable_external_access = true")


class Stuck:
    """A connection that has no memory to commit, nor to roll back, however long it waits."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: Any, *parameters: Any) -> Any:
        if statement in ("COMMIT", "ROLLBACK"):
            raise duckdb.OutOfMemoryException("failed to pin block (28.9 MiB/28.6 MiB used)")
        return self._connection.execute(statement, *parameters)


def test_a_transaction_that_cannot_be_rolled_back_does_not_end_all_that_follow(
    store: DuckDBStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "PAUSES_SECONDS", (0, 0, 0))
    store.commit(turn_of(planned(epoch, 1), {SMALL: (rows(SMALL, 10, 10),)}))
    store._file._writer = Stuck(store._file._writer)
    for turn in (2, 3):
        store.commit(turn_of(planned(epoch, turn), {SMALL: (rows(SMALL, 10 * turn, 20),)}))
    with store.open() as snapshot:
        assert snapshot.units() == {"main": 3}
        assert snapshot.states(SMALL).num_rows == 40  # the keys of turn 2 are among those of turn 3


def test_the_engines_own_reads_are_not_ended(store: DuckDBStore, epoch: int) -> None:
    stop = threading.Event()
    ended: list[StoreError] = []

    def read() -> None:
        while not stop.is_set():
            try:
                with store.open() as snapshot:
                    snapshot.holdings()
                    snapshot.manifests()
            except StoreError as error:
                if not lacks_memory(error):  # so small a store may have none left for a moment
                    ended.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    large = rows(LARGE, 5_000, 20_000)
    try:
        for _ in range(3):
            with pytest.raises(MergeFailed):
                store.commit(turn_of(planned(epoch, 1), {LARGE: (large,)}))
    finally:
        stop.set()
        reader.join()
    assert ended == []


# The engine's own reads find no memory for a moment.


class Starved:
    """A connection whose next queries find no memory: each then fails in DuckDB itself."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.failures = 0

    def _starve(self) -> None:
        if self.failures:
            self.failures -= 1
            self.connection.execute("SELECT list(repeat('x', 1000) || i) FROM range(200_000) r(i)")

    def execute(self, sql: str | duckdb.Statement, *arguments: Any) -> Any:
        if not (isinstance(sql, str) and sql.startswith(("ROLLBACK", "BEGIN"))):
            self._starve()
        return self.connection.execute(sql, *arguments)

    def sql(self, sql: str) -> Any:
        self._starve()
        return self.connection.sql(sql)


@pytest.fixture
def starved(
    store: DuckDBStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[DuckDBSnapshot, Starved]]:
    monkeypatch.setattr(snapshot_module, "PAUSES_SECONDS", (0, 0, 0))
    with store.open() as snapshot:
        connection = Starved(snapshot._connection)
        monkeypatch.setattr(snapshot, "_connection", connection)
        yield snapshot, connection


@pytest.mark.parametrize("failures", [0, 1, 3])
@pytest.mark.parametrize(
    "read",
    [
        lambda snapshot: (
            [each.name for each in snapshot.holdings()] == ["clicks", "large", "small"]
        ),
        lambda snapshot: snapshot.states(SMALL).num_rows == 0,
        lambda snapshot: snapshot.kept_changes() == {},
    ],
    ids=["rows", "Arrow", "several queries"],
)
def test_the_first_read_is_tried_again(
    starved: tuple[DuckDBSnapshot, Starved], read: Callable[[DuckDBSnapshot], bool], failures: int
) -> None:
    snapshot, connection = starved
    connection.failures = failures
    assert read(snapshot)
    assert connection.failures == 0


def test_a_commit_that_lacks_memory_is_told_from_other_failures() -> None:
    said = "Failed to commit: failed to pin block of size 256.0 KiB (28.9 MiB/28.6 MiB used)"
    for text, expected in ((said, True), ("Failed to commit: there was a conflict", False)):
        with pytest.raises(StoreError) as failed, translated():
            raise duckdb.TransactionException(text)
        assert lacks_memory(failed.value) is expected


def test_a_read_is_not_tried_for_ever(starved: tuple[DuckDBSnapshot, Starved]) -> None:
    snapshot, connection = starved
    connection.failures = 100
    with pytest.raises(StoreError) as failed:
        snapshot.holdings()
    assert lacks_memory(failed.value)


def test_what_is_read_later_is_of_the_same_state_or_fails(
    starved: tuple[DuckDBSnapshot, Starved],
) -> None:
    snapshot, connection = starved
    assert snapshot.units() == {"main": 0}
    connection.failures = 1
    with pytest.raises(StoreError) as failed:
        snapshot.holdings()
    assert lacks_memory(failed.value)


def test_a_snapshot_is_opened_when_there_is_memory_again(
    starved: tuple[DuckDBSnapshot, Starved],
) -> None:
    snapshot, connection = starved
    connection.execute("ROLLBACK")
    connection.failures = 2
    snapshot.begin()
    assert connection.failures == 0
    assert snapshot.units() == {"main": 0}
