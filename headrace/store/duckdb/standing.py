"""Where a view stands. Every keyed read asks, so what was found is kept until something changes.

A commit says itself how far its views come, so what is known is brought up to it without a read.

It is looked up in small statements: as one it is joins of five tables, which take DuckDB longer to
plan than these take altogether.
"""

from dataclasses import replace
from typing import NamedTuple

from headrace.errors import ViewNotFound
from headrace.ledger.entries import Commit, HoldingState, Owner, StreamPartition
from headrace.ledger.following import Token
from headrace.store.asking import Standing
from headrace.store.duckdb.changes.shown import Rows, ShownVersion, read_shown
from headrace.time.clocks import NEVER

__all__ = ["Looked", "Standings", "read_standing"]


class Looked(NamedTuple):
    """Where a view stands, the unit that maintains it, and the streams that it reads.

    `shown` are its versions, the one that readers see last; older ones may be gone meanwhile.
    """

    standing: Standing
    unit: str | None
    inputs: frozenset[str]
    shown: tuple[ShownVersion, ...]


class Standings:
    """What was found, by view. Safe for several threads.

    It holds for one commit, and for as long as holdings do not change: a snapshot notes `changes`
    before it is opened, so that what it finds is never kept for a state that it has not seen.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._known: dict[str, tuple[int, Looked]] = {}

    def forget(self) -> None:
        """Note that holdings have changed."""
        self.changes += 1
        self._known = {}

    def get(self, view: str, commits: int, changes: int) -> Looked | None:
        """Return what is known of a view at a commit."""
        at, looked = self._known.get(view, (-1, None))
        if looked is None or at != changes or looked.standing.commit != commits:
            return None
        return looked

    def keep(self, looked: Looked, changes: int) -> None:
        """Keep what was found."""
        self._known[looked.standing.view] = (changes, looked)

    def advance(self, commit: Commit, number: int) -> None:
        """Bring what is known up to a commit of a turn, which has this number."""
        found: dict[str, tuple[int, Looked]] = {}
        for view, (changes, looked) in list(self._known.items()):
            if looked.standing.commit >= number:
                found[view] = (changes, looked)  # a reader was faster
            elif looked.standing.commit == number - 1 and not _is_set_aside(view, commit):
                found[view] = (changes, _advanced(looked, commit, number))
        self._known = found


def _is_set_aside(view: str, commit: Commit) -> bool:
    return any(aside.view == view for aside in commit.set_aside)


def _advanced(looked: Looked, commit: Commit, number: int) -> Looked:
    """Return where a view stands after a commit."""
    known = looked.standing
    token, position, watermark_us = known.token._replace(commit=number), known.position, None
    if commit.planned.unit == looked.unit:
        ends = {place: at.offset for place, at in commit.progress.items()}
        moved = {place: end for place, end in ends.items() if place.stream in looked.inputs}
        position = {**position, **moved}
        watermark_us = commit.watermarks.get(Owner("view", known.view, known.version))
    if watermark_us is None:  # it has not moved
        watermark_us = known.watermark_us
    standing = replace(known, token=token, position=position, watermark_us=watermark_us)
    return looked._replace(standing=standing)


def read_standing(rows: Rows, view: str) -> Looked:
    """Return where a view stands. ViewNotFound: readers see none of that name."""
    shown = read_shown(rows, view)
    if not shown:
        raise ViewNotFound(f"there is no view {view} that readers see; `headrace status` tells")
    version = shown[-1].version
    store_id, commits = rows("SELECT store_id, commits FROM headrace.engine", [])[0]
    held = rows(
        "SELECT unit, inputs, state FROM headrace.holdings "
        "WHERE kind = 'view' AND name = ? AND version = ?",
        [view, version],
    )
    position: dict[StreamPartition, int] = {}
    state, unit = HoldingState.LIVE, None
    read: frozenset[str] = frozenset()
    for unit, inputs, known in held:
        state, read = HoldingState(known), frozenset(inputs)
        for stream, partition, offset in rows(
            "SELECT stream, partition, next_offset FROM headrace.progress WHERE unit = ?", [unit]
        ):
            if stream in inputs:
                position[StreamPartition(stream, partition)] = offset
    watermark = rows(
        "SELECT watermark_us FROM headrace.view_watermarks WHERE view = ? AND version = ?",
        [view, version],
    )
    standing = Standing(
        view,
        version,
        state,
        shown[-1].relation,
        Token(store_id, version, commits),
        position,
        watermark[0][0] if watermark else NEVER,
    )
    return Looked(standing, unit, read, tuple(shown))
