"""Operator state: a set of runs, merged in tiers of size like an LSM tree.

Promises:
- What `look_up` answers does not depend on when and how runs were merged.
- A shard has at most MAX_RUNS runs, or one or two more while a large merge is spread over turns.
- Merging holds at most BLOCK_ROWS rows in memory (and one shard, should that have more): a larger
  merge is cut into blocks of shards, each a run of its own.
- An entry that has expired, and an older clock of the same key, go with the next merge; a run of
  which all has expired goes at once, unread.
A run is immutable. Merging some of its shards leaves the others of it in the manifest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from headrace.operators.state.entries import (
    SHARDS,
    Entries,
    Keys,
    Micros,
    Shards,
    bounds_of,
    clip,
    look_up,
    merge,
)
from headrace.operators.state.folder import Run, StateFolder
from headrace.time.clocks import NEVER

__all__ = ["BLOCK_ROWS", "MAX_RUNS", "State", "join_runs"]

MAX_RUNS = 8
BLOCK_ROWS = 1_000_000
# A run is merged with the younger ones when it is at most this many times as large: then each is
# more than that larger than the next, and 8 of them hold 65,000 times what a turn brings.
FACTOR = 3

ALL = Shards(0, SHARDS)


class _Source(NamedTuple):
    """A run, or what a turn adds and is in no file yet."""

    run: Run | None
    shards: Shards
    entries: Entries

    def rows_in(self, shards: Shards) -> float:
        """About how many rows it has in some of its shards; hashes are spread evenly."""
        return self.entries.rows * shards.width / self.shards.width


class _Block(NamedTuple):
    """What is merged into one new run: some shards of some sources, by number."""

    shards: Shards
    sources: tuple[int, ...]
    rows: float


class State:
    """The state of one operator at one turn: the runs of a manifest, in some shards."""

    def __init__(self, folder: StateFolder, runs: Iterable[Run], shards: Shards = ALL) -> None:
        self._folder = folder
        cut = (folder.cut(run, shards) for run in runs)
        self.runs = tuple(run for run in cut if run is not None)
        self._shards = shards
        self._written: list[str] = []

    def look_up(self, keys: Keys) -> Micros:
        """Return the latest clock of every key, given in order; NEVER where there is none."""
        found = np.full(len(keys.high), NEVER, dtype=np.int64)
        for run in self.runs:
            # A run of some shards is asked for their keys alone: the keys are sorted.
            start, end = bounds_of(keys.high, run.shards)
            if start < end:
                asked = Keys(keys.high[start:end], keys.low[start:end])
                here = look_up(self._folder.read(run), asked)
                found[start:end] = np.maximum(found[start:end], here)
        return found

    def add(
        self, entries: Entries, *, drop_before_us: int, merge_rows: int | None = None
    ) -> tuple[Run, ...]:
        """Return the runs with some more entries; the new ones are written, none is removed.

        Entries whose clock is before `drop_before_us` are forgotten, sooner or later. With
        `merge_rows`, about so many rows are merged at most, and the rest another time.
        StateDamaged, StoreError, DiskFull: then nothing that was written is left.
        """
        try:
            return self._merge(entries, drop_before_us, merge_rows)
        except Exception:
            self._folder.remove(self._written)
            raise

    def _merge(
        self, entries: Entries, drop_before_us: int, merge_rows: int | None
    ) -> tuple[Run, ...]:
        runs = [run for run in self.runs if run.largest_clock_us >= drop_before_us]
        sources = [_Source(run, run.shards, self._folder.read(run)) for run in runs]
        if entries.rows:
            sources.append(_Source(None, self._shards, entries))
        # The largest first: its age is nothing to a lookup, which takes the latest clock.
        sources.sort(key=lambda source: -source.entries.rows / source.shards.width)
        blocks = _choose(sources, merge_rows)
        made: list[Run] = []
        for block in blocks:
            parts = [clip(sources[number].entries, block.shards) for number in block.sources]
            merged = merge(parts, drop_before_us=drop_before_us)
            if merged.rows:
                made.append(self._write(merged, block.shards))
        for number, source in enumerate(sources):
            taken = [block.shards for block in blocks if number in block.sources]
            made += self._left(source, taken)
        return join_runs(made)

    def _left(self, source: _Source, taken: Sequence[Shards]) -> list[Run]:
        """Return what is left of a source whose other shards were merged."""
        left: list[Shards] = []
        first = source.shards.first
        for shards in [*sorted(taken), Shards(source.shards.end, source.shards.end)]:
            if first < shards.first:
                left.append(Shards(first, shards.first))
            first = shards.end
        run = source.run
        if run is None:
            parts = [clip(source.entries, shards) for shards in left]
            if not any(part.rows for part in parts):
                return []
            columns = (np.concatenate(column) for column in zip(*parts, strict=True))
            run = self._write(Entries(*columns), Shards(left[0].first, left[-1].end))
        cut = (self._folder.cut(run, shards) for shards in left)
        return [each for each in cut if each is not None]

    def _write(self, entries: Entries, shards: Shards) -> Run:
        run = self._folder.write(entries, shards)
        self._written.append(run.file)
        return run


def join_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return runs with neighbouring shards of the same file put together."""
    joined: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.file, run.shards)):
        last = joined[-1] if joined else None
        if last is not None and (last.file, last.shards.end) == (run.file, run.shards.first):
            shards = Shards(last.shards.first, run.shards.end)
            joined[-1] = replace(last, shards=shards, rows=last.rows + run.rows)
        else:
            joined.append(run)
    return tuple(joined)


