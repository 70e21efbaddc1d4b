"""Draw up what a turn did: counters, positions, clocks, outbox, seeds, as one Commit."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.engine.gears.folding import Outcome
from headrace.engine.gears.offset_sets import OffsetSet
from headrace.engine.gears.stamping import SideRecords, Summary
from headrace.engine.gears.uniqueness import Stepped
from headrace.engine.turn.outset import Outset
from headrace.engine.unit import Unit
from headrace.errors import EngineError
from headrace.ledger.entries import (
    Commit,
    Counted,
    Counters,
    HoldingState,
    Manifest,
    OutboxEntry,
    Owner,
    PlannedTurn,
    Progress,
    Seed,
    SetAside,
    StreamPartition,
    TurnReport,
    Written,
    row_producer,
    side_producer,
    watermark_of,
)
from headrace.ledger.laws import CHANGE_COUNTERS
from headrace.log.base import Partition, Range
from headrace.model.definitions import Stream
from headrace.plan.stages import Fold, Operator, Pipeline, streams_by_table
from headrace.plan.tables import Table
from headrace.schema.formats import counted_operations
from headrace.wording import counted

__all__ = ["Accounts"]

MAX_REASON_CHARACTERS = 500
_OF_EXPANSIONS = ("left_out", "empty", "expanded", "ended")


class Accounts:
    """A turn's books. A view can still be set aside until the commit succeeds."""

    def __init__(
        self,
        unit: Unit,
        pipeline: Pipeline,
        planned: PlannedTurn,
        outset: Outset,
        stepped: Mapping[Operator, Stepped],
        summaries: Sequence[Summary],
        outcomes: dict[Fold, Outcome],
        asides: Sequence[SetAside],
    ) -> None:
        self._unit = unit
        self._pipeline = pipeline
        self._planned = planned
        self._outset = outset
        self._stepped = stepped
        self._summaries = summaries
        self._outcomes = outcomes
        self._asides = list(asides)

    def set_aside(self, view: str, reason: str) -> None:
        """Leave a view out of this turn, as failed."""
        folds = [fold for fold in self._outcomes if fold.name == view]
        for fold in folds:
            del self._outcomes[fold]
        self._asides.append(SetAside(view, folds[0].version, reason, HoldingState.FAILED))

    def commit(self, gear: str, milliseconds: Mapping[str, float]) -> Commit:
        """Return the turn as one value. EngineError: a record was lost or made up on the way."""
        self._check_whole()
        counters = {**self._stream_counters(), **self._view_counters()}
        dead = sum(len(summary.dead.offsets) for summary in self._summaries)
        report = TurnReport(
            self._planned.unit,
            self._planned.turn,
            gear,
            sum(summary.read for summary in self._summaries),
            sum(outcome.late_records for outcome in self._outcomes.values()),
            dead + sum(outcome.dead_count for outcome in self._outcomes.values()),
            dict(milliseconds),
            max(
                (
                    summary.newest_arrival_us
                    for summary in self._summaries
                    if summary.newest_arrival_us is not None
                ),
                default=None,
            ),
        )
        # A unit that is left without a view to fold stays where it is: the view will read this
        # range again.
        alone = not self._outcomes and bool(self._asides) and not self._owned()
        return Commit(
            self._planned,
            self._unit.time_offset if alone else self._outset.time_offset,
            {} if alone else self._progress(),
            self._deltas(),
            counters,
            tuple(self._outbox()),
            report,
            tuple(self._asides),
            self._outset.void_markers,
            seeds=tuple(self._seeds()),
            manifests={} if alone else self._manifests(),
            watermarks={} if alone else self._watermarks(),
            written=tuple(self._written()),
            truncates=dict(self._truncates()),
        )

    def _deltas(self) -> dict[Table, tuple[pa.Table, ...]]:
        """Return what is merged into every table, nothing also: rows may leave it all the same."""
        deltas: dict[Table, tuple[pa.Table, ...]] = {}
        for fold, outcome in self._outcomes.items():
            if fold.table.target is not None:
                continue
            deltas[fold.table] = (*deltas.get(fold.table, ()), *outcome.deltas)
            for table in fold.table.children:
                deltas[table] = (*deltas.get(table, ()), *outcome.items.get(table, ()))
        return deltas

    def _truncates(self) -> Iterable[tuple[Table, Mapping[int, int]]]:
        """Yield the tables that were truncated: by partition, up to which offset."""
        for fold in self._outcomes:
            read = [s for s in self._summaries if s.stream == fold.stream.name]
            found = {  # in offset order: the last one of a partition counts
                s.range.partition.number: s.truncated for s in read if s.truncated is not None
            }
            if found and fold.table.newest is not None:
                yield fold.table, found

    def _written(self) -> Iterable[Written]:
        """Yield the rows that go to topics, by the stream that their records came from."""
        ends: dict[str, dict[int, int]] = {}
        for summary in self._summaries:  # in offset order: the last one of a partition counts
            partitions = ends.setdefault(summary.stream, {})
            partitions[summary.range.partition.number] = summary.range.end
        found: dict[tuple[Table, str], list[pa.Table]] = {}
        for fold, outcome in self._outcomes.items():
            if fold.table.target is not None:
                found.setdefault((fold.table, fold.stream.name), []).extend(outcome.deltas)
        first: dict[tuple[Table, str], str] = {}
        for (table, name), rows in found.items():
            topic = self._unit.streams[name].stream.topic
            # Two streams over one topic are read at their own pace, so each has its sequence.
            alone = first.setdefault((table, topic), name) == name
            producer = row_producer(table.view, topic if alone else f"{name}:{topic}")
            yield Written(table, topic, producer, ends.get(name, {}), tuple(rows))

    def _manifests(self) -> dict[Operator, Manifest]:
        return {operator: found.runs for operator, found in self._stepped.items()}

    def _watermarks(self) -> dict[Owner, int]:
        """Return W of every view whose W moves with this turn."""
        # A partition that was added is not in the ledger before.
        added = self._unit.added
        before = {key: place for key, place in self._unit.progress.items() if key not in added}
        after = {**self._unit.progress, **self._progress()}
        return {
            Owner("view", table.view, table.version): watermark_us
            for table, streams in streams_by_table(self._outcomes).items()
            if (watermark_us := watermark_of(after, streams)) != watermark_of(before, streams)
        }

    def _check_whole(self) -> None:
        """Refuse to commit a position if what was read does not reach from end to end."""
        reached = {
            (entry.stream, entry.range.partition): entry.range.start
            for entry in self._planned.ranges
        }
        for summary in self._summaries:
            place = (summary.stream, summary.range.partition)
            if reached.get(place) == summary.range.start:
                reached[place] = summary.range.end
        for stream, range in self._planned.ranges:
            if (end := reached[stream, range.partition]) != range.end:
                raise EngineError(
                    f"{range.partition}@{end}, turn {self._planned.turn}: the turn was to read "
                    f"stream {stream} up to offset {range.end}, and this part is missing. The turn "
                    f"is not committed. This is a fault of Headrace; please report it."
                )

    def _owned(self) -> list[str]:
        return [name for name, source in self._unit.streams.items() if source.owned]

    def _progress(self) -> dict[StreamPartition, Progress]:
        # Also of partitions that nothing was read of: a marker may have moved their clocks, and
        # one that was added counts for W from now on.
        progress = {
            key: place
            for key, place in self._outset.progress.items()
            if place != self._unit.progress[key] or key in self._unit.added
        }
        for summary in self._summaries:  # in offset order: the last one of a partition counts
            key = StreamPartition(summary.stream, summary.range.partition.number)
            progress[key] = Progress(summary.range.end, summary.end)
        return progress

    def _stream_counters(self) -> dict[Counted, Counters]:
        counters: dict[Counted, Counters] = {}
        for name in self._owned():
            summaries = [summary for summary in self._summaries if summary.stream == name]
            counters[Counted(self._unit.streams[name].owner, name)] = {
                "read": sum(summary.read for summary in summaries),
                "accepted": sum(summary.accepted for summary in summaries),
                "dead": sum(len(summary.dead.offsets) for summary in summaries),
                "duplicate": self._count_duplicates(name, summaries),
                "unguarded": sum(summary.unguarded for summary in summaries),
            } | _operations(self._unit.streams[name].stream, summaries)
        return counters

    def _count_duplicates(self, stream: str, summaries: Sequence[Summary]) -> int:
        """Return how many records were left out, which have to be those that step 4 named."""
        left_out = sum(summary.duplicate for summary in summaries)
        named = sum(len(found.offsets()) for found in self._duplicates(stream).values())
        if left_out != named:
            raise EngineError(
                f"stream {stream}, turn {self._planned.turn}: step 4 named "
                f"{counted(named, 'duplicate')}, but {left_out} were left out. The turn is not "
                f"committed. This is a fault of Headrace; please report it."
            )
        return left_out

    def _duplicates(self, stream: str) -> Mapping[int, OffsetSet]:
        found = [each for operator, each in self._stepped.items() if operator.name == stream]
        return found[0].duplicates if found else {}

    def _view_counters(self) -> dict[Counted, Counters]:
        counters: dict[Counted, Counters] = {}
        for fold, outcome in self._outcomes.items():
            read = [s for s in self._summaries if s.stream == fold.stream.name]
            records = sum(s.accepted + s.moved for s in read)
            matched = outcome.records + outcome.late_throughout
            pairs = outcome.folded + outcome.late_pairs
            seen, skipped, dead = records, outcome.skipped, outcome.dead_count
            more: dict[str, int] = {}
            if fold.shape.expansions:
                seen, dead = skipped + matched, 0
                more = {name: getattr(outcome, name) for name in _OF_EXPANSIONS}
                more["records"] = records
            elif not fold.shape.grouped and fold.shape.where is not None:
                skipped = seen - dead - matched
            if not fold.placement.overlaps and pairs != matched:
                raise EngineError(
                    f"view {fold.name}, turn {self._planned.turn}: "
                    f"{counted(matched, 'record')} matched, but {pairs} were folded or late. The "
                    f"turn is not committed. This is a fault of Headrace; please report it."
                )
            if seen != skipped + dead + matched:
                raise EngineError(
                    f"view {fold.name}, turn {self._planned.turn}: "
                    f"{counted(seen, 'record')} seen, but {skipped} skipped, {outcome.dead_count} "
                    f"dead and {matched} matched. The turn is not committed. This is a fault of "
                    f"Headrace; please report it."
                )
            owner = Owner("view", fold.name, fold.version)
            counters[Counted(owner, fold.input)] = {
                "seen": seen,
                "skipped": skipped,
                "dead": outcome.dead_count,
                "matched": matched,
                "pairs": pairs,
                "folded": outcome.folded,
                "late": outcome.late_pairs,
                "corrected": outcome.corrected,
                **more,
            }
        return counters

    def _outbox(self) -> Iterable[OutboxEntry]:
        topics = {publish.owner: publish for publish in self._pipeline.publishes}
        for name in self._owned():
            source = self._unit.streams[name]
            dead: dict[int, list[SideRecords]] = {}
            for summary in self._summaries:
                if summary.stream == name:
                    dead.setdefault(summary.range.partition.number, []).append(summary.dead)
            topic = topics[name].dead
            producer_id = f"{topic}@{source.version}"
            yield from _entries(topic, source.stream.topic, producer_id, dead)
            if (duplicates := topics[name].duplicate) is not None:
                found = {
                    number: [_duplicates_of(source.stream, offsets)]
                    for number, offsets in self._duplicates(name).items()
                }
                producer_id = f"{duplicates}@{source.version}"
                yield from _entries(duplicates, source.stream.topic, producer_id, found)
        for view, inputs in self._by_topic().items():
            to = topics[view]
            for read, outcomes in inputs.items():
                version = next(fold.version for fold in self._outcomes if fold.name == view)
                producer = partial(side_producer, version=version, source=read, sources=inputs)
                dead = _together(outcome.dead for outcome in outcomes)
                yield from _entries(to.dead, read, producer(to.dead), dead)
                if to.late is not None:
                    late = _together(outcome.late for outcome in outcomes)
                    yield from _entries(to.late, read, producer(to.late), late)

    def _by_topic(self) -> dict[str, dict[str, list[Outcome]]]:
        """Return the outcomes of every view, by the topics that its branches read."""
        found: dict[str, dict[str, list[Outcome]]] = {}
        for fold, outcome in self._outcomes.items():
            found.setdefault(fold.name, {}).setdefault(fold.stream.topic, []).append(outcome)
        return found

    def _seeds(self) -> Iterable[Seed]:
        """Keep a clock about every `seed_records` offsets, of the streams that the unit owns."""
        every = self._unit.settings.seed_records
        for summary in self._summaries:
            source = self._unit.streams[summary.stream]
            start, end = summary.range.start, summary.range.end
            if source.owned and start // every != end // every:
                place = Progress(end, summary.end)
                partition = summary.range.partition.number
                time_offset = self._outset.time_offset
                yield Seed(summary.stream, source.version, partition, place, time_offset)


