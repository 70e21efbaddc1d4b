"""Entries of operator state as columns: sorted, looked up and merged without a loop over rows.

An entry says of a key, 128 bits of hash, what the clock of its partition was right after the
key's newest record. The top 10 bits of the hash are the key's shard, so in a sorted run every
shard is one contiguous slice.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.time.clocks import NEVER

__all__ = [
    "SHARDS",
    "Entries",
    "Keys",
    "Micros",
    "Shards",
    "Words",
    "bounds_of",
    "clip",
    "first_of_groups",
    "look_up",
    "merge",
    "order_keys",
    "shards_of",
]

SHARD_BITS = 10
SHARDS = 1 << SHARD_BITS

Words = npt.NDArray[np.uint64]
Micros = npt.NDArray[np.int64]


class Shards(NamedTuple):
    """Shards `[first, end)`."""

    first: int
    end: int

    @property
    def width(self) -> int:
        """How many shards these are."""
        return self.end - self.first


class Keys(NamedTuple):
    """Hashes of keys: the first and the second 64 bits."""

    high: Words
    low: Words


class Entries(NamedTuple):
    """Keys, each once and in order, and the clock after the newest record of each."""

    high: Words
    low: Words
    clock_us: Micros

    @staticmethod
    def none() -> "Entries":
        """Return no entries."""
        words = np.array([], dtype=np.uint64)
        return Entries(words, words, np.array([], dtype=np.int64))

    @property
    def rows(self) -> int:
        """How many entries these are."""
        return len(self.high)


def shards_of(high: Words) -> npt.NDArray[np.uint16]:
    """Return the shard of every hash."""
    return (high >> np.uint64(64 - SHARD_BITS)).astype(np.uint16)


def clip(entries: Entries, shards: Shards) -> Entries:
    """Return the entries of some shards: a slice, nothing is copied."""
    start, end = bounds_of(entries.high, shards)
    high, low, clock_us = entries
    return Entries(high[start:end], low[start:end], clock_us[start:end])


def bounds_of(high: Words, shards: Shards) -> tuple[int, int]:
    """Return where some shards begin and end among sorted hashes."""
    start, end = (
        len(high)
        if shard == SHARDS
        else int(np.searchsorted(high, np.uint64(shard << (64 - SHARD_BITS))))
        for shard in shards
    )
    return start, end


def order_keys(keys: Keys) -> npt.NDArray[np.int64]:
    """Return the order that sorts keys; equal ones stay in the order they have."""
    order = np.argsort(keys.high)  # not stable, and twice as fast as one that is
    high = keys.high[order]
    tied = np.zeros(len(order), dtype=bool)
    same = high[1:] == high[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    if tied.any():
        # Few rows, or one key many times over: only these are told apart by the rest.
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, keys.low[rows], keys.high[rows]))]
    return order


def first_of_groups(keys: Keys) -> npt.NDArray[np.bool_]:
    """Return which of the sorted keys differ from the one before."""
    first = np.ones(len(keys.high), dtype=bool)
    first[1:] = (keys.high[1:] != keys.high[:-1]) | (keys.low[1:] != keys.low[:-1])
    return first


def look_up(entries: Entries, keys: Keys) -> Micros:
    """Return the clock of every key, NEVER where there is no entry."""
    found = np.full(len(keys.high), NEVER, dtype=np.int64)
    places = np.searchsorted(entries.high, keys.high)
    waiting = np.flatnonzero(places < entries.rows)
    # More than one round only where keys share 64 bits and differ in the rest. Somebody can make
    # such keys on purpose, but not many that share the same 64.
    while len(waiting):
        here = places[waiting]
        same = entries.high[here] == keys.high[waiting]
        waiting, here = waiting[same], here[same]
        match = entries.low[here] == keys.low[waiting]
        found[waiting[match]] = entries.clock_us[here[match]]
        waiting = waiting[~match]
        places[waiting] += 1
        waiting = waiting[places[waiting] < entries.rows]
    return found


def merge(parts: Sequence[Entries], *, drop_before_us: int) -> Entries:
    """Return all entries as one; of a key the latest clock stays, what has expired goes."""
    high, low, clock_us = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    alive = clock_us >= drop_before_us
    if not alive.all():
        high, low, clock_us = high[alive], low[alive], clock_us[alive]
    if not len(high):
        return Entries.none()
    order = order_keys(Keys(high, low))
    high, low, clock_us = high[order], low[order], clock_us[order]
    starts = np.flatnonzero(first_of_groups(Keys(high, low)))
    if len(starts) == len(high):
        return Entries(high, low, clock_us)
    return Entries(high[starts], low[starts], np.maximum.reduceat(clock_us, starts))
