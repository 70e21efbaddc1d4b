"""However few or many rows a turn touches, its changes are the same.

Method: the same random turns and swaps go to stores that compare rows in their three ways: all rows
of a time in memory, touched rows in memory, and touched rows in the store. In the first way, what a
commit left is carried over to the next one, or read anew.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from soaking import SOAKING, seeded, times

from headrace.ledger.following import ChangeLimits, Followers
from headrace.store.duckdb import commit
from headrace.store.duckdb.changes import making
from headrace.store.duckdb.changes.keeping import ChangeKeeping
from headrace.store.duckdb.changes.shown import read_shown
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.following import Follower
from headrace.testing.store.changing import PLACEMENTS, Folded, History, view_rows

STEPS = 20 if SOAKING else 8
Patch = Callable[[pytest.MonkeyPatch], None]


def near(_: pytest.MonkeyPatch) -> None:
    """Leave everything as it is."""


def anew(patch: pytest.MonkeyPatch) -> None:
    """Carry nothing over."""
    patch.setattr(making, "MAX_CARRIED_BYTES", -1)


def few(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangeKeeping, "_may_be_near", lambda *_: False)


def stored(patch: pytest.MonkeyPatch) -> None:
    few(patch)
    patch.setattr(making, "FEW_ROWS", -1)


def crowded(patch: pytest.MonkeyPatch) -> None:
    """Let times have room for few rows, so that what is near is tried and given up."""
    patch.setattr(making, "_NEAR_ROWS", 0)
    patch.setattr(making, "_NEAR_FACTOR", 1)


@pytest.mark.soak
@pytest.mark.parametrize("kind", PLACEMENTS)
def test_changes_do_not_depend_on_how_they_are_found(tmp_path: Path, kind: str) -> None:
    for case in range(times(1)):
        found = {
            way.__name__: played(tmp_path / f"{case}_{way.__name__}.duckdb", way, kind, case)
            for way in (near, anew, few, stored, crowded)
        }
        expected = found.pop("stored")
        assert len(expected) > 5, "hardly anything changes"
        for way, changes in found.items():
            assert changes == expected, way


def played(path: Path, way: Patch, kind: str, case: int) -> list[Any]:
    """Return all changes of a history of turns and swaps."""
    store = DuckDBStore(path)
    with pytest.MonkeyPatch.context() as patch:
        way(patch)
        history = History(store, kind, seeded(case + 1))
        history.turn()
        followers = Followers((), frozenset({"hits"}), ChangeLimits(1_000, 1 << 40))
        store.set_followers(history.epoch, followers, {"hits": history.table})
        for _ in range(STEPS):
            if history.draw.random() < 0.15:
                history.swap(wide=history.draw.random() < 0.5)
            else:
                history.turn()
    with store.open() as snapshot:
        shown = read_shown(snapshot._fetch, "hits")
        changes = [
            snapshot._fetch(f"FROM {each.changes} ORDER BY _commit, _step, _row") for each in shown
        ]
    store.close()
    return [row for of_version in changes for row in of_version]


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "place"),
    [("forever", ()), ("tumbling", (MOMENT,)), ("session", (MOMENT, MOMENT))],
)
def test_a_commit_begins_with_the_rows_that_the_one_before_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: tuple[datetime, ...]
) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, kind, seeded(1))
    with Follower(store, "hits") as follower:
        history.add([(*place, "a", 1, 1)])
        monkeypatch.setattr(making, "count_near", fail)
        for most in range(2, 5):
            history.add([(*place, "a", 1, most), (*place, "b", 1, most)])
        folded = Folded()
        folded.begin(follower.rows)
        folded.take(follower.read())
        assert folded.rows == view_rows(store)
    store.close()


def test_rows_that_a_failed_commit_left_are_not_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are those from before commits during which nobody followed the view."""
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "forever", seeded(1))
    for _ in range(3):
        with Follower(store, "hits") as follower:
            folded = Folded()
            folded.begin(follower.rows)
            history.add([("a", 1, 3)])
            with monkeypatch.context() as patch:
                patch.setattr(commit, "_note_turn", fail)
                with pytest.raises(RuntimeError):
                    history.add([("b", 1, 4)])
            history.take_back()
            history.add([("b", 1, 2)])
            history.add([("a", 1, 5), ("b", 1, 5)])
            folded.take(follower.read())
            assert folded.rows == view_rows(store)
        history.add([("a", 1, 9)])
    store.close()


def fail(*_: object) -> None:
    raise RuntimeError


@pytest.mark.parametrize("kind", PLACEMENTS)
def test_a_delta_without_rows_changes_nothing(tmp_path: Path, kind: str) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, kind, seeded(1))
    with Follower(store, "hits"):
        assert history.add([]) == frozenset()
    store.close()
