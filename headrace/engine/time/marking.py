"""Write an engine's markers: what stands still, what is new, what was learnt, where input ends.

A marker acts from an offset on that no unit has journalled a turn over: whoever has read that far
would have to read it again. What stood in the log when this engine began may have been read by one
before it, whose store is gone; so no marker acts there either, and a replay writes none.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.engine.gears.stamping import Summary
from headrace.engine.time.idling import Idleness
from headrace.engine.time.learning import Learning
from headrace.engine.time.timekeeping import Timekeeper
from headrace.engine.turn.outset import set_out
from headrace.engine.unit import Unit
from headrace.ledger.entries import MAIN, PlannedTurn, Progress, StreamPartition
from headrace.log.base import Extent
from headrace.model.definitions import Stream
from headrace.time.clocks import NEVER
from headrace.time.lateness import as_counts
from headrace.time.markers import MarkedPartition, Marks, event_time_of

__all__ = ["Marking"]

logger = logging.getLogger("headrace.engine")

ProgressOf = Mapping[StreamPartition, Progress]


class Marking:
    """Writes markers through a timekeeper that writes; `wall` is a clock that never goes back."""

    def __init__(self, time: Timekeeper, wall: Callable[[], int]) -> None:
        self._time = time
        self._idleness = Idleness(wall)
        self._learning = Learning(wall)
        self._reached: dict[
            MarkedPartition, int
        ] = {}  # the furthest ends that anybody may have read

    def reached(self, planned: PlannedTurn) -> None:
        """Remember how far a journalled turn reads: later markers act behind that."""
        for stream, range in planned.ranges:
            place = MarkedPartition(stream, range.partition.topic, range.partition.number)
            self.begins(place, range.end)

    def begins(self, place: MarkedPartition, end_offset: int) -> None:
        """Remember where a partition ends as this engine begins."""
        self._reached[place] = max(self._reached.get(place, 0), end_offset)

    def note(self, unit: Unit, summaries: Sequence[Summary]) -> None:
        """Learn from a unit's turn which partitions move, and how late records come."""
        if unit.name != MAIN:
            return
        self._idleness.moved(
            StreamPartition(each.stream, each.range.partition.number)
            for each in summaries
            if each.accepted or each.duplicate
        )
        for summary in summaries:
            if summary.lateness:
                stream = unit.streams[summary.stream].stream
                self._learning.note(stream, as_counts(summary.lateness))

    def forget(self) -> None:
        """Forget what stood still: the log is out of reach, and nobody sees what comes there."""
        with self._time.lock:
            self._idleness.forget()

    def mark_due(self, main: Unit, extents: Mapping[StreamPartition, Extent] | None) -> None:
        """Write the markers of partitions that stand still, and of delays that were learnt.

        Without extents nobody knows where the log ends, and so what stands still.
        """
        progress = set_out(main, self._time.book, self._time.book.end_offset).progress
        ends = {key: extent.end_offset for key, extent in (extents or {}).items()}
        self._idleness.begin_look()
        for source in main.streams.values():
            if ends and source.owned and source.stream.event_time is not None:
                due = self._idleness.look(source.stream, progress, ends)
                self._mark(main, source.stream, "idle", due)
            if source.owned and source.stream.adaptive is not None:
                self._mark_learnt(main, source.stream, progress)

    def due_in_us(self) -> int:
        """Return how long from now the next marker is due where nothing comes meanwhile."""
        return self._idleness.due_in_us()

    def _mark_learnt(self, main: Unit, stream: Stream, progress: ProgressOf) -> None:
        mine = {
            key.partition: place for key, place in progress.items() if key.stream == stream.name
        }
        if any(
            place.offset
            < self._reached.get(MarkedPartition(stream.name, stream.topic, partition), 0)
            for partition, place in mine.items()
        ):
            return  # a replay: what was learnt of it, then, is in the log
        held_us = max(place.clock.delay_us for place in mine.values())
        delay_us = self._learning.due(stream, held_us)
        if delay_us is not None:
            logger.info("%s: the delay is %g s from now on", stream.name, delay_us / 1_000_000)
            self._mark(main, stream, "learnt", dict.fromkeys(mine), delay_us=delay_us)
            self._learning.changed(stream)

    def mark_new(self, main: Unit, stream: Stream, added: Iterable[int]) -> None:
        """Write that partitions begin at the stream's smallest clock and watermark, its delay."""
        added = set(added)
        known = [
            place.clock
            for key, place in main.progress.items()
            if key.stream == stream.name and key.partition not in added
        ]
        smallest_us = min((clock.time_us for clock in known), default=NEVER)
        if smallest_us == NEVER:
            return
        times_us = dict.fromkeys(added, smallest_us)
        if stream.adaptive is None:
            self._mark(main, stream, "new", times_us)
            return
        # A delay that has grown turned no watermark back. It would turn back the stream's here, if
        # the clock began with it: so it begins with the delay that leads to that watermark.
        watermark_us = min(clock.watermark_us for clock in known)
        self._mark(main, stream, "new", times_us, delay_us=smallest_us - watermark_us)
        delay_us = max(clock.delay_us for clock in known)
        self._mark(main, stream, "new", dict.fromkeys(added), delay_us=delay_us)

    def mark_end(self, main: Unit, stream: Stream, watermark_us: int) -> None:
        """Write markers that take the watermark of every partition of a stream to a time."""
        times_us = {
            key.partition: watermark_us + place.clock.delay_us
            for key, place in main.progress.items()
            if key.stream == stream.name and place.clock.watermark_us < watermark_us
        }
        self._mark(main, stream, "end", times_us)

    def _mark(
        self,
        main: Unit,
        stream: Stream,
        why: str,
        times_us: Mapping[int, int | None],
        *,
        delay_us: int | None = None,
    ) -> None:
        """Write markers for partitions of a stream, to act where nobody has read yet."""
        if not times_us:
            return
        epoch = self._time.epoch
        assert epoch is not None
        with self._time.lock:
            marks = tuple(
                (partition, self._furthest(main, stream, partition), time_us)
                for partition, time_us in sorted(times_us.items())
            )
            time = event_time_of(stream)
            found = Marks(epoch, stream.name, stream.topic, why, delay_us, marks, time)
            self._time.write([found])

    def _furthest(self, main: Unit, stream: Stream, partition: int) -> int:
        place = main.progress.get(StreamPartition(stream.name, partition))
        if place is None:
            return 0  # it is new, and no unit reads further than the main one has
        return max(
            self._reached.get(MarkedPartition(stream.name, stream.topic, partition), 0),
            place.offset,
        )
