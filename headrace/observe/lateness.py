"""How late the records of a stream come, measured over its whole log, and what a delay would do.

It needs no engine and no store: the log is read, decoded and stamped as a turn does it. It needs
Spark only where the event time is computed.

What a view loses are pairs of a record and a window that is closed to it. They are counted for each
delay, from event times and clocks. Conditions of the view are not asked, so of a view with WHERE,
or over unique ids, there are at most so many. The branches of a UNION are added up. A window over
an expression is Spark's to work out: what such a view loses is not known here, and it is named.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from headrace.engine.gears.stamping import Stamper, gather
from headrace.engine.spark.session import start_spark
from headrace.engine.time.timekeeping import Timekeeper
from headrace.engine.unit import make_decoder
from headrace.log.base import Extent, Log, Range
from headrace.model.definitions import Stream, View
from headrace.model.nodes import ARRIVAL
from headrace.plan.shape import Shape, shapes_of
from headrace.time.clocks import NEVER, Clock, Micros
from headrace.time.lateness import BUCKETS, Counts, as_counts, bounds_us, quantile_us
from headrace.time.losses import count_late_pairs, count_pairs
from headrace.time.windows import Cut

__all__ = [
    "DelayEffect",
    "LatePairs",
    "Lateness",
    "LatenessBucket",
    "ViewLoss",
    "measure_lateness",
    "ranges_of",
]

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)
#: Where the ranges for people end, in microseconds: 0, 1 ms, ... 1 s, ... 1 minute, ... 1 day.
_RANGES_US = (
    *(0, 1_000, 10_000, 100_000, 1_000_000, 5_000_000, 10_000_000, 30_000_000),
    *(60_000_000, 300_000_000, 900_000_000, 3_600_000_000, 86_400_000_000),
)


@dataclass(frozen=True)
class LatenessBucket:
    """How many records came so late: more than the bucket before, at most `to_us`."""

    to_us: int
    records: int


@dataclass(frozen=True)
class DelayEffect:
    """What a watermark delay would do: so many records would come behind it, at most.

    Rows close that much later.
    """

    delay_us: int
    behind: int
    behind_share: float


@dataclass(frozen=True)
class LatePairs:
    """How many pairs of record and window would be late with a delay."""

    delay_us: int
    late: int


@dataclass(frozen=True)
class ViewLoss:
    """What a view with windows loses, and would lose with other delays."""

    view: str
    pairs: int
    late: int  # with the delay that holds, or held when each record came
    at_most: bool  # WHERE or a unique id may leave some of them out
    delays: tuple[LatePairs, ...]


@dataclass(frozen=True)
class Lateness:
    """The lateness of the accepted records of a stream, and what delays would do."""

    stream: str
    records: int
    dead: int
    unguarded: int
    delay_us: int  # that holds now, the largest of the partitions
    buckets: tuple[LatenessBucket, ...]  # those that are not empty
    delays: tuple[DelayEffect, ...]
    views: tuple[ViewLoss, ...] = ()  # those with windows; others have no late records
    not_known: tuple[str, ...] = ()  # views with windows over an expression

    def to_json(self) -> dict[str, Any]:
        """Return the same under the same names, as JSON takes it: raw numbers."""
        return asdict(self)


class _Losses:
    """Counts what a view loses, in all its branches over the stream."""

    def __init__(self, view: View, shapes: Sequence[Shape], stream: Stream) -> None:
        self._view = view
        self._cuts = [Cut.of(shape.window) for shape in shapes if shape.window is not None]
        self._at_most = any(shape.where or shape.expansions or stream.unique for shape in shapes)
        self._late = self._pairs = 0
        self._by_delay = dict.fromkeys(sorted({*_RANGES_US, stream.delay_us}), 0)

    def note(self, times_us: Micros, clocks_us: Micros, watermarks_us: Micros) -> None:
        """Count a batch."""
        lateness_us = self._view.lateness_us
        begun = clocks_us != NEVER
        for cut in self._cuts:
            self._pairs += count_pairs(cut, times_us)
            if lateness_us is None:
                continue  # late records are folded
            late = partial(count_late_pairs, cut, times_us, lateness_us=lateness_us)
            self._late += late(watermarks_us)
            for delay_us in self._by_delay:
                watermarks = np.where(begun, clocks_us - delay_us * begun, NEVER)
                self._by_delay[delay_us] += late(watermarks)

    def found(self) -> ViewLoss:
        """Return what was counted."""
        delays = tuple(LatePairs(*each) for each in self._by_delay.items())
        return ViewLoss(self._view.name, self._pairs, self._late, self._at_most, delays)


def _losses_of(stream: Stream, views: Sequence[View]) -> tuple[list[_Losses], list[str]]:
    """Return what counts the losses of views, and the names of those whose losses are not known."""
    losses: list[_Losses] = []
    not_known: list[str] = []
    for view in views:
        branches = [each for each in shapes_of(view) if each.stream == stream.name]
        windowed = [each for each in branches if each.window is not None]
        if any(each.time is not None for each in windowed):
            not_known.append(view.name)
        elif windowed:
            losses.append(_Losses(view, windowed, stream))
    return losses, not_known


def measure_lateness(
    log: Log,
    stream: Stream,
    views: Sequence[View] = (),
    *,
    last_records: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Lateness:
    """Read a stream's topic to its end as it is now. `on_progress` hears offsets read, and all.

    `views` are those whose losses are counted, if they read the stream. With `last_records` about
    so many are read, the last ones, and the clock begins with the first of them.
    """
    assert stream.event_time is not None
    time = Timekeeper(log)
    time.read()
    wanted = frozenset({stream.event_time})
    # Spark is asked only where it computes the event time.
    decoder = make_decoder(stream, wanted, start_spark() if stream.eager else None)
    arrives = stream.event_time == ARRIVAL
    losses, not_known = _losses_of(stream, views)

    def note(*stamps: Micros) -> None:
        for each in losses:
            each.note(*stamps)

    counts = np.zeros(BUCKETS, np.int64)
    dead = unguarded = delay_us = done = 0
    extents = sorted(log.extents(stream.topic).items())
    if last_records is not None:
        share = max(1, last_records // max(1, len(extents)))
        extents = [
            (partition, Extent(max(first, end - share), end)) for partition, (first, end) in extents
        ]
    total = sum(extent.end_offset - extent.first_offset for _, extent in extents)
    until = time.book.end_offset
    for partition, (first, end) in extents:
        begun = time.book.fresh(stream, partition.number, first, since=0, until=until)
        stamper = Stamper(
            stream,
            Range(partition, first, end),
            Clock(delay_us=stream.delay_us).marked(begun),
            decoder,
            marks=time.book.ahead(stream, partition.number, first, end, until=until),
            counts_lateness=True,
            on_stamped=note,
        )
        for batch in gather(log.read(Range(partition, first, end), produced=arrives)):
            stamper.stamp(batch, stamper.accept(batch, decoder.decode(batch)))
            on_progress(done + batch["offset"][-1].as_py() + 1 - first, total)
        summary = stamper.summary()
        done += end - first
        dead += len(summary.dead.offsets)
        unguarded += summary.unguarded
        delay_us = max(delay_us, summary.end.delay_us)
        counts += as_counts(summary.lateness)
    filled = np.flatnonzero(counts).tolist()
    bounds = bounds_us().tolist()
    return Lateness(
        stream.name,
        int(counts.sum()),
        dead,
        unguarded,
        delay_us,
        tuple(LatenessBucket(bounds[bucket], int(counts[bucket])) for bucket in filled),
        _effects(counts, delay_us),
        tuple(each.found() for each in losses),
        tuple(not_known),
    )


def _effects(counts: Counts, delay_us: int) -> tuple[DelayEffect, ...]:
    total = int(counts.sum())
    delays = {0, delay_us, *(quantile_us(counts, share) for share in SHARES)}
    bounds = bounds_us()
    effects = []
    for delay in sorted(delays):
        # A bucket that the delay cuts counts as behind it: no delay looks better than it is.
        behind = int(counts[bounds > delay].sum())
        effects.append(DelayEffect(delay, behind, behind / total if total else 0.0))
    return tuple(effects)


def ranges_of(found: Lateness) -> list[LatenessBucket]:
    """Return the histogram in ranges for people; the last one has the largest lateness."""
    ends = [*_RANGES_US, max((bucket.to_us for bucket in found.buckets), default=0)]
    ranges = []
    before = -1
    for end in ends:
        inside = [each.records for each in found.buckets if before < each.to_us <= end]
        ranges.append(LatenessBucket(end, sum(inside)))
        before = max(before, end)
    last = max((at for at, each in enumerate(ranges) if each.records), default=0)
    return ranges[: last + 1]
