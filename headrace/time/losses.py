"""How many pairs of record and window come too late, for whole columns of records.

The numbers are those of `time/windows.py`: a record is in the windows `first` to `last`, and those
that end at or before `w - a` are closed to it, `w` its watermark and `a` the allowed lateness.
Exact, but for records whose windows leave the years 1 to 9999, which are dead to a view.
"""

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from headrace.model.windows import DAY_US
from headrace.time.clocks import NEVER, Micros
from headrace.time.windows import MAX_EDGE_US, MIN_EDGE_US, Cut

__all__ = ["count_late_pairs", "count_pairs"]

# No zone's offset changes within one: all that is the same in it is asked once.
_QUARTER_US = 900_000_000
_EPOCH_DAY = datetime(1970, 1, 1).toordinal()


def count_pairs(cut: Cut, times_us: Micros) -> int:
    """Return how many pairs of record and window there are."""
    first, last = _numbers(cut, _units(cut, times_us))
    return int((last - first + 1).sum())


def count_late_pairs(cut: Cut, times_us: Micros, watermarks_us: Micros, *, lateness_us: int) -> int:
    """Return how many of the pairs are late; a record without a watermark (NEVER) has none."""
    judged = watermarks_us != NEVER
    times_us, closed_us = times_us[judged], watermarks_us[judged] - lateness_us
    if cut.session:
        return int((times_us + cut.size <= closed_us).sum())
    first, last = _numbers(cut, _units(cut, times_us))
    length = 0 if cut.cumulative else cut.size
    last_closed = (_units(cut, closed_us) - cut.offset - length) // cut.hop
    return int(np.clip(last_closed - first + 1, 0, last - first + 1).sum())


def _numbers(cut: Cut, units: Micros) -> tuple[Micros, Micros]:
    """Return the numbers of the first and the last window of each record."""
    since = units - cut.offset
    if cut.session:
        return units, units
    if cut.cumulative:
        return since // cut.hop + 1, (since // cut.size + 1) * (cut.size // cut.hop)
    return (since - cut.size) // cut.hop + 1, since // cut.hop


def _units(cut: Cut, times_us: Micros) -> Micros:
    if cut.zone is None:
        return times_us
    # Python knows no later days; those of the last one are dead to a view anyway.
    times_us = np.clip(times_us, MIN_EDGE_US + DAY_US, MAX_EDGE_US - 2 * DAY_US)
    quarters, places = np.unique(times_us // _QUARTER_US, return_inverse=True)
    days = [_day(cut.zone, quarter) for quarter in quarters.tolist()]
    return np.array(days, np.int64)[places]


@lru_cache(maxsize=65_536)
def _day(zone: str, quarter: int) -> int:
    """Return the day, since 1970, that a quarter of an hour belongs to in a zone."""
    moment_us = quarter * _QUARTER_US
    local = datetime.fromtimestamp(moment_us / 1_000_000, ZoneInfo(zone))
    day = local.toordinal() - _EPOCH_DAY
    # Where the clocks are set back at midnight, the day begins at the first of the two.
    return day + 1 if _midnight_us(zone, day + 1) <= moment_us else day


def _midnight_us(zone: str, day: int) -> int:
    local = datetime.fromordinal(day + _EPOCH_DAY).replace(tzinfo=ZoneInfo(zone))
    return int(local.timestamp()) * 1_000_000
