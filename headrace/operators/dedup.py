"""Tell duplicates from first records: the step that `unique = ...` makes (docs/design.md, Time).

A record is a duplicate when an earlier non-duplicate of its id stands in the same partition and
`c <= unique_within + m`, where `c` is its clock and `m` the partition's clock right after that
earlier record. Clocks never go back in a partition, so of an id only the latest non-duplicate
counts: the state has its `m`.

Within a batch the records of an id are a chain: behind a non-duplicate `i` the next one is the
first `j` with `c_j > unique_within + m_i`. All chains are followed at once, a chain of n records
in log2(n) rounds, so that one id that stands there 50,000 times costs no more than others.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from headrace.operators.state.entries import (
    Entries,
    Keys,
    Micros,
    Words,
    first_of_groups,
    order_keys,
)
from headrace.time.clocks import NEVER

__all__ = ["Batch", "Deduplicated", "Remembers", "deduplicate"]

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Remembers(Protocol):
    """What dedup asks of its state."""

    def look_up(self, keys: Keys) -> Micros:
        """Return the latest clock of every key, given in order; NEVER where there is none."""
        ...


class Batch(NamedTuple):
    """Readable records; those of one partition stand in the order of their offsets."""

    high: Words  # the hash of partition and id, in two parts
    low: Words
    clock_us: Micros  # c: the partition's clock before the record, NEVER at its start
    after_us: Micros  # m: the partition's clock right after it


class Deduplicated(NamedTuple):
    """Which rows are duplicates, and what to remember of the others."""

    duplicate: Mask
    entries: Entries


def deduplicate(state: Remembers, batch: Batch, *, within_us: int) -> Deduplicated:
    """Return which rows are duplicates, and the entries that the state takes on.

    Not promised: that an entry is still of use; it may have expired by the end of the batch.
    """
    order = order_keys(Keys(batch.high, batch.low))
    high, low = batch.high[order], batch.low[order]
    clock_us, after_us = batch.clock_us[order], batch.after_us[order]
    first = first_of_groups(Keys(high, low))
    starts = np.flatnonzero(first)
    known_us = state.look_up(Keys(high[starts], low[starts]))
    kept = _kept(starts, known_us, clock_us, after_us, within_us)
    duplicate = np.empty(len(order), dtype=bool)
    duplicate[order] = ~kept
    # The last of a chain has the latest clock; a chain of which nothing is kept adds nothing.
    places = np.flatnonzero(kept)
    groups = np.cumsum(first)[places]
    last = np.ones(len(places), dtype=bool)
    last[:-1] = groups[1:] != groups[:-1]
    chosen = places[last]
    return Deduplicated(duplicate, Entries(high[chosen], low[chosen], after_us[chosen]))


def _kept(
    starts: Places, known_us: Micros, clock_us: Micros, after_us: Micros, within_us: int
) -> Mask:
    """Return which of the rows, sorted by key and offset, are no duplicates."""
    count = len(clock_us)
    ends = np.append(starts[1:], count)
    kept = np.zeros(count, dtype=bool)
    remembered = known_us != NEVER
    # Most ids stand alone and are new: nothing to follow.
    plain = ~remembered & (ends - starts == 1)
    kept[starts[plain]] = True
    chains = np.flatnonzero(~plain)
    if not len(chains):
        return kept
    sizes = (ends - starts)[chains]
    begins = np.cumsum(sizes) - sizes  # where each chain begins among the chains' rows alone
    rows = np.repeat(starts[chains] - begins, sizes) + np.arange(sizes.sum())
    chain = np.repeat(np.arange(len(chains)), sizes)
    # Clocks as ranks, so that (chain, clock) is one number: times span more than is left of 64
    # bits. The first clock past a bound has the bound's rank or a greater one.
    times, ranks = np.unique(clock_us[rows], return_inverse=True)
    span = len(times) + 1
    places = chain * span + ranks
    bounds = np.searchsorted(times, after_us[rows] + within_us, side="right")
    following = np.searchsorted(places, chain * span + bounds)
    stop = len(rows)
    following = np.where(following < (begins + sizes)[chain], following, stop)
    heads = begins.copy()
    known = np.flatnonzero(remembered[chains])
    if len(known):
        bounds = np.searchsorted(times, known_us[chains[known]] + within_us, side="right")
        found = np.searchsorted(places, known * span + bounds)
        heads[known] = np.where(found < (begins + sizes)[known], found, stop)
    kept[rows[_reachable(heads, following)]] = True
    return kept


def _reachable(heads: Places, following: Places) -> Mask:
    """Return which rows a walk from any head comes by; one past the last row ends a walk."""
    stop = len(following)
    reached = np.zeros(stop + 1, dtype=bool)
    reached[heads] = True
    jump = np.append(following, stop)
    # After n rounds a jump is 2**n steps long, and what is less than that far away is reached.
    while True:
        before = np.flatnonzero(reached[:stop])
        landed = jump[before]
        if (landed == stop).all():
            return reached[:stop]
        reached[landed] = True
        jump = jump[jump]