def _choose(sources: Sequence[_Source], merge_rows: int | None) -> list[_Block]:
    """Choose what to merge: the same of every stretch of shards that the same sources cover."""
    bounds = sorted({bound for source in sources for bound in source.shards})
    budget = float("inf") if merge_rows is None else float(merge_rows)
    places: list[tuple[Shards, list[int]]] = []
    for stretch in map(Shards._make, pairwise(bounds)):
        here = [
            number
            for number, source in enumerate(sources)
            if source.shards.first <= stretch.first and stretch.end <= source.shards.end
        ]
        places += [(each, here) for each in _cut(stretch, [sources[at] for at in here])]
    # Where most runs are comes first, so that no shards wait for ever.
    places.sort(key=lambda place: -len(place[1]))
    blocks: list[_Block] = []
    for shards, here in places:
        rows = [sources[number].rows_in(shards) for number in here]
        count = _count(rows, budget, forced=True)
        if sum(rows[-count:]) > budget:
            count = _count(rows, budget, forced=False)
        if count > 1 and sum(rows[-count:]) <= budget:
            blocks.append(_Block(shards, tuple(here[-count:]), sum(rows[-count:])))
            budget -= blocks[-1].rows
    return _join_blocks(blocks)


def _cut(stretch: Shards, sources: Sequence[_Source]) -> list[Shards]:
    """Cut a stretch so that no block has too many rows, at powers of two: cuts meet again."""
    width = SHARDS
    while width > 1 and sum(
        source.rows_in(Shards(0, min(width, stretch.width))) for source in sources
    ) > (BLOCK_ROWS):
        width //= 2
    cuts = [stretch.first, *range(-(-(stretch.first + 1) // width) * width, stretch.end, width)]
    return [Shards(*pair) for pair in pairwise([*cuts, stretch.end])]


def _count(rows: Sequence[float], budget: float, *, forced: bool) -> int:
    """Return how many of the youngest to merge; they come last. One is nothing to do."""
    count, total = 1, rows[-1] if rows else 0.0
    while count < len(rows):
        older = rows[-count - 1]
        too_many = forced and len(rows) - count + 1 > MAX_RUNS
        similar = older <= FACTOR * total and total + older <= budget
        if not (too_many or similar):
            break
        total += older
        count += 1
    return count


def _join_blocks(blocks: Sequence[_Block]) -> list[_Block]:
    """Put neighbouring blocks of the same sources together, as far as they fit into memory."""
    joined: list[_Block] = []
    for block in sorted(blocks):
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.sources == block.sources
            and last.shards.end == block.shards.first
            and last.rows + block.rows <= BLOCK_ROWS
        ):
            shards = Shards(last.shards.first, block.shards.end)
            joined[-1] = _Block(shards, block.sources, last.rows + block.rows)
        else:
            joined.append(block)
    return joined
