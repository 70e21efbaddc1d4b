"""How far records come behind the clock: a histogram with buckets that grow by a tenth.

The lateness of a record is how far its time, `min(event time, arrival)`, lies behind the clock of
its partition; 0 for one that moves it. Bucket 0 counts those; bucket b counts `(g^(b-1), g^b]`
microseconds with g = 1.1, so a quantile read from it is at most a tenth too long, never too short.
"""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from headrace.time.clocks import NEVER, Micros

__all__ = ["BUCKETS", "Counts", "as_counts", "bounds_us", "count_lateness", "quantile_us"]

GROWTH = 1.1
#: The last bucket takes everything from some 870 years on.
BUCKETS = 400

Counts = npt.NDArray[np.int64]


def count_lateness(moves_us: Micros, clocks_us: Micros) -> Counts:
    """Return the histogram of records: how far each moves a clock, and the clock before it."""
    judged = (moves_us != NEVER) & (clocks_us != NEVER)
    behind = np.maximum(clocks_us[judged] - moves_us[judged], 0)
    buckets = np.zeros(len(behind), np.int64)
    late = behind > 0
    # The product is a little more than the power, so that no value lands above its bound.
    buckets[late] = np.ceil(np.log(behind[late]) / math.log(GROWTH) - 1e-9).astype(np.int64) + 1
    counts = np.bincount(np.minimum(buckets, BUCKETS - 1), minlength=BUCKETS)
    # A record without a clock before it is in time.
    counts[0] += int((moves_us != NEVER).sum()) - int(judged.sum())
    return counts.astype(np.int64)


def as_counts(records: Mapping[int, int]) -> Counts:
    """Return the histogram that has so many records in these buckets, and none in the others."""
    counts = np.zeros(BUCKETS, np.int64)
    counts[list(map(int, records))] = list(records.values())
    return counts


def bounds_us() -> npt.NDArray[np.int64]:
    """Return the longest lateness that each bucket counts."""
    powers = GROWTH ** np.arange(BUCKETS - 1, dtype=np.float64)
    return np.concatenate(([0], np.ceil(powers).astype(np.int64)))


def quantile_us(counts: Counts, share: float) -> int:
    """Return a delay with which at least `share` of the counted records come in time."""
    total = int(counts.sum())
    if total == 0:
        return 0
    reached = np.cumsum(counts)
    bucket = int(np.searchsorted(reached, math.ceil(share * total)))
    return int(bounds_us()[min(bucket, BUCKETS - 1)])
