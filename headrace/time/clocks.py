"""Stamp records with the clock of their partition (DESIGN, section 4).

The clock `c` of a record is the largest `min(event time, arrival)` of the readable records before
it in its partition; -infinity (NEVER) when there is none. It depends on the records before it and
on nothing else, so how the log is cut into turns never shows. An arrival that the log did not stamp
is UNKNOWN and holds no clock back: such a stream is unguarded.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["NEVER", "UNKNOWN", "Stamped", "largest_time", "stamp"]

#: -infinity in microseconds: before every time a record can carry.
NEVER = int(np.iinfo(np.int64).min)
#: An arrival that nobody stamped: after every time a record can carry.
UNKNOWN = int(np.iinfo(np.int64).max)

Micros = npt.NDArray[np.int64]


class Stamped(NamedTuple):
    """The clock of every record, and the clock after the last one."""

    clocks_us: Micros
    end_clock_us: int


def stamp(
    event_times_us: Micros, arrivals_us: Micros, readable: npt.NDArray[np.bool_], clock_us: int
) -> Stamped:
    """Stamp one partition's records, given in offset order, from the clock before the first."""
    moves = np.where(readable, np.minimum(event_times_us, arrivals_us), NEVER)
    running = np.maximum.accumulate(np.concatenate(([np.int64(clock_us)], moves)))
    return Stamped(running[:-1], int(running[-1]))


def largest_time(
    event_times_us: Micros, arrivals_us: Micros, readable: npt.NDArray[np.bool_]
) -> int:
    """Return how far these records move a clock: what `stamp` would add, without the stamps."""
    moves = np.where(readable, np.minimum(event_times_us, arrivals_us), NEVER)
    return int(moves.max(initial=NEVER))
