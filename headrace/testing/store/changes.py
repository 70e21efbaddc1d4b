"""The store's suite about changes: they fold to the view at every commit, whoever reads when.

Method: random turns and swaps of a view of every placement; readers come, read in pages of any
size, go away and come back with their token, also after the store was opened again.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import random
from dataclasses import replace
from pathlib import Path

import pytest

from headrace import faults
from headrace.errors import TokenRefused, TokenTooOld
from headrace.ledger.following import ChangeLimits, Followers, Page, SinkEntry, Token
from headrace.plan.tables import KeyPart
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.store.following import Follower
from headrace.testing.store.changing import PLACEMENTS, Folded, History, view_rows
from headrace.testing.store.samples import StoreSuite, counts, delta, planned, turn_of

__all__ = ["ChangesContract"]


class _Reader:
    """A reader that folds what it reads; it may go away and come back."""

    def __init__(self, store: Store) -> None:
        self.folded = Folded()
        self.follower: Follower | None = Follower(store, "hits")
        self.token = self.follower.token
        self.folded.begin(self.follower.rows)

    def read(self, store: Store, max_rows: int) -> bool:
        """Read one page; return whether it is at the head."""
        if self.follower is None:
            self.follower = Follower(store, "hits", after=str(self.token))
        page = self.follower.read(max_rows)
        self.token = page.token
        if page.reset:
            self.folded.begin(self.follower.rows)
        else:
            self.folded.take(page)
        return page.at_head

    def catch_up(self, store: Store, max_rows: int) -> None:
        while not self.read(store, max_rows):
            pass


class ChangesContract(StoreSuite):
    """Changes, tokens, leases."""

    #: How many random histories there are for each placement.
    histories = 2

    @pytest.mark.parametrize("kind", PLACEMENTS)
    def test_changes_fold_to_the_view_at_every_commit(
        self, path: Path, kind: str, change_seed: int
    ) -> None:
        for number in range(self.histories):
            draw = random.Random(f"{change_seed} {kind} {number}")
            at = path.with_name(f"{number}.duckdb")
            self._play(at, kind, draw)

    def _play(self, path: Path, kind: str, draw: random.Random) -> None:
        store = self.make_store(path)
        try:
            history = History(store, kind, draw)
            store.set_followers(
                history.epoch, Followers(always=frozenset({"hits"})), {"hits": history.table}
            )
            readers: list[_Reader] = []
            for _ in range(12):
                event = draw.random()
                if event < 0.12:
                    history.swap(wide=draw.random() < 0.3)
                elif event < 0.2:
                    store.close()
                    store = self.make_store(path)
                    for reader in readers:
                        reader.follower = None
                    history.reopen(store)
                elif event < 0.28:
                    faults.arm("before_commit")
                    with pytest.raises(faults.Crash):
                        history.turn()
                    faults.disarm()
                    history.take_back()
                else:
                    history.turn()
                if draw.random() < 0.2 or not readers:
                    readers.append(_Reader(store))
                for reader in readers:
                    if draw.random() < 0.5:
                        reader.catch_up(store, draw.choice([2, 7, 1_000]))
                        assert reader.folded.rows == view_rows(store)
                    elif draw.random() < 0.3:
                        reader.read(store, 1)
                    if reader.follower is not None and draw.random() < 0.2:
                        reader.follower.close()
                        reader.follower = None
            for reader in readers:
                reader.catch_up(store, 3)
                assert reader.folded.rows == view_rows(store)
        finally:
            faults.disarm()
            store.close()

    @pytest.fixture
    def change_seed(self) -> int:
        """Return what draws the histories."""
        return 0

    def test_a_view_that_nobody_follows_has_no_changes(self, store: Store) -> None:
        history = History(store, "tumbling", random.Random(1))
        with store.open() as snapshot:
            token = snapshot.token("hits")
        assert all(not history.turn() for _ in range(10))
        with store.open() as snapshot:
            assert snapshot.kept_changes() == {}
            with pytest.raises(TokenTooOld) as refused:
                snapshot.changes("hits", token, max_rows=1)
        assert "the changes of hits behind it are not kept any more" in str(refused.value)
        assert "only while somebody follows the view" in str(refused.value)

    def test_changes_are_dropped_when_every_reader_has_them_and_when_none_is_left(
        self, store: Store
    ) -> None:
        history = History(store, "records", random.Random(2))
        slow, quick = Follower(store, "hits"), Follower(store, "hits")
        for _ in range(40):
            history.turn()
            quick.read()
        with store.open() as snapshot:
            kept = snapshot.kept_changes()["hits"]
            assert (kept.rows, kept.leases) == (sum(view_rows(store).values()), 2)
        while not slow.read().at_head:
            pass
        for _ in range(20):
            history.turn()
            slow.read()
            quick.read()
        with store.open() as snapshot:
            assert snapshot.kept_changes()["hits"].rows < kept.rows
        slow.close()
        quick.close()
        with store.open() as snapshot:
            assert snapshot.kept_changes() == {}

    def test_a_lease_ends_when_its_reader_is_too_far_behind(self, store: Store) -> None:
        history = History(store, "forever", random.Random(3))
        limits = ChangeLimits(commits=20)
        store.set_followers(history.epoch, Followers(limits=limits), {})
        gone, there = Follower(store, "hits"), Follower(store, "hits")
        folded = Folded()
        folded.begin(there.rows)
        for _ in range(60):
            history.turn()
            folded.take(there.read())
        assert folded.rows == view_rows(store)
        with pytest.raises(TokenTooOld) as refused:
            gone.read()
        assert "the lease of this reader has ended" in str(refused.value)
        with pytest.raises(TokenTooOld):
            Follower(store, "hits", after=gone.token)
        with store.open() as snapshot:
            assert snapshot.kept_changes()["hits"].leases == 1

    def test_a_reader_that_keeps_up_gets_a_commit_larger_than_what_is_kept(
        self, store: Store
    ) -> None:
        history = History(store, "forever", random.Random(4))
        store.set_followers(history.epoch, Followers(limits=ChangeLimits(bytes=1)), {})
        follower, folded = Follower(store, "hits"), Folded()
        folded.begin(follower.rows)
        for _ in range(40):
            history.turn()
            folded.take(follower.read())
            assert folded.rows == view_rows(store)

    def test_a_token_of_another_store_or_view_or_time_is_refused(self, store: Store) -> None:
        history = History(store, "forever", random.Random(5))
        with Follower(store, "hits") as follower:
            history.turn()
            token = follower.token
            wrong = {
                "is a token of another store": token._replace(store_id="0" * 12),
                "is ahead of the store": token._replace(commit=token.commit + 99),
                "are not kept any more": token._replace(version="other"),
            }
            for message, each in wrong.items():
                with pytest.raises(TokenRefused) as refused:
                    Follower(store, "hits", after=each)
                assert message in str(refused.value)
            for text in ("", "x", f"{token}+", f"{token}'; DROP TABLE hits", "é" * 100):
                with pytest.raises(TokenRefused) as refused:
                    Follower(store, "hits", after=text)
                assert "is not a resume token" in str(refused.value)
            with pytest.raises(TokenRefused) as refused:
                Follower(store, "none")
            assert "there is no view none that readers see" in str(refused.value)
        assert Token.parse(str(token)) == token

    def test_a_token_within_a_commit_is_too_old_when_the_commit_is_gone(self, store: Store) -> None:
        history = History(store, "records", random.Random(8))
        limits = ChangeLimits(commits=2)
        store.set_followers(history.epoch, Followers(limits=limits), {})
        there, gone = Follower(store, "hits"), Follower(store, "hits")
        while not (page := gone.read(1)).token.rows:
            history.turn()
            there.read()
        for _ in range(20):
            history.turn()
            there.read()
        with pytest.raises(TokenTooOld):
            Follower(store, "hits", after=page.token)

    def test_changes_are_pruned_when_the_limits_are_set(self, path: Path) -> None:
        """An engine that starts often takes few turns each time."""
        store = self.make_store(path)
        history = History(store, "records", random.Random(9))
        followers = Followers(always=frozenset({"hits"}), limits=ChangeLimits(commits=5))
        for _ in range(4):
            store.set_followers(history.epoch, followers, {"hits": history.table})
            Follower(store, "hits")  # and never comes back
            for _ in range(8):
                history.turn()
            store.close()
            store = self.make_store(path)
            history.reopen(store)
        store.set_followers(history.epoch, followers, {"hits": history.table})
        with store.open() as snapshot:
            kept = snapshot.kept_changes()["hits"]
            assert (kept.since, kept.leases) == (snapshot.commits() - 5, 0)
        store.close()

    def test_keys_with_two_parts_of_one_name_can_be_followed(self, store: Store) -> None:
        table = counts()
        parts = [KeyPart(name, "k", parse_type("STRING")) for name in ("k", "K", "k")]
        table = replace(table, key=tuple(parts))
        epoch = self.begin(store, table)
        with Follower(store, table.view) as follower:
            row = delta(table, ("a", 1, 1, 1, 1))
            store.commit(turn_of(planned(epoch, 1), {table: (row,)}))
            [change] = follower.read().rows.to_pylist()
        assert change["_key"] == {"k": "a", "K_": "a", "k__": "a"}

    def test_progress_is_told_also_when_nothing_changes(self, store: Store) -> None:
        history = History(store, "forever", random.Random(6))
        with Follower(store, "hits") as follower:
            before = follower.read()
            while history.turn():
                pass
            page: Page = follower.read()
        assert page.at_head
        assert page.token.commit > before.token.commit
        assert page.position != before.position
        assert page.watermark_us is not None

    def test_the_changes_of_a_dropped_view_go_with_it(self, store: Store) -> None:
        history = History(store, "forever", random.Random(7))
        sink = SinkEntry("out", "hits", "rows", "upsert")
        store.set_followers(history.epoch, Followers((sink,)), {"hits": history.table})
        follower = Follower(store, "hits")
        history.turn()
        with store.open() as snapshot:
            held = [each for each in snapshot.holdings() if each.kind == "view"]
        store.drop(history.epoch, held)
        store.set_followers(history.epoch, Followers(), {})
        with store.open() as snapshot:
            assert (snapshot.kept_changes(), snapshot.sinks()) == ({}, [])
        with pytest.raises(TokenRefused):
            follower.read()