def _operations(stream: Stream, summaries: Sequence[Summary]) -> dict[str, int]:
    """Return how many records of each kind were read, where there are kinds."""
    return {
        CHANGE_COUNTERS[each]: sum(summary.operations.get(each, 0) for summary in summaries)
        for each in counted_operations(stream.encoding)
    }


def _duplicates_of(stream: Stream, found: OffsetSet) -> SideRecords:
    offsets = pa.array(found.offsets(), pa.int64())
    within = timedelta(microseconds=stream.unique_within_us)
    reason = (
        f"duplicate: a record with the same {stream.unique} stands before it in the partition, "
        f"and the clock has not moved on by more than {within} since"
    )
    return SideRecords(offsets, pa.repeat(pa.scalar(reason), len(offsets)))


def _together(
    found: Iterable[Mapping[int, Sequence[SideRecords]]],
) -> dict[int, list[SideRecords]]:
    """Return what several branches put aside, by partition."""
    parts: dict[int, list[SideRecords]] = {}
    for each in found:
        for number, records in each.items():
            parts.setdefault(number, []).extend(records)
    return parts


def _entries(
    topic: str, source_topic: str, producer_id: str, found: Mapping[int, Sequence[SideRecords]]
) -> Iterable[OutboxEntry]:
    """Yield what is put aside, each record once, however many of its rows or branches say so."""
    for number, parts in sorted(found.items()):
        offsets = pa.concat_arrays([part.offsets for part in parts])
        reasons = pa.concat_arrays([part.reasons for part in parts])
        # Spark quotes the value in some errors, and a header has to fit beside the record.
        reasons = pc.utf8_slice_codeunits(reasons, 0, MAX_REASON_CHARACTERS)
        if not len(offsets):
            continue
        _, firsts = np.unique(offsets.to_numpy(), return_index=True)
        offsets, reasons = offsets.take(pa.array(firsts)), reasons.take(pa.array(firsts))
        partition = Partition(source_topic, number)
        source = Range(partition, offsets[0].as_py(), offsets[-1].as_py() + 1)
        yield OutboxEntry(topic, source, producer_id, offsets, reasons)
