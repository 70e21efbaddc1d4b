"""How windows cut time, in whole numbers. Engines say the same in their own SQL.

Time is counted in *units*: microseconds since 1970 or, for windows of a time zone, its days since
1970-01-01. A day begins at its local midnight; where clocks are changed at midnight, at the
midnight that the offset before the change gives, so that days follow each other without gaps.

Windows have numbers that grow with time. A record is in those from `first` to `last`:
- hopping (and tumbling, where slide = size): number i is `[offset + i*slide, ... + size)`;
- cumulative: number i ends at `offset + i*step` and begins where the tumbling one of its size does.
A record is late for a window when `end + allowed_lateness <= w`, its watermark. With `c` the unit
that `w - allowed_lateness` falls into, that is `end <= c`; so the first window that is open to a
record at `u` is the first one of a record at `max(u, c)`: one formula for both, and no loop.

A *pane* is the time between two edges of windows: all records of a pane are in the same windows. A
row of a pane stands for the windows from its `first_window`, the first that was open to its
records, to the pane's last one.

A session has no edges of its own before all of its records are there. Its *pieces* are those of
tumbling windows as long as the gap: what falls into the same piece is less than the gap apart, so
it belongs to the same session, whatever else comes.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.model.nodes import Window
from headrace.model.windows import DAY_US

__all__ = ["MAX_EDGE_US", "MIN_EDGE_US", "Cut"]

#: Edges of windows stay within the years 1 to 9999, as event times do.
MIN_EDGE_US = -62_135_596_800_000_000
MAX_EDGE_US = 253_402_300_799_999_999

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cut:
    """The windows of a view, in units; see the module's docstring."""

    size: int
    hop: int  # from one number to the next: the slide, or the step
    offset: int
    cumulative: bool
    overlaps: bool
    zone: str | None
    session: bool = False  # the windows are its pieces

    @staticmethod
    def of(window: Window) -> "Cut":
        """Return how a window cuts time."""
        unit = 1 if window.zone is None else DAY_US
        hop_us = window.slide_us if window.overlaps else window.size_us
        return Cut(
            window.size_us // unit,
            hop_us // unit,
            window.offset_us // unit,
            window.kind == "cumulative",
            window.overlaps,
            window.zone,
            window.gap_us is not None,
        )

    @property
    def pane(self) -> int:
        """How long a pane is."""
        return self.hop if self.cumulative else math.gcd(self.size, self.hop)

    @property
    def times(self) -> tuple[int, int]:
        """The units `[first, end)` of records whose windows all lie within the years 1 to 9999.

        Of a time zone: within the days 0001-01-02 to 9999-12-31, which no zone moves out of them.
        """
        lowest, highest = MIN_EDGE_US, MAX_EDGE_US
        if self.session:
            return lowest, highest - self.size + 1  # a session may begin and end anywhere
        if self.zone is not None:
            lowest, highest = MIN_EDGE_US // DAY_US + 1, MAX_EDGE_US // DAY_US
        hop = self.size if self.cumulative else self.hop
        below = self.offset + ((lowest - 1 - self.offset) // hop) * hop  # last start before lowest
        above = self.offset + ((highest - self.size - self.offset) // hop + 1) * hop
        return below + self.size, above

    def ending(self, before_us: int, after_us: int) -> tuple[int, int]:
        """Return the first and the last number of windows that end in `(before, after]`.

        Of a time zone some more: its days are numbered here as if they began up to a day from UTC.
        """
        shift = self.offset if self.cumulative else self.offset + self.size
        if self.zone is not None:
            before_us, after_us = before_us // DAY_US - 1, after_us // DAY_US + 1
        return (before_us - shift) // self.hop + 1, (after_us - shift) // self.hop

    def last_windows(self, panes: Numbers) -> Numbers:
        """Return the number of the last window that holds each pane."""
        if self.cumulative:
            steps = self.size // self.hop
            return (panes // steps + 1) * steps
        return panes // (self.hop // self.pane)
