"""Prove the promise: recompute everything from the log and compare.

For every unit the audit replays its views from the log's start to the unit's position into an
empty store, in turns of its own size, and compares
- clocks, and the counters and their laws;
- the states of every table, key by key (exactly, but for what rounding leaves in sums over DOUBLE);
- the late, dead and duplicate sets with what their topics hold (and what still waits in the
  outbox): each record once, none missing, none too many;
- the rows of streams that are written with what their topics hold (and what still waits).
It reads one snapshot, so a running engine may go on meanwhile.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from headrace.engine.engine import Engine
from headrace.engine.turn.ranges import check_position
from headrace.errors import AuditFailed, PositionLost
from headrace.ledger.definitions import stream_of, view_of
from headrace.ledger.entries import (
    MAIN,
    Counters,
    Holding,
    Owner,
    Progress,
    StreamPartition,
    side_producer,
)
from headrace.ledger.laws import broken_laws, totals_of
from headrace.log.base import Log, Partition
from headrace.log.names import TIME_TOPIC
from headrace.model.definitions import Project
from headrace.observe.sides import Offsets, read_side_offsets
from headrace.observe.written import compare_written, written_rows
from headrace.plan.stages import kept_tables, tables_of
from headrace.project.settings import Settings
from headrace.store.base import Snapshot, Store
from headrace.store.opening import open_store

__all__ = ["Audit", "audit"]

# (producer id, source partition) -> source offsets
SideSets = Mapping[tuple[str, Partition], Offsets]


@dataclass(frozen=True)
class Audit:
    """What an audit looked at and what it found."""

    records: int
    rows: int
    counters: Mapping[Owner, Counters]
    differences: tuple[str, ...]

    def check(self) -> None:
        """Raise AuditFailed if anything differs."""
        if self.differences:
            raise AuditFailed(self.differences)


@dataclass(frozen=True)
class _Recorded:
    """What the ledger says of one unit."""

    unit: str
    holdings: Sequence[Holding]
    progress: Mapping[StreamPartition, Progress]
    time_offset: int

    @property
    def span(self) -> int:
        """How many offsets its streams have read."""
        return sum(place.offset for place in self.progress.values())


def audit(
    log: Log,
    store: Store,
    spark: SparkSession,
    *,
    settings: Settings | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Audit:
    """Recompute all units from the log. `on_progress` is told the offsets read so far, and all.

    PositionLost: records that were read are no longer in the log, so nobody can.
    """
    differences: list[str] = []
    done = records = rows = 0
    with store.open() as snapshot:
        for each, counted in snapshot.counters().items():
            differences += broken_laws(each.owner, counted)
        counters = totals_of(snapshot.counters())
        units = _recorded_units(snapshot)
        for unit in units:
            _check_records_are_there(unit, log, counters)
        total = sum(unit.span for unit in units)
        for unit in units:
            base = done

            def report(offsets: int, base: int = base) -> None:
                on_progress(base + offsets, total)

            with _replayed(unit, log, spark, settings or Settings(), report) as (
                engine,
                replayed,
                read,
            ):
                again = totals_of(replayed.counters())
                _check_nothing_went(unit, log, counters, again)
                records += read
                differences += _compare_progress(unit, engine.units[MAIN].progress)
                differences += _compare_counters(unit, counters, again)
                differences += _compare_watermarks(
                    unit, snapshot.watermarks(), replayed.watermarks()
                )
                tables = kept_tables(engine.units[MAIN].folds)
                for table in [each for main in tables for each in (main, *main.children)]:
                    states = replayed.states(table)
                    rows += states.num_rows
                    differences += snapshot.differences(table, states)
                ends = _ends(unit, engine.units[MAIN].topics())
                for table in tables_of(engine.units[MAIN].folds):
                    if table.target is not None:
                        again_written = written_rows(replayed, table)
                        rows += again_written.num_rows
                        differences += compare_written(log, snapshot, table, again_written, ends)
                sets, waiting = _side_sets(replayed), _side_sets(snapshot)
                for name, source in engine.units[MAIN].topics().items():
                    differences += _compare_sides(log, unit, name, source, sets, waiting)
            done += unit.span
    return Audit(records, rows, counters, tuple(differences))


def _check_records_are_there(unit: _Recorded, log: Log, counters: Mapping[Owner, Counters]) -> None:
    for holding in unit.holdings:
        if holding.kind != "stream":
            continue
        topic = stream_of(holding, holding.name).topic
        extents = log.extents(topic)
        left = 0
        for key, place in unit.progress.items():
            if key.stream == holding.name:
                partition = Partition(topic, key.partition)
                check_position(partition, place.offset, extents)
                left += place.offset - extents[partition].first_offset
        gone = counters.get(holding.owner, {}).get("read", 0) - left
        if gone > 0:
            first = {place.number: extent.first_offset for place, extent in extents.items()}
            raise PositionLost(
                f"{topic}: {gone:,} records that stream {holding.name} has read are no longer in "
                f"the log, which begins at {first} by partition, so the tables cannot be "
                f"recomputed from it. Audit before retention removes records, or move the store "
                f"away and build it from what is left."
            )


def _check_nothing_went(
    unit: _Recorded,
    log: Log,
    recorded: Mapping[Owner, Counters],
    replayed: Mapping[Owner, Counters],
) -> None:
    """Tell what a log without dense offsets does not tell before it is read. PositionLost."""
    for holding in unit.holdings:
        name = "read" if holding.kind == "stream" else "seen"
        before, now = (
            counters.get(holding.owner, {}).get(name, 0) for counters in (recorded, replayed)
        )
        for topic in (stream_of(holding, stream).topic for stream in holding.inputs):
            compacted = log.topic(topic).settings.compact
            removed = any(extent.first_offset > 0 for extent in log.extents(topic).values())
            if now < before and (compacted or removed):
                by = "Compaction" if compacted else "Retention"
                raise PositionLost(
                    f"{topic}: {before - now:,} records that {holding.kind} {holding.name} has "
                    f"{name} are no longer in the log, so the tables cannot be recomputed from it. "
                    f"{by} removed them; move the store away and build it from what is left, to "
                    f"audit that."
                )


def _recorded_units(snapshot: Snapshot) -> list[_Recorded]:
    holdings = snapshot.holdings()
    units = []
    for name in snapshot.units():
        held = [holding for holding in holdings if holding.unit == name]
        if held:
            progress, time_offset = snapshot.progress(name), snapshot.time_offset(name)
            units.append(_Recorded(name, held, progress, time_offset))
    return units


@contextmanager
def _replayed(
    unit: _Recorded,
    log: Log,
    spark: SparkSession,
    settings: Settings,
    report: Callable[[int], None],
) -> Iterator[tuple[Engine, Snapshot, int]]:
    """Replay a unit's definitions to its position, in a store that is thrown away.

    Yields the engine, what it holds, and how many records it read.
    """
    streams = {name: stream_of(held, name) for held in unit.holdings for name in held.inputs}
    views = [view_of(holding) for holding in unit.holdings if holding.kind == "view"]
    project = Project(tuple(streams.values()), tuple(views))
    ends = {
        (key.stream, Partition(project.stream(key.stream).topic, key.partition)): place.offset
        for key, place in unit.progress.items()
    }
    ends[TIME_TOPIC, Partition(TIME_TOPIC, 0)] = unit.time_offset
    with tempfile.TemporaryDirectory(prefix="headrace-audit-") as folder:
        store = open_store(Path(folder) / "store.duckdb")
        # No view shares its turns with live ones here, so there is nobody to hold up.
        alone = replace(settings, probe_jobs=settings.max_turn_records)
        engine = Engine(project, log, store, spark, settings=alone, publishes=False, ends=ends)
        try:
            engine.start()
            read = 0
            while reports := engine.turn():
                read += sum(each.records for each in reports)
                report(sum(place.offset for place in engine.units[MAIN].progress.values()))
            with store.open() as snapshot:
                yield engine, snapshot, read
        finally:
            engine.close()
            store.close()


def _compare_progress(
    unit: _Recorded, replayed: Mapping[StreamPartition, Progress]
) -> Iterator[str]:
    for key, place in unit.progress.items():
        if place != replayed.get(key):
            yield (
                f"unit {unit.unit}, {key.stream}/{key.partition}: the ledger has {place}, "
                f"the log gives {replayed.get(key)}"
            )


def _compare_counters(
    unit: _Recorded, recorded: Mapping[Owner, Counters], replayed: Mapping[Owner, Counters]
) -> Iterator[str]:
    for owner in (holding.owner for holding in unit.holdings):
        ours, theirs = recorded.get(owner, {}), replayed.get(owner, {})
        for name in sorted({*ours, *theirs}):
            if ours.get(name, 0) != theirs.get(name, 0):
                yield (
                    f"{owner.kind} {owner.name}: {name} is {ours.get(name, 0)}, "
                    f"the log gives {theirs.get(name, 0)}"
                )


def _compare_watermarks(
    unit: _Recorded, recorded: Mapping[Owner, int], replayed: Mapping[Owner, int]
) -> Iterator[str]:
    for owner in (holding.owner for holding in unit.holdings if holding.kind == "view"):
        if recorded[owner] != replayed.get(owner):
            yield (
                f"view {owner.name}: its watermark is {recorded[owner]}, the log gives "
                f"{replayed.get(owner)}"
            )


def _ends(unit: _Recorded, topics: Mapping[str, str]) -> dict[Partition, int]:
    """Return how far all streams of a unit have read each partition."""
    found: dict[Partition, int] = {}
    for key, place in unit.progress.items():
        partition = Partition(topics[key.stream], key.partition)
        found[partition] = min(place.offset, found.get(partition, place.offset))
    return found


def _side_sets(snapshot: Snapshot) -> SideSets:
    parts: dict[tuple[str, Partition], list[Offsets]] = {}
    for _, entry in snapshot.outbox():
        key = (entry.producer_id, entry.source.partition)
        parts.setdefault(key, []).append(entry.offsets.to_numpy())
    return {key: np.concatenate(offsets) for key, offsets in parts.items()}


def _compare_sides(
    log: Log, unit: _Recorded, stream: str, source: str, expected: SideSets, waiting: SideSets
) -> Iterator[str]:
    nothing = np.array([], dtype=np.int64)
    for holding in unit.holdings:
        if stream not in holding.inputs:
            continue
        sources = {stream_of(holding, name).topic for name in holding.inputs}
        kinds = ("dead", "duplicate") if holding.kind == "stream" else ("dead", "late")
        for topic in (f"{holding.name}.{kind}" for kind in kinds):
            published = read_side_offsets(log, topic, holding.version, source)
            producer_id = side_producer(topic, holding.version, source, sources)
            for key, place in unit.progress.items():
                if key.stream != stream:
                    continue
                name = (producer_id, Partition(source, key.partition))
                there = published.get(key.partition, nothing)
                there = there[there < place.offset]  # a running engine may be further on
                wanted = expected.get(name, nothing)
                known = np.union1d(there, waiting.get(name, nothing))
                where = f"topic {topic}, of {source}/{key.partition}"
                if len(np.unique(there)) != len(there):
                    yield f"{where}: {len(there) - len(np.unique(there))} records stand twice"
                for sentence, offsets in (
                    ("lacks", np.setdiff1d(wanted, known)),
                    ("should not hold", np.setdiff1d(there, wanted)),
                ):
                    if len(offsets):
                        some = ", ".join(map(str, offsets[:5]))
                        yield f"{where}: {sentence} {len(offsets)} records, offsets {some} ..."
