"""The store's suite, third part: the manifests of operator state, which commit with their turn."""

# ruff: noqa: D102 (the name of a test is its sentence)

from pathlib import Path

import pytest

from headrace import faults
from headrace.ledger.entries import MAIN, HoldingState, Progress, SetAside
from headrace.operators.state import Run, Shards
from headrace.plan.stages import Operator
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    StoreSuite,
    counts,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.clocks import Clock

__all__ = ["ManifestContract"]

CLICKS = Operator("deduplicate", "clicks", "s1")
OTHER = Operator("deduplicate", "other", "s1")


def run(file: str, first: int = 0, end: int = 1024) -> Run:
    """Return a run of some shards of a file."""
    return Run(file, Shards(first, end), rows=10, largest_clock_us=-(2**62), file_bytes=2**40)


class ManifestContract(StoreSuite):
    """A manifest is committed with its turn, and goes where the position of its stream goes."""

    def test_a_manifest_is_found_again(self, store: Store, path: Path) -> None:
        epoch = self.begin(store)
        runs = (run("a", 0, 512), run("a", 600, 1024), run("b"))
        store.commit(turn_of(planned(epoch, 1), manifests={CLICKS: runs, OTHER: ()}))
        store.close()
        again = self.make_store(path)
        with again.open() as snapshot:
            assert snapshot.manifests() == {(MAIN, CLICKS): runs}
        assert again.state_folder == store.state_folder
        again.close()

    def test_a_manifest_replaces_the_one_before_and_others_stay(self, store: Store) -> None:
        epoch = self.begin(store)
        before = {CLICKS: (run("a"),), OTHER: (run("b"),)}
        store.commit(turn_of(planned(epoch, 1), manifests=before))
        store.commit(turn_of(planned(epoch, 2), manifests={CLICKS: (run("c"), run("d"))}))
        store.commit(turn_of(planned(epoch, 3)))
        with store.open() as snapshot:
            assert snapshot.manifests() == {
                (MAIN, CLICKS): (run("c"), run("d")),
                (MAIN, OTHER): (run("b"),),
            }

    def test_a_turn_that_is_not_committed_leaves_the_manifest(self, store: Store) -> None:
        epoch = self.begin(store)
        store.commit(turn_of(planned(epoch, 1), manifests={CLICKS: (run("a"),)}))
        faults.arm("before_commit")
        with pytest.raises(faults.Crash):
            store.commit(turn_of(planned(epoch, 2), manifests={CLICKS: (run("b"),)}))
        with store.open() as snapshot:
            assert snapshot.manifests() == {(MAIN, CLICKS): (run("a"),)}

    def test_a_view_that_is_set_aside_takes_the_manifest_from_before_the_turn(
        self, store: Store
    ) -> None:
        good, bad = counts("good"), counts("bad")
        epoch = self.begin(store, good, bad)
        store.commit(turn_of(planned(epoch, 1), manifests={CLICKS: (run("a"),)}))
        aside = SetAside("bad", "v1", "it fails", HoldingState.BUILDING)
        turn = turn_of(planned(epoch, 2), manifests={CLICKS: (run("b"),)}, set_aside=(aside,))
        store.commit(turn)
        with store.open() as snapshot:
            assert snapshot.manifests() == {
                (MAIN, CLICKS): (run("b"),),
                ("view:bad@v1", CLICKS): (run("a"),),
            }

    def test_a_unit_that_is_swapped_in_brings_its_manifest(self, store: Store) -> None:
        old, new = counts(version="v1"), counts(version="v2")
        epoch = self.begin(store, old)
        store.commit(turn_of(planned(epoch, 1), manifests={CLICKS: (run("a"),)}))
        unit = "view:hits@v2"
        held = holding(new, unit, state=HoldingState.BUILDING)
        store.hold(epoch, [held], {unit: {PARTITION_0: Progress()}})
        store.prepare(new)
        level = {PARTITION_0: Progress(10, Clock(10_000))}
        turn = planned(epoch, 1, unit=unit)
        store.commit(turn_of(turn, progress=level, manifests={CLICKS: (run("b"),)}))
        store.show(epoch, unit, [new])
        with store.open() as snapshot:
            assert snapshot.manifests() == {(MAIN, CLICKS): (run("b"),)}

    def test_a_stream_that_is_dropped_leaves_no_manifest(self, store: Store) -> None:
        table = counts()
        epoch = self.begin(store, table)
        store.commit(turn_of(planned(epoch, 1), manifests={CLICKS: (run("a"),)}))
        store.drop(epoch, [holding(table), stream_holding()])
        with store.open() as snapshot:
            assert snapshot.manifests() == {}
