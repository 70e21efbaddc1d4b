"""Decide what a unit's next turn reads: its ranges, its gear, and the markers that act on them.

Promises:
- Every plan first reads the topic of markers to its end, and nobody writes a marker between that
  and the journal: it would act on records of that very turn.
- A unit that follows another one reads no further than it. Nobody reads further than the main one
  has, records of the topics it reads and markers.
- No plan is made, not even to wait, at a position that the log does not have. PositionLost.
"""

import logging
from collections.abc import Callable, Mapping

from headrace.engine.time.marking import Marking
from headrace.engine.time.timekeeping import Timekeeper
from headrace.engine.turn.emitting import NEVER_US
from headrace.engine.turn.outset import Outset, passed, set_out, with_marks
from headrace.engine.turn.ranges import backlog, check_position, plan_ranges
from headrace.engine.unit import Unit, UnitStream
from headrace.ledger.entries import MAIN, PlannedTurn, Progress, StreamPartition
from headrace.log.base import Extent, Log, Partition
from headrace.log.names import TIME_TOPIC
from headrace.model.definitions import Stream
from headrace.project.settings import Settings
from headrace.store.base import Store
from headrace.time.clocks import Clock
from headrace.time.markers import MarkedPartition
from headrace.wording import counted

__all__ = ["Ends", "Planner"]

logger = logging.getLogger("headrace.engine")

# Of markers that are held in memory; those that everybody has passed go first.
MAX_MARKS = 10_000

# (stream, partition of its topic) -> offset
Ends = Mapping[tuple[str, Partition], int]
Held = Mapping[Partition, Extent]


