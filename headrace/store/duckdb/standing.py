"""Where a view stands. Every keyed read asks, so what was found is kept until something changes.

A commit says itself how far its views come, so what is known is brought up to it without a read.

It is looked up in small statements: as one it is joins of five tables, which take DuckDB longer to
plan than these take altogether.
"""

from dataclasses import replace
from functools import lru_cache
from operator import itemgetter

from headrace.errors import ViewNotFound
from headrace.ledger.entries import Commit, HoldingState, Owner, StreamPartition
from headrace.ledger.following import Token
from headrace.schema.relations import Relation
from headrace.store.asking import Standing
from headrace.store.duckdb.changes.shown import Rows
from headrace.time.clocks import NEVER

__all__ = ["Standings", "read_standing"]

_relation = lru_cache(maxsize=256)(Relation.from_json)


class Standings:
    """What was found, by view. Safe for several threads.

    It holds for one commit, and for as long as holdings do not change: a snapshot notes `changes`
    before it is opened, so that what it finds is never kept for a state that it has not seen.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._known: dict[str, tuple[int, int, Standing]] = {}

    def forget(self) -> None:
        """Note that holdings have changed."""
        self.changes += 1
        self._known = {}

    def get(self, view: str, commits: int, changes: int) -> Standing | None:
        """Return what is known of a view at a commit."""
        known = self._known.get(view)
        return known[2] if known is not None and known[:2] == (commits, changes) else None

    def advance(self, commit: Commit, number: int) -> None:
        """Bring what is known up to a commit of a turn, which has this number."""
        found: dict[str, tuple[int, int, Standing]] = {}
        for view, (commits, changes, known) in list(self._known.items()):
            if commits >= number:
                found[view] = (commits, changes, known)  # a reader was faster
            elif commits == number - 1 and (standing := _advanced(known, commit, number)):
                found[view] = (number, changes, standing)
        self._known = found

    def keep(self, standing: Standing, changes: int) -> None:
        """Keep what was found."""
        self._known[standing.view] = (standing.commit, changes, standing)


def _advanced(known: Standing, commit: Commit, number: int) -> Standing | None:
    """Return where a view stands after a commit; None: it has to be looked up."""
    if any(aside.view == known.view for aside in commit.set_aside):
        return None
    token = known.token._replace(commit=number)
    owner = Owner("view", known.view, known.version)
    if owner not in commit.watermarks:
        return replace(known, token=token)  # it is of another unit
    streams = {place.stream for place in known.position}
    moved = {place: at.offset for place, at in commit.progress.items() if place.stream in streams}
    if not moved.keys() <= known.position.keys():
        return None
    position, watermark_us = {**known.position, **moved}, commit.watermarks[owner]
    return replace(known, token=token, position=position, watermark_us=watermark_us)


def read_standing(rows: Rows, view: str) -> Standing:
    """Return where a view stands. ViewNotFound: readers see none of that name."""
    shown = rows("SELECT version, relation, since FROM headrace.shown WHERE view = ?", [view])
    if not shown:
        raise ViewNotFound(f"there is no view {view} that readers see; `headrace status` tells")
    version, relation, _ = max(shown, key=itemgetter(2))
    store_id, commits = rows("SELECT store_id, commits FROM headrace.engine", [])[0]
    held = rows(
        "SELECT unit, inputs, state FROM headrace.holdings "
        "WHERE kind = 'view' AND name = ? AND version = ?",
        [view, version],
    )
    position: dict[StreamPartition, int] = {}
    state = HoldingState.LIVE
    for unit, inputs, known in held:
        state = HoldingState(known)
        for stream, partition, offset in rows(
            "SELECT stream, partition, next_offset FROM headrace.progress WHERE unit = ?", [unit]
        ):
            if stream in inputs:
                position[StreamPartition(stream, partition)] = offset
    watermark = rows(
        "SELECT watermark_us FROM headrace.view_watermarks WHERE view = ? AND version = ?",
        [view, version],
    )
    return Standing(
        view,
        version,
        state,
        _relation(relation),
        Token(store_id, version, commits),
        position,
        watermark[0][0] if watermark else NEVER,
    )
