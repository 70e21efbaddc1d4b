"""Where a turn sets out: its clocks, with every marker that acts on what it will read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headrace.engine.gears.offset_sets import NO_OFFSETS, OffsetSet
from headrace.engine.gears.stamping import Shaped, Stamper
from headrace.engine.tables.topic_facts import TopicFacts
from headrace.engine.time.checkpoint import Reader
from headrace.engine.unit import Unit
from headrace.ledger.entries import PlannedTurn, Progress, StreamPartition
from headrace.log.base import Range
from headrace.model.definitions import Stream
from headrace.time.clocks import Mark
from headrace.time.markers import MarkedPartition, MarkerBook

__all__ = ["Outset", "passed", "set_out", "standing", "with_marks"]


@dataclass(frozen=True)
class Outset:
    """The progress a turn begins with, and the marks that act on offsets after it.

    `progress` has every partition of the unit's streams; `time_offset` says how far the topic of
    markers was read for it.
    """

    progress: Mapping[StreamPartition, Progress]
    time_offset: int
    void_markers: int = 0
    marks: Mapping[StreamPartition, tuple[Mark, ...]] = field(default_factory=dict)

    def stamper(
        self,
        stream: Stream,
        range: Range,
        decoder: Shaped,
        *,
        duplicates: OffsetSet = NO_OFFSETS,
        facts: TopicFacts,
    ) -> Stamper:
        """Return what decodes and stamps a range of the turn, and leaves out its duplicates."""
        key = StreamPartition(stream.name, range.partition.number)
        clock = self.progress[key].clock
        marks = self.marks.get(key, ())
        return Stamper(
            stream, range, clock, decoder, marks=marks, duplicates=duplicates, facts=facts
        )


def set_out(unit: Unit, book: MarkerBook, until: int) -> Outset:
    """Return where a unit stands once the markers before `until` act."""
    progress = {}
    for key, place in unit.progress.items():
        stream = unit.streams[key.stream].stream
        since = unit.time_offset
        fresh = book.fresh(stream, key.partition, place.offset, since=since, until=until)
        progress[key] = place._replace(clock=place.clock.marked(fresh))
    return Outset(progress, until, book.void)


def with_marks(outset: Outset, unit: Unit, book: MarkerBook, planned: PlannedTurn) -> Outset:
    """Return the outset of a planned turn: with the marks that act on its ranges."""
    marks = {}
    for name, (partition, start, end) in planned.ranges:
        stream = unit.streams[name].stream
        found = book.ahead(stream, partition.number, start, end, until=outset.time_offset)
        if found:
            marks[StreamPartition(name, partition.number)] = found
    return replace(outset, marks=marks)


def standing(unit: Unit) -> Reader:
    """Return what a unit has read of its partitions, and of the topic of markers."""
    topics = unit.topics()
    offsets = {
        MarkedPartition(key.stream, topics[key.stream], key.partition): place.offset
        for key, place in unit.progress.items()
    }
    return Reader(offsets, unit.time_offset)


def passed(units: Iterable[Unit]) -> dict[MarkedPartition, int]:
    """Return the offsets that every unit which reads a partition has passed.

    A unit that has not noticed a partition yet stands before its first record.
    """
    units = list(units)
    found: dict[MarkedPartition, int] = {}
    for key in {key for unit in units for key in unit.progress}:
        for unit in units:
            if key.stream in unit.streams:
                place = MarkedPartition(
                    key.stream, unit.streams[key.stream].stream.topic, key.partition
                )
                offset = unit.progress.get(key, Progress()).offset
                found[place] = min(found.get(place, offset), offset)
    return found