class Planner:
    """Plans the turns of an engine's units. With `ends` no turn reads further than those offsets.

    `units` tells the units there are now, `due_to_tell_in_us` how long from now a sink is to be
    told of changes that wait.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        settings: Settings,
        units: Callable[[], Mapping[str, Unit]],
        due_to_tell_in_us: Callable[[], int],
        *,
        wall: Callable[[], int],
        ends: Ends | None = None,
    ) -> None:
        time_end = None if ends is None else ends.get((TIME_TOPIC, Partition(TIME_TOPIC, 0)), 0)
        self.time = Timekeeper(log, end=time_end)
        self.marking = Marking(self.time, wall)
        self.epoch = 0
        self._log = log
        self._store = store
        self._settings = settings
        self._units = units
        self._due_to_tell_in_us = due_to_tell_in_us
        self._ends = ends

    def begin(self, *, writes: bool) -> int:
        """Take over from every engine before, in the store and, if it writes, in the log."""
        self.time.read()
        self.epoch = self._store.begin_epoch(self.time.book.epoch)
        if writes:
            self.time.begin(self.epoch)
        return self.epoch

    def begin_unit(self, unit: Unit) -> None:
        """Check that a unit can go on where it stands, and where a turn of it was interrupted.

        What is in its topics by now was perhaps read before, for a store that is gone.
        """
        planned = self._store.journalled(unit.name)
        if planned is not None:
            self.marking.reached(planned)
        if unit.state.stands_still:
            return
        self.extents(unit)
        for source in unit.streams.values():
            for partition, extent in self.partitions(source.stream).items():
                place = MarkedPartition(source.stream.name, partition.topic, partition.number)
                self.marking.begins(place, extent.end_offset)
        for stream, range in () if planned is None else planned.ranges:
            topic = range.partition.topic
            if unit.topics().get(stream) == topic:
                check_position(range.partition, range.end, self._log.extents(topic))

    def decide(self, unit: Unit, max_records: int | None) -> tuple[PlannedTurn, Outset] | None:
        """Decide what a unit's next turn reads, and with which markers; None: nothing new."""
        main = self._units()[MAIN]
        # Nobody writes a marker between what is read of them here and what is journalled: it
        # would act on records of this very turn.
        with self.time.lock:
            held = self._held(unit)
            self.notice_partitions(unit, held)
            extents = self.extents(unit, held)
            self.time.read()
            if unit is main and self.time.writes:
                self.marking.mark_due(unit, extents if self._ends is None else None)
            if len(self.time.book) > MAX_MARKS:
                self._forget_marks()
            # After the extents: a marker that acts on what the main unit has read is known to it.
            until = self.time.book.end_offset if unit is main else main.time_offset
            outset = set_out(unit, self.time.book, until)
            planned = self._journalled(unit) or self._plan(unit, extents, max_records)
            if planned is None:
                failing = any(fold.stream.name in unit.unfit for fold in unit.folds)
                moved = unit.added or failing or outset.progress != unit.progress
                if not moved:
                    unit.time_offset = until
                    return None
                planned = PlannedTurn(unit.name, unit.turn + 1, self.epoch, ())
            self.marking.reached(planned)
            unit.reaches_end = _reaches(unit, planned, extents)
            return planned, with_marks(outset, unit, self.time.book, planned)

    def _plan(
        self, unit: Unit, extents: Mapping[StreamPartition, Extent], max_records: int | None
    ) -> PlannedTurn | None:
        ends = {key: extent.end_offset for key, extent in extents.items()}
        waiting = backlog(unit.progress, ends)
        if waiting == 0:
            return None
        limit = unit.pace.limit(waiting) if max_records is None else max_records
        limit = min(limit, self._settings.max_turn_records)
        short = limit <= self._settings.short_turn_records
        ranges = plan_ranges(
            self._log,
            unit.topics(),
            unit.progress,
            extents,
            max_records=limit,
            max_bytes=self._settings.short_turn_bytes if short else self._settings.max_turn_bytes,
        )
        return PlannedTurn(unit.name, unit.turn + 1, self.epoch, ranges)

    def _journalled(self, unit: Unit) -> PlannedTurn | None:
        """Return the turn that a crash interrupted, if the definitions still read it so."""
        if not unit.resumes:
            return None
        unit.resumes = False
        planned = self._store.journalled(unit.name)
        if planned is None or planned.turn != unit.turn + 1:
            return None
        topics = unit.topics()
        for stream, range in planned.ranges:
            place = unit.progress.get(StreamPartition(stream, range.partition.number))
            if place is None or place.offset != range.start:
                return None
            if topics.get(stream) != range.partition.topic:
                return None
        return PlannedTurn(unit.name, planned.turn, self.epoch, planned.ranges)

    def notice_partitions(self, unit: Unit, held: Held | None = None) -> None:
        """Let a unit read partitions that were added to its topics, from their first record.

        The next turn enters them in the ledger, be there anything to read or not: W of the stream
        is theirs too. `held` is what the log holds, if that is known.
        """
        held = self._held(unit) if held is None else held
        for name, source in unit.streams.items():
            clock = Clock(delay_us=source.stream.delay_us)
            added = {
                StreamPartition(name, partition.number): Progress(clock=clock)
                for partition in self._allowed(source.stream, held)
                if StreamPartition(name, partition.number) not in unit.progress
            }
            known = sum(key.stream == name for key in unit.progress)
            if added and known and source.stream.primary_key:
                unit.unfit[name] = _parted(source.stream, known)
                continue
            if added:
                # First the marker: without it nobody would find them added when it is tried again.
                if unit.name == MAIN and self.time.writes:
                    self.marking.mark_new(unit, source.stream, (key.partition for key in added))
                logger.info(
                    "%s: %s added, and read from now on", name, counted(len(added), "partition")
                )
                unit.progress = {**unit.progress, **added}
                unit.added.update(added)

    def partitions(self, stream: Stream) -> dict[Partition, Extent]:
        """Return the partitions of a stream that may be read, and what they hold."""
        return self._allowed(stream, self._log.extents(stream.topic))

    def _allowed(self, stream: Stream, held: Held) -> dict[Partition, Extent]:
        return {
            partition: extent
            for partition, extent in held.items()
            if partition.topic == stream.topic
            and (self._ends is None or (stream.name, partition) in self._ends)
        }

    def _held(self, unit: Unit) -> Held:
        """Return what the log holds of a unit's topics, asked for all of them at once."""
        return self._log.extents(*dict.fromkeys(unit.topics().values()))

    def _forget_marks(self) -> None:
        """Let go of markers that every unit has passed; a new engine reads them again."""
        units = self._units().values()
        self.time.book.forget(passed(units), since=min(unit.time_offset for unit in units))

    def gear(self, planned: PlannedTurn) -> str:
        """Return the gear of a turn: short for what the driver can hold."""
        size = sum(self._log.measure(entry.range) for entry in planned.ranges)
        short = (
            planned.records <= self._settings.short_turn_records
            and size <= self._settings.short_turn_bytes
        )
        return "short" if short else "long"

    def extents(self, unit: Unit, held: Held | None = None) -> dict[StreamPartition, Extent]:
        """Return how far a unit may read now: the log's end, and no further than its leader.

        `held` is what the log holds, if that is known. PositionLost: it stands where the log has
        nothing.
        """
        held = self._held(unit) if held is None else held
        extents: dict[StreamPartition, Extent] = {}
        for name, source in unit.streams.items():
            topic = source.stream.topic
            of_topic = {place: extent for place, extent in held.items() if place.topic == topic}
            leader = self._leader(unit, source)
            for key, place in unit.progress.items():
                if key.stream != name:
                    continue
                check_position(Partition(topic, key.partition), place.offset, of_topic)
                first, end = of_topic[Partition(topic, key.partition)]
                if leader is not None:
                    end = leader.progress.get(key, Progress()).offset
                if self._ends is not None:
                    end = min(end, self._ends.get((name, Partition(topic, key.partition)), 0))
                extents[key] = Extent(first, end)
        return extents

    def _leader(self, unit: Unit, source: UnitStream) -> Unit | None:
        """Return the unit that another reads a stream no further than; None: to the log's end.

        The one that brings this version of the stream, or the main one if it reads that topic.
        """
        for other in self._units().values():
            held = other.streams.get(source.stream.name)
            if not source.owned and held is not None and held.owned and held.owner == source.owner:
                return other
        main = self._units()[MAIN]
        follows = main.topics().get(source.stream.name) == source.stream.topic
        return main if unit is not main and follows else None

    def awaited(self, unit: Unit) -> dict[Partition, int]:
        """Return the positions of a unit whose next records come from the log itself.

        Others come when its leader has read them, or not at all: it reads to its ends only.
        """
        if self._ends is not None:
            return {}
        with unit.lock:
            led = {n for n, source in unit.streams.items() if self._leader(unit, source)}
            topics = unit.topics()
            return {
                Partition(topics[key.stream], key.partition): place.offset
                for key, place in unit.progress.items()
                if key.stream in topics and key.stream not in led
            }

    def due_in_us(self, unit: Unit) -> int:
        """Return how long a unit without records may wait: then a marker or a sink is due."""
        if unit.name != MAIN:
            return NEVER_US
        due_us = self._due_to_tell_in_us()
        if self.time.writes and self._ends is None:
            due_us = min(due_us, self.marking.due_in_us())
        return due_us

    def lag(self, unit: Unit) -> int:
        """Return how many records a unit has still to read."""
        ends = {key: extent.end_offset for key, extent in self.extents(unit).items()}
        return backlog(unit.progress, ends)

    def read_until(self, ends: Ends) -> None:
        """Read no further than these offsets from now on, of the topic of markers either."""
        self._ends = ends
        self.time.read_until(ends.get((TIME_TOPIC, Partition(TIME_TOPIC, 0)), 0))

    def stop_at_the_end(self) -> None:
        """Read no further than the log's end as it is now."""
        self._ends = {
            (name, partition): extent.end_offset
            for unit in self._units().values()
            for name, topic in unit.topics().items()
            for partition, extent in self._log.extents(topic).items()
        }


def _reaches(unit: Unit, planned: PlannedTurn, extents: Mapping[StreamPartition, Extent]) -> bool:
    """Return whether a turn reads up to these ends."""
    ends = {
        StreamPartition(name, range.partition.number): range.end for name, range in planned.ranges
    }
    return all(
        ends.get(key, unit.progress[key].offset) >= extent.end_offset
        for key, extent in extents.items()
    )


def _parted(table: Stream, partitions: int) -> str:
    """Return why a table stands still whose topic has more partitions than it began with."""
    return (
        f"the topic {table.topic} had {counted(partitions, 'partition')} when the table was built "
        f"and has more now, so changes of a key may be in several, and their order is not known. "
        f"Append all rows to another topic, under the same keys, and let the table read that."
    )
