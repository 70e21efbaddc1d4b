"""What a store has in memory of changes is right after tries that fail, and whoever commits."""

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from headrace import faults
from headrace.errors import TokenTooOld
from headrace.ledger.entries import MAIN, Owner, Progress
from headrace.ledger.following import ChangeLimits, Followers
from headrace.plan.tables import Having, Table
from headrace.plan.terms import Literal, Operation, Operator, Reference
from headrace.schema.types import parse_type
from headrace.store.duckdb import file
from headrace.store.duckdb.changes import keeping, making
from headrace.store.duckdb.changes.images import count_near
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.following import Follower
from headrace.testing.store import changing
from headrace.testing.store.changing import History
from headrace.testing.store.samples import (
    PARTITION_0,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import Clock

OTHER = "view:b@v1"
SECONDS = 30.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDBStore]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


def two_views(store: DuckDBStore, *, unit: str = MAIN) -> tuple[int, Table, Table]:
    """Let readers see two views, the second of a unit; return the epoch and their tables."""
    a, b = (replace(changing.table_of("forever", "v1"), view=view) for view in "ab")
    epoch = store.begin_epoch()
    held = [stream_holding(), holding(a), holding(b, unit)]
    store.hold(epoch, held, {each: {PARTITION_0: Progress()} for each in {MAIN, unit}})
    for table in (a, b):
        store.prepare(table)
    store.show(epoch, MAIN, [a, b])
    return epoch, a, b


def test_a_reader_that_is_let_go_in_a_try_that_fails_is_told(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The try after it lets the reader go again, instead of making no changes for it."""
    monkeypatch.setattr(keeping, "_PRUNE_COMMITS", 1)
    monkeypatch.setattr(file, "PAUSES_SECONDS", (0, 0, 0))
    epoch, *tables = two_views(store)
    limits = ChangeLimits(commits=2, bytes=1 << 40)
    shown = {table.view: table for table in tables}
    store.set_followers(epoch, Followers((), frozenset(), limits), shown)
    slow, quick = Follower(store, "a"), Follower(store, "b")
    lacking = [duckdb.OutOfMemoryException("failed to allocate data")]

    def lack_memory() -> None:
        if lacking:
            raise lacking.pop()

    for number in range(1, 6):
        if number == 4:
            faults.arm("before_commit", lack_memory)
        deltas = {table: (delta(table, ("x", 1, number)),) for table in tables}
        store.commit(turn_of(planned(epoch, number), deltas))
        quick.read()
    faults.disarm()
    assert not lacking
    with pytest.raises(TokenTooOld):
        slow.read()


class Paused(dict[Owner, int]):
    """Waits where one thread reads it, before that thread writes what it has read."""

    def __init__(self, known: dict[Owner, int], wait: Callable[[], None]) -> None:
        super().__init__(known)
        self._wait = wait

    def keys(self):  # type: ignore[no-untyped-def]
        self._wait()
        return super().keys()

    def __iter__(self) -> Iterator[Owner]:  # without it, `{**self}` does not ask for the keys
        return super().__iter__()


def test_units_that_commit_at_once_lose_no_watermark(store: DuckDBStore) -> None:
    epoch, a, b = two_views(store, unit=OTHER)
    followers = [Follower(store, "a"), Follower(store, "b")]
    turns = {a: 0, b: 0}

    def turn(table: Table, watermark_us: int) -> None:
        turns[table] += 1
        plan = planned(epoch, turns[table], unit=MAIN if table is a else OTHER)
        place = Progress(turns[table] * 10, Clock(watermark_us, watermark_us))
        rows = (delta(table, ("x", 1, turns[table])),)
        store.commit(turn_of(plan, {table: rows}, progress={PARTITION_0: place}))

    turn(a, 1)
    turn(b, 1)
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is other:
            inside.set()
            go_on.wait(1)

    known = store._keeping._watermarks
    assert known is not None
    store._keeping._watermarks = Paused(known, wait)
    other = threading.Thread(target=turn, args=(b, 5))
    other.start()
    assert inside.wait(SECONDS)
    turn(a, 20)
    go_on.set()
    other.join()
    with store.open() as snapshot:
        assert store._keeping._known_watermarks() == snapshot.watermarks()
    for each in followers:
        each.close()


def test_what_is_read_is_bounded_where_most_rows_are_not_shown(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With HAVING the images that are carried over are few however many rows there are."""
    bigint, boolean = parse_type("BIGINT"), parse_type("BOOLEAN")
    many = Operation(
        Operator.GREATER, (Reference("most", bigint), Literal("100", type=bigint)), boolean
    )
    table_of = changing.table_of

    def with_having(kind: str, version: str, **_: bool) -> Table:
        table = table_of(kind, version, retention=False)
        return replace(table, having=Having(many, "most > 100"))

    monkeypatch.setattr(changing, "table_of", with_having)
    monkeypatch.setattr(making, "_NEAR_ROWS", 10)
    read_near, counts, carried = making.read_near, list[int](), list[bool]()

    def counting(*asked):  # type: ignore[no-untyped-def]
        counts.append(count_near(*asked[:3]))
        return read_near(*asked)

    monkeypatch.setattr(making, "read_near", counting)
    history = History(store, "forever", random.Random(1))
    with Follower(store, "hits"):
        for turn in range(40):
            history.add([(f"{turn}-{number}", 1, 1) for number in range(5)])
            carried.append(bool(store._keeping._carried))
    assert any(carried)
    assert max(counts) <= 10 + 5 * making._NEAR_FACTOR + 5
