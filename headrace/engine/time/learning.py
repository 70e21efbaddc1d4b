"""Learn the delay of an adaptive watermark from the lateness of the records seen so far.

The delay is long enough for the wanted share of the records, and never longer than the stream
allows. It grows as soon as that share is missed and shrinks slowly, and older records count less
and less. What was learnt acts once it is a marker in the log; so it may be forgotten: a new engine
goes on with the last marker and learns anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headrace.model.definitions import Stream
from headrace.time.clocks import EventTime
from headrace.time.lateness import BUCKETS, Counts, quantile_us
from headrace.time.markers import event_time_of

__all__ = ["Learning"]

# So many records beyond the wanted share must be expected before the share is believed.
_EXPECTED_BEYOND = 10
# Counts are halved at this many times the records that are needed: half of what is known is new.
_REMEMBERED = 20
_GROW_EVERY_US = 1_000_000
_SHRINK_EVERY_US = 30_000_000
_SHRINK_BELOW = 0.8  # of the delay that holds: a small gain is not worth a marker


@dataclass
class _Learnt:
    counts: Counts = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    changed_us: int | None = None


@dataclass
class Learning:
    """What an engine has seen of its adaptive streams; `wall` is a clock that never goes back."""

    wall: Callable[[], int]
    _learnt: dict[tuple[str, EventTime | None], _Learnt] = field(default_factory=dict)

    def note(self, stream: Stream, counts: Counts) -> None:
        """Add the lateness of a turn's records."""
        learnt = self._of(stream)
        learnt.counts = learnt.counts + counts
        if learnt.counts.sum() > _REMEMBERED * _needed(stream):
            learnt.counts = learnt.counts // 2

    def due(self, stream: Stream, delay_us: int) -> int | None:
        """Return the delay that shall hold from now on instead of `delay_us`, None: it stays."""
        assert stream.adaptive is not None
        learnt = self._of(stream)
        if learnt.counts.sum() < _needed(stream):
            return None
        wanted_us = quantile_us(learnt.counts, float(stream.adaptive.share))
        wanted_us = min(wanted_us, stream.adaptive.max_us)
        grows = wanted_us > delay_us
        if not grows and wanted_us > _SHRINK_BELOW * delay_us:
            return None
        if wanted_us == delay_us:
            return None
        now_us = self.wall()
        pause_us = _GROW_EVERY_US if grows else _SHRINK_EVERY_US
        if learnt.changed_us is not None and now_us - learnt.changed_us < pause_us:
            return None
        return wanted_us

    def changed(self, stream: Stream) -> None:
        """Note that the delay that was due holds now."""
        self._of(stream).changed_us = self.wall()

    def _of(self, stream: Stream) -> _Learnt:
        # What came late by one event time says nothing of another that the stream is edited to.
        return self._learnt.setdefault((stream.name, event_time_of(stream)), _Learnt())


def _needed(stream: Stream) -> int:
    assert stream.adaptive is not None
    return round(_EXPECTED_BEYOND / (1 - float(stream.adaptive.share)))
