"""Decide which partitions stand still, and what their markers say (docs/design.md, Time).

A partition is idle when it is read to its end and had no readable record for the stream's
`idle_timeout`, as this engine's own clock counts: a wall clock that jumps moves nothing. It gets a
marker, and others while it lasts:
- the smallest clock of the stream's active partitions, every `idle_timeout`, or,
- when none is active, the largest clock from the stream's records alone plus the time since the
  later of the stream's last record and this engine's start. Then each pause is as long as all
  before it together, up to an hour: a stream that nobody uses fills no topic, and a window closes
  after at most twice the time that it takes to end, or an hour later.
So the last window closes too, one idle partition holds nothing up, and a weekend's outage makes
nothing late. A partition that was added begins with a marker at the stream's smallest clock.
Where broken records come all the time, the end is what had come by the time that counts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from headrace.ledger.entries import Progress, StreamPartition
from headrace.model.definitions import Stream
from headrace.time.clocks import NEVER

__all__ = ["Idleness"]

NEVER_DUE_US = 1 << 62
# Between the markers of a stream that stands still, unless its `idle_timeout` is longer.
_LONGEST_PAUSE_US = 3_600_000_000

Micros = int
#: From partition to the time of its marker.
Times = dict[int, Micros]


@dataclass
class _Stood:
    """Since when a partition stands where it is, and when it got its last marker.

    Where broken records come all the time, its end is never read when somebody looks. So an end
    that was seen is remembered, until it is read.
    """

    since_us: Micros
    marked_us: Micros | None = None
    end_offset: int = -1
    end_us: Micros = 0  # when it was seen
    read_us: Micros = 0  # all that came by then is read


@dataclass
class Idleness:
    """What an engine has seen of its partitions; `wall` is a clock that never goes back."""

    wall: Callable[[], Micros]
    _stood: dict[StreamPartition, _Stood] = field(default_factory=dict)
    _due_us: Micros = NEVER_DUE_US  # when the next marker is, as far as the last look can tell

    def moved(self, keys: Iterable[StreamPartition]) -> None:
        """Note that readable records came in these partitions."""
        now_us = self.wall()
        for key in keys:
            self._stood[key] = _Stood(now_us)

    def forget(self) -> None:
        """Note that nobody saw what came for a while: a standstill has to be seen anew."""
        self._stood.clear()

    def begin_look(self) -> None:
        """Begin to look at all streams there are."""
        self._due_us = NEVER_DUE_US

    def due_in_us(self) -> Micros:
        """Return how long from now a marker of a stream is due if no record comes meanwhile."""
        return max(0, self._due_us - self.wall())

    def look(
        self,
        stream: Stream,
        progress: Mapping[StreamPartition, Progress],
        ends: Mapping[StreamPartition, int],
    ) -> Times:
        """Return the markers that are due for a stream's partitions, read so far, ending there."""
        now_us = self.wall()
        mine = {key: place for key, place in progress.items() if key.stream == stream.name}
        idle = {
            key for key, place in mine.items() if self._is_idle(stream, key, place, ends, now_us)
        }
        for key in mine.keys() - idle:
            self._expect(self._stood[key].since_us + stream.idle_timeout_us)
        if not idle:
            return {}
        active = [place.clock.time_us for key, place in mine.items() if key not in idle]
        since_us = max(self._stood[key].since_us for key in mine)
        if active:
            time_us = min(active)
        else:
            largest = max(place.clock.records_us for place in mine.values())
            time_us = NEVER if largest == NEVER else largest + now_us - since_us
        due: Times = {}
        for key in idle:
            stood = self._stood[key]
            pause_us = stream.idle_timeout_us
            if stood.marked_us is not None and not active:
                pause_us = max(pause_us, min(stood.marked_us - since_us, _LONGEST_PAUSE_US))
            waited = stood.marked_us is None or now_us - stood.marked_us >= pause_us
            if waited and time_us > mine[key].clock.time_us:
                stood.marked_us = now_us
                due[key.partition] = time_us
            if time_us != NEVER:  # else there is no readable record yet, and nothing to say
                self._expect_next(stood, pause_us, mine[key].clock.time_us - time_us, bool(active))
        return due

    def _expect(self, moment_us: Micros) -> None:
        self._due_us = min(self._due_us, moment_us)

    def _expect_next(self, stood: _Stood, pause_us: Micros, ahead_us: Micros, active: bool) -> None:
        """Expect the next marker of an idle partition whose clock is so far ahead of what it says.

        Where others are active it says more when their records come, and that is no matter of time.
        """
        now_us = self.wall()
        if stood.marked_us is not None and stood.marked_us + pause_us > now_us:
            self._expect(stood.marked_us + pause_us)
        elif not active:
            self._expect(now_us + max(0, ahead_us) + 1)

    def _is_idle(
        self,
        stream: Stream,
        key: StreamPartition,
        place: Progress,
        ends: Mapping[StreamPartition, int],
        now_us: Micros,
    ) -> bool:
        stood = self._stood.setdefault(key, _Stood(now_us))
        if place.offset >= ends[key]:
            stood.read_us = now_us
        elif place.offset >= stood.end_offset:
            stood.read_us = stood.end_us
            stood.end_offset, stood.end_us = ends[key], now_us
        return stood.read_us - stood.since_us >= stream.idle_timeout_us
