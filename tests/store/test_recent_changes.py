"""The changes that a store has in memory are those that it has in its tables, types and all."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from soaking import seeded

from headrace.ledger.entries import MAIN, Progress
from headrace.ledger.following import ChangeLimits, Followers, Token
from headrace.plan.tables import KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.duckdb.changes import recent
from headrace.store.duckdb.changes.layout import META, columns_of
from headrace.store.duckdb.changes.recent import RecentChanges
from headrace.store.duckdb.changes.shown import ShownVersion, read_shown
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.following import Follower
from headrace.testing.store.changing import PLACEMENTS, History
from headrace.testing.store.samples import (
    PARTITION_0,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.placement import OfRecord

KEPT = Followers((), frozenset({"hits"}), ChangeLimits(1_000, 1 << 40))
NESTED = {
    "STRING": ["a", "", None],
    "BINARY": [b"\x00", None],
    "BOOLEAN": [True, None],
    "INT": [-1, None],
    "BIGINT": [1 << 60, None],
    "FLOAT": [0.1, float("nan"), None],
    "DOUBLE": [0.1, float("nan"), None],
    "DECIMAL(38, 3)": [Decimal("-1.250"), None],
    "DATE": [date(1, 1, 1), None],
    "TIMESTAMP": [datetime(2026, 1, 1, tzinfo=UTC), None],
    "ARRAY<STRING>": [["a", None], [], None],
    "STRUCT<a: INT, b: ARRAY<DOUBLE>>": [{"a": 1, "b": [0.5]}, None],
    "MAP<STRING, BIGINT>": [[("k", 1)], None],
}


def in_memory(store: DuckDBStore, version: ShownVersion, after: int, upto: int) -> pa.Table | None:
    return store._keeping.recent.between(version.changes, after, upto)


def stored(snapshot: DuckDBSnapshot, version: ShownVersion, after: int, upto: int) -> pa.Table:
    columns = ", ".join(columns_of(version.relation))
    return snapshot._few(
        f"SELECT {META}, {columns} FROM {version.changes} "
        f"WHERE _commit > ? AND _commit <= ? ORDER BY _commit, _row",
        [after, upto],
    )


@pytest.mark.parametrize("kind", PLACEMENTS)
def test_memory_and_tables_say_the_same(tmp_path: Path, kind: str) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, kind, seeded(7))
    store.set_followers(history.epoch, KEPT, {"hits": history.table})
    compared = 0
    for _ in range(25):
        if history.draw.random() < 0.1:
            history.swap(wide=history.draw.random() < 0.5)
        history.turn()
        with store.open() as snapshot:
            head, version = snapshot.commits(), read_shown(snapshot._fetch, "hits")[-1]
            for after in range(max(version.since, head - 4), head + 1):
                found = in_memory(store, version, after, head)
                if found is not None:
                    assert found.equals(stored(snapshot, version, after, head)), (after, head)
                    compared += found.num_rows
                    check_page(store, snapshot, version, after)
    assert compared > 10
    store.close()


def check_page(
    store: DuckDBStore, snapshot: DuckDBSnapshot, version: ShownVersion, after: int
) -> None:
    """Compare what readers get with and without what is in memory."""
    token = Token(snapshot.store_id(), version.version, after)
    with store.open() as without:
        without._recent = RecentChanges()
        for max_rows in (1, 2, 1_000):
            page = snapshot.changes("hits", token, max_rows=max_rows)
            expected = without.changes("hits", token, max_rows=max_rows)
            assert page.rows.equals(expected.rows)
            assert page.rows.schema == expected.rows.schema
            assert page.token == expected.token
            assert page.at_head == expected.at_head


def test_every_type_is_as_the_store_has_it(tmp_path: Path) -> None:
    types = [parse_type(text) for text in NESTED]
    names = [f"o{at}" for at in range(len(types))]
    placed = [TableColumn(each.name, each.type) for each in OfRecord().columns]
    table = Table(
        "hits",
        "v1",
        (*placed, *(TableColumn(*each) for each in zip(names, types, strict=True))),
        OfRecord(),
        outputs=tuple(
            Output(f"c_{name}", Reference(name, type), type)
            for name, type in zip(names, types, strict=True)
        ),
        key=tuple(KeyPart(each.name, each.name, each.type) for each in placed),
    )
    store = DuckDBStore(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(table)], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    store.set_followers(epoch, KEPT, {"hits": table})
    longest = max(len(values) for values in NESTED.values())
    rows: list[tuple[Any, ...]] = [
        (0, at, *(values[min(at, len(values) - 1)] for values in NESTED.values()))
        for at in range(longest)
    ]
    store.commit(turn_of(planned(epoch, 1), {table: (delta(table, *rows),)}))
    with store.open() as snapshot:
        head, version = snapshot.commits(), read_shown(snapshot._fetch, "hits")[-1]
        found, expected = (
            in_memory(store, version, head - 1, head),
            stored(snapshot, version, head - 1, head),
        )
        assert found is not None
        assert found.schema == expected.schema
        # Not `equals`: NaN is not equal to itself.
        assert str(found.to_pylist()) == str(expected.to_pylist())
        token = Token(snapshot.store_id(), "v1", head - 1)
        page = snapshot.changes("hits", token, max_rows=10).rows
        snapshot._recent = RecentChanges()
        read = snapshot.changes("hits", token, max_rows=10).rows
        assert page.schema == read.schema
        assert str(page.to_pylist()) == str(read.to_pylist())
    store.close()


def changes_of(*commits: int) -> pa.Table:
    return pa.table({"_commit": pa.array(commits, pa.int64())})


def test_what_is_known_has_no_gap() -> None:
    known = RecentChanges()
    known.note(5, {"a": changes_of(5)})
    known.note(6, {})
    known.note(7, {"a": changes_of(7, 7), "b": changes_of(7)})
    assert known.between("a", 4, 7) == changes_of(5, 7, 7)
    assert known.between("a", 5, 6) == changes_of()
    assert known.between("a", 3, 7) is None
    assert known.between("a", 4, 8) is None, "the commit is not noted yet"
    assert known.between("b", 6, 7) == changes_of(7)
    assert known.between("b", 5, 7) is None
    known.note(9, {"a": changes_of(9)})  # 8 was something else
    assert known.between("a", 7, 9) is None
    assert known.between("a", 8, 9) == changes_of(9)
    assert known.between("b", 6, 7) is None
    known.note(10, {"a": None})
    assert known.between("a", 8, 9) is None
    known.note(11, {"a": changes_of(11)})
    assert known.between("a", 10, 11) == changes_of(11)
    known.forget()
    assert known.between("a", 10, 11) is None


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known = RecentChanges()
    for commit in range(1, recent.MAX_COMMITS + 3):
        known.note(commit, {"a": changes_of(commit)})
    last = recent.MAX_COMMITS + 2
    assert known.between("a", 1, last) is None
    assert known.between("a", 2, last) == changes_of(*range(3, last + 1))
    monkeypatch.setattr(recent, "MAX_BYTES", 20)
    known.note(last + 1, {"a": changes_of(last + 1)})
    assert known.between("a", last - 2, last + 1) is None
    assert known.between("a", last - 1, last + 1) == changes_of(last, last + 1)
    known.note(last + 2, {"a": changes_of(*[last + 2] * 10)})
    assert known.between("a", last + 1, last + 2) is None, "one commit is too large alone"


def test_what_is_in_memory_is_counted(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "forever", seeded(1))
    with Follower(store, "hits"):
        history.add([("a", 1, 1)])
        with store.open() as snapshot:
            few = snapshot.kept_changes()["hits"].held_bytes
        assert few > 0
        history.add([(key * 100, 1, 1) for key in "bcdefgh"])
        with store.open() as snapshot:
            many = snapshot.kept_changes()["hits"].held_bytes
        # Both the rows and their changes.
        assert many - few > 2 * 7 * 100
    store.close()
