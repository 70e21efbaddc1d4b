"""Rows that readers ask for by conditions are those of the view's public name, at every commit.

So is what is said of where the view stands, which commits bring up to date in memory.

Method: random turns and swaps of a view of every placement, without Spark. The statement for some
rows reads the table of the version with W as a parameter; the public name looks W up by itself.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from soaking import seeded, times

from headrace.ledger.entries import MAIN, Owner, Progress, StreamPartition
from headrace.store.asking import Compare, Condition, Selection, readable_columns
from headrace.store.base import Snapshot
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.standing import read_standing
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import PLACEMENTS, History
from headrace.testing.store.samples import (
    PARTITION_0,
    counts,
    holding,
    planned,
    stream_holding,
    turn_of,
)


def asked(snapshot: Snapshot, *conditions: Condition) -> Counter[str]:
    columns = readable_columns(snapshot.standing("hits").relation)
    found = snapshot.rows("hits", Selection(columns, conditions, limit=10_000), max_bytes=1 << 30)
    return Counter(map(repr, found.rows.to_pylist()))


def public(snapshot: Snapshot, condition: str = "true") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = snapshot.query(f"FROM hits WHERE {condition}").to_pylist()
    return rows


def check(snapshot: DuckDBSnapshot) -> None:
    assert snapshot.standing("hits") == read_standing(snapshot._fetch, "hits").standing
    rows = public(snapshot)
    assert asked(snapshot) == Counter(map(repr, rows))
    columns = {each.name: each for each in readable_columns(snapshot.standing("hits").relation)}
    for row in rows[:2]:
        name, value = next((name, value) for name, value in row.items() if value is not None)
        condition = Condition(columns[name], Compare.EQUAL, value)
        wanted = Counter(repr(each) for each in rows if each[name] == value)
        assert asked(snapshot, condition) == wanted
    closed = Condition(columns["_closed"], Compare.EQUAL, value=True)
    assert asked(snapshot, closed) == Counter(repr(row) for row in rows if row["_closed"])


@pytest.mark.soak
@pytest.mark.parametrize("kind", PLACEMENTS)
def test_rows_by_conditions_are_those_of_the_public_name(tmp_path: Path, kind: str) -> None:
    for case in range(times(1)):
        store = DuckDBStore(tmp_path / f"{case}.duckdb")
        history = History(store, kind, seeded(case))
        for step in range(12):
            if step % 5 == 4:
                history.swap(wide=step % 2 == 0)
            else:
                history.turn()
            with store.open() as snapshot:
                if step % 5 not in (0, 4):
                    known = store._standings.get("hits", snapshot.commits(), snapshot._changes)
                    assert known is not None, "the commit has brought it up to date"
                if step > 4:
                    assert "main." not in snapshot._source("hits")[0], "the table is read itself"
                check(snapshot)
        store.close()


def test_a_store_that_was_opened_anew_reads_the_public_name(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "tumbling", seeded(1))
    history.turn()
    store.close()
    store = DuckDBStore(tmp_path / "store.duckdb")
    with store.open() as snapshot:
        assert snapshot._source("hits")[0].startswith("main.")
        check(snapshot)
    store.close()


def test_where_a_view_stands_follows_every_commit(tmp_path: Path) -> None:
    """Also where W does not move, a partition is new, and another unit commits."""
    store = DuckDBStore(tmp_path / "store.duckdb")
    table = counts()
    epoch = store.begin_epoch()
    held = [stream_holding(), holding(table), stream_holding("s2", "other")]
    store.hold(epoch, held, {MAIN: {}, "other": {}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    moves: list[tuple[str, dict[StreamPartition, int], dict[Owner, int]]] = [
        (MAIN, {PARTITION_0: 3}, {}),
        (MAIN, {PARTITION_0: 5}, {Owner("view", "hits", "v1"): 7}),
        ("other", {PARTITION_0: 9}, {}),
        (MAIN, {StreamPartition("clicks", 1): 2, StreamPartition("views", 0): 4}, {}),
    ]
    turns = Counter[str]()
    for unit, ends, watermarks in moves:
        with store.open() as snapshot:
            snapshot.standing("hits")
        turns[unit] += 1
        progress = {place: Progress(end) for place, end in ends.items()}
        turn = turn_of(planned(epoch, turns[unit], unit=unit), progress=progress)
        store.commit(replace(turn, watermarks=watermarks))
        with store.open() as snapshot:
            known = store._standings.get("hits", snapshot.commits(), snapshot._changes)
            assert known == read_standing(snapshot._fetch, "hits")
    assert known is not None
    assert known.standing.position == {PARTITION_0: 5, StreamPartition("clicks", 1): 2}
    assert known.standing.watermark_us == 7
    store.close()
