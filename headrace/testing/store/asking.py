"""The store's suite about readers' questions: rows by conditions, where a view stands, pages."""

# ruff: noqa: D102 (the name of a test is its sentence)

import random
from collections import Counter
from dataclasses import replace

import pytest

from headrace.errors import ViewNotFound
from headrace.ledger.entries import HoldingState, SetAside
from headrace.ledger.following import Token
from headrace.store.asking import Compare, Condition, Order, Selection, readable_columns
from headrace.store.base import Snapshot, Store
from headrace.store.following import Follower
from headrace.testing.store.changing import Folded, History, view_rows
from headrace.testing.store.samples import (
    PARTITION_0,
    StoreSuite,
    counts,
    delta,
    planned,
    turn_of,
)

__all__ = ["AskingContract"]


def _asked(snapshot: Snapshot, *conditions: tuple[str, Compare, int | str | None]) -> Selection:
    columns = {each.name: each for each in readable_columns(snapshot.standing("hits").relation)}
    tests = tuple(Condition(columns[name], compare, value) for name, compare, value in conditions)
    order = (Order(columns["greatest"], descending=True),)
    return Selection((columns["k"], columns["greatest"]), tests, order, 10)


class AskingContract(StoreSuite):
    """Rows, standings, batches."""

    def test_a_standing_is_that_of_the_snapshot(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        with store.open() as before:
            store.commit(turn_of(planned(epoch, 1), {table: (delta(table, ("a", 1, 1, 1, 1)),)}))
            with store.open() as after:
                found = after.standing("hits")
            assert before.standing("hits").position == {PARTITION_0: 0}
        assert (found.version, found.state) == ("v1", HoldingState.LIVE)
        assert (found.position, found.watermark_us) == ({PARTITION_0: 10}, 10_000)
        with store.open() as snapshot:
            assert found.token == snapshot.token("hits")
            assert found.token == Token(snapshot.store_id(), "v1", snapshot.commits())

    def test_a_standing_knows_what_became_of_a_version(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        aside = SetAside("hits", "v1", "it divides by zero", HoldingState.FAILED)
        with store.open() as before:
            store.commit(turn_of(planned(epoch, 1), set_aside=(aside,)))
            assert before.standing("hits").state is HoldingState.LIVE
        with store.open() as snapshot:
            standing = snapshot.standing("hits")
            held = [each for each in snapshot.holdings() if each.kind == "view"]
        # It stays where it was, and readers are told so.
        assert (standing.state, standing.position) == (HoldingState.FAILED, {PARTITION_0: 0})
        store.drop(epoch, held)
        with store.open() as snapshot, pytest.raises(ViewNotFound):
            snapshot.standing("hits")

    def test_rows_are_found_by_conditions_in_their_order(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        rows = [(f"k{n}", 1, 1, n, n) for n in range(20)]
        rows.append((None, 1, 1, -1, -1))  # type: ignore[arg-type]
        store.commit(turn_of(planned(epoch, 1), {table: (delta(table, *rows),)}))
        with store.open() as snapshot:
            asked = _asked(snapshot)
            found = snapshot.rows("hits", asked, max_bytes=1 << 20)
            assert found.rows["greatest"].to_pylist() == list(range(19, 9, -1))
            assert found.more
            found = snapshot.rows("hits", replace(asked, limit=21), max_bytes=1 << 20)
            assert (found.rows.num_rows, found.more) == (21, False)
            found = snapshot.rows("hits", asked, max_bytes=1)
            assert (found.rows["greatest"].to_pylist(), found.more) == ([19], True)
            asked = _asked(
                snapshot,
                ("greatest", Compare.GREATER, 5),
                ("greatest", Compare.LESS_OR_EQUAL, 8),
                ("k", Compare.UNEQUAL, "k7"),
            )
            found = snapshot.rows("hits", asked, max_bytes=1 << 20)
            assert found.rows["k"].to_pylist() == ["k8", "k6"]
            asked = _asked(snapshot, ("k", Compare.EQUAL, None))
            assert snapshot.rows("hits", asked, max_bytes=1 << 20).rows.num_rows == 1
            asked = _asked(snapshot, ("k", Compare.EQUAL, "'; DROP TABLE hits; --"))
            assert snapshot.rows("hits", asked, max_bytes=1 << 20).rows.num_rows == 0

    def test_batches_are_all_rows(self, store: Store) -> None:
        history = History(store, "hopping", random.Random(5))
        for _ in range(20):
            history.turn()
        with store.open() as snapshot:
            relation = snapshot.standing("hits").relation
            batches = list(
                snapshot.keyed_batches("hits", Selection(relation.columns), max_seconds=30)
            )
            whole = snapshot.keyed_rows("hits")
        found = Counter(str(row) for batch in batches for row in batch.to_pylist())
        assert found == Counter(str(row) for row in whole.to_pylist())

    def test_a_page_has_no_more_bytes_than_it_may(self, store: Store) -> None:
        history = History(store, "records", random.Random(6))
        follower = Follower(store, "hits")
        folded = Folded()
        folded.begin(follower.rows)
        for _ in range(30):
            history.turn()
        pages = 0
        token, at_head = follower.token, False
        with store.open() as snapshot:
            while not at_head:
                page = snapshot.changes("hits", token, max_rows=1_000, max_bytes=100)
                assert 1 <= page.rows.num_rows <= 5
                folded.take(page)
                token, at_head, pages = page.token, page.at_head, pages + 1
        assert folded.rows == view_rows(store)
        assert pages > 5

    def test_leases_are_known_by_their_names(self, store: Store) -> None:
        History(store, "forever", random.Random(7))
        store.follow("mine", "hits")
        with store.open() as snapshot:
            assert snapshot.leases() == {"mine": "hits"}
        store.unfollow("mine")
        with store.open() as snapshot:
            assert snapshot.leases() == {}
