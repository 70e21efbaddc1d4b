"""The engine: opens a project's units, turns them, and swaps in what has become level.

`turn` takes one turn of every unit in the caller's thread; `running.run_engine` gives every unit
a thread of its own, so that a replay holds nobody up.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from pyspark.sql import SparkSession

from headrace import faults
from headrace.engine.analysis import plan_view
from headrace.engine.ranges import backlog, plan_ranges
from headrace.engine.settings import Settings
from headrace.engine.turn import Tools, take_turn
from headrace.engine.unit import Source, Unit
from headrace.engine.versions import decide_changes
from headrace.errors import DefinitionError, Problem
from headrace.ledger.entries import (
    MAIN,
    Holding,
    HoldingState,
    PlannedTurn,
    Progress,
    StreamPartition,
    TurnReport,
)
from headrace.log.base import DEFAULT_PARTITIONS, Extent, Log, Partition
from headrace.model.definitions import Project
from headrace.plan.fold import Fold
from headrace.plan.tables import Table
from headrace.sinks.outbox import ensure_topic, publish
from headrace.sql import parse_project
from headrace.store.base import Store

__all__ = ["Engine"]

logger = logging.getLogger("headrace.engine")

# (stream, partition of its topic) -> offset
Ends = Mapping[tuple[str, Partition], int]

MAX_VIEW_THREADS = 8
# A unit this close to the main one takes its last turn while the main one waits.
_NEARLY_LEVEL_RECORDS = 20_000


class Engine:
    """Maintains a project's views. `start` it before anything else.

    With `ends` it reads no further than those offsets: how an audit stops at a position.
    """

    def __init__(
        self,
        project: Project,
        log: Log,
        store: Store,
        spark: SparkSession,
        *,
        settings: Settings | None = None,
        publishes: bool = True,
        ends: Ends | None = None,
    ) -> None:
        self.project = project
        self.settings = settings or Settings()
        self.units: dict[str, Unit] = {}
        self.epoch = 0
        self.on_turn: Callable[[TurnReport], None] = lambda _: None
        self._ends = ends
        self._wanted: set[tuple[str, str]] = set()  # names and versions of the project's views
        self._pool = ThreadPoolExecutor(MAX_VIEW_THREADS, thread_name_prefix="view")
        self.tools = Tools(spark, log, store, self._pool, publishes)
        self.join_lock = threading.Lock()  # held by a unit that is, or waits to be, swapped in

    def start(self) -> None:
        """Check every definition, take over the store, and open the units.

        DefinitionError: definitions are refused, all problems at once; nothing was changed.
        """
        folds = self._plan_project()
        self._wanted = set(folds)
        self.epoch = self.tools.store.begin_epoch()
        for stream in self.project.streams:
            ensure_topic(self.tools.log, stream.topic, DEFAULT_PARTITIONS)
        with self.tools.store.open() as snapshot:
            holdings = snapshot.holdings()
        changes = decide_changes(self.project, holdings)
        for holding in changes.drop:
            logger.info("%s %s@%s is dropped", holding.kind, holding.name, holding.version)
        if changes.drop:
            self.tools.store.drop(self.epoch, changes.drop)
        if changes.enter:
            known = {holding.unit for holding in holdings}
            self.tools.store.hold(self.epoch, changes.enter, self._beginnings(changes.enter, known))
        self._open_units(folds)
        tables = [fold.table for fold in self.units[MAIN].folds]
        self.tools.store.show(self.epoch, MAIN, tables)
        self.publish()

    def publish(self) -> None:
        """Publish what waits in the outbox, from turns that could not. Unreachable."""
        if self.tools.publishes:
            publish(self.tools.log, self.tools.store, self.epoch)

    def _plan_project(self) -> dict[tuple[str, str], Fold]:
        problems: list[Problem] = []
        folds: dict[tuple[str, str], Fold] = {}
        for view in self.project.views:
            stream = self.project.stream(view.query.stream)
            try:
                fold = plan_view(self.tools.spark, view, stream)
                folds[fold.name, fold.version] = fold
            except DefinitionError as error:
                problems += error.problems
        if problems:
            raise DefinitionError(problems)
        return folds

    def _beginnings(
        self, entered: Sequence[Holding], known: set[str]
    ) -> dict[str, dict[StreamPartition, Progress]]:
        """Return where new units begin to read: at the log's start, before any clock."""
        beginnings: dict[str, dict[StreamPartition, Progress]] = {}
        for holding in entered:
            if holding.unit in known:
                continue
            topic = self.project.stream(holding.stream).topic
            begin = beginnings.setdefault(holding.unit, {})
            for partition, extent in self.tools.log.extents(topic).items():
                key = StreamPartition(holding.stream, partition.number)
                begin[key] = Progress(extent.first_offset)
        return beginnings

    def _open_units(self, folds: Mapping[tuple[str, str], Fold]) -> None:
        with self.tools.store.open() as snapshot:
            holdings = snapshot.holdings()
            turns = snapshot.units()
            for name, turn in turns.items():
                unit = self.units[name] = Unit(name, self.settings, turn=turn)
                unit.progress = dict(snapshot.progress(name))
        for holding in holdings:
            unit = self.units[holding.unit]
            if holding.kind == "stream":
                stream = parse_project({"ledger": holding.sql}).streams[0]
                unit.sources[holding.name] = Source(stream, owned=True)
                continue
            fold = folds.get((holding.name, holding.version)) or self._plan_old(holding)
            self.tools.store.prepare(fold.table)
            unit.folds.append(fold)
            unit.state, unit.reason = holding.state, holding.reason
            if fold.stream.name not in unit.sources:
                unit.sources[fold.stream.name] = Source(fold.stream, owned=False)
        self.units[MAIN].state = HoldingState.LIVE

    def _plan_old(self, holding: Holding) -> Fold:
        """Plan a version that goes on until its successor is level."""
        old = parse_project({"ledger": f"{holding.stream_sql};\n{holding.sql};"})
        return plan_view(self.tools.spark, old.views[0], old.streams[0])

    def turn(self, *, max_records: int | None = None, gear: str | None = None) -> list[TurnReport]:
        """Take one turn of every unit that has something to read; swap in what is level."""
        reports = []
        for unit in list(self.units.values()):
            report = self.turn_unit(unit, max_records=max_records, gear=gear)
            if report is not None:
                reports.append(report)
        for unit in list(self.units.values()):
            self.join_main(unit)
        return reports

    def turn_unit(
        self, unit: Unit, *, max_records: int | None = None, gear: str | None = None
    ) -> TurnReport | None:
        """Take one turn of a unit; None when it has nothing to read."""
        with unit.lock:
            if unit.state is HoldingState.FAILED or unit.name not in self.units:
                return None
            planned = self._journalled(unit) or self._plan(unit, max_records)
            if planned is None:
                return None
            gear = gear or self._gear(planned)
            folds = list(unit.folds)
            start = dict(unit.progress)
            try:
                report = take_turn(unit, self.tools, planned, gear_name=gear)
            finally:
                # Also when the turn was committed and then could not publish.
                gone = [fold for fold in folds if fold not in unit.folds]
                if gone:
                    self._open_asides(unit, gone, start)
            unit.pace.note(report.records, sum(report.milliseconds.values()) / 1000)
        self.on_turn(report)
        return report

    def _open_asides(
        self, unit: Unit, folds: Sequence[Fold], start: Mapping[StreamPartition, Progress]
    ) -> None:
        with self.tools.store.open() as snapshot:
            held = {(h.name, h.version): h for h in snapshot.holdings() if h.kind == "view"}
            turns = snapshot.units()
        for fold in folds:
            holding = held[fold.name, fold.version]
            if holding.unit == unit.name:
                unit.folds.append(fold)
                unit.state, unit.reason = holding.state, holding.reason
                continue
            aside = Unit(holding.unit, self.settings, turn=turns[holding.unit])
            aside.folds = [fold]
            aside.sources = {fold.stream.name: Source(fold.stream, owned=False)}
            aside.progress = {k: p for k, p in start.items() if k.stream == fold.stream.name}
            aside.state, aside.reason = holding.state, holding.reason
            self.units = {**self.units, aside.name: aside}

    def _gear(self, planned: PlannedTurn) -> str:
        size = sum(self.tools.log.measure(entry.range) for entry in planned.ranges)
        short = (
            planned.records <= self.settings.short_turn_records
            and size <= self.settings.short_turn_bytes
        )
        return "short" if short else "long"

    def _journalled(self, unit: Unit) -> PlannedTurn | None:
        """Return the turn that a crash interrupted, if the definitions still read it so."""
        if not unit.resumes:
            return None
        unit.resumes = False
        planned = self.tools.store.journalled(unit.name)
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

    def _notice_partitions(self, unit: Unit) -> None:
        """Let a unit read partitions that were added to its topics, from their first record."""
        for name, topic in unit.topics().items():
            added = {
                StreamPartition(name, partition.number): Progress()
                for partition in self.tools.log.extents(topic)
                if StreamPartition(name, partition.number) not in unit.progress
            }
            if added:
                logger.info("%s: reads %d partitions that were added", name, len(added))
                unit.progress = {**unit.progress, **added}

    def _plan(self, unit: Unit, max_records: int | None) -> PlannedTurn | None:
        self._notice_partitions(unit)
        extents = self.extents(unit)
        ends = {key: extent.end_offset for key, extent in extents.items()}
        waiting = backlog(unit.progress, ends)
        if waiting == 0:
            return None
        limit = unit.pace.limit(waiting) if max_records is None else max_records
        limit = min(limit, self.settings.max_turn_records)
        short = limit <= self.settings.short_turn_records
        ranges = plan_ranges(
            self.tools.log,
            unit.topics(),
            unit.progress,
            extents,
            max_records=limit,
            max_bytes=self.settings.short_turn_bytes if short else self.settings.max_turn_bytes,
        )
        return PlannedTurn(unit.name, unit.turn + 1, self.epoch, ranges)

    def extents(self, unit: Unit) -> dict[StreamPartition, Extent]:
        """Return how far a unit may read now: the log's end, and no further than the main unit."""
        main = self.units[MAIN]
        extents: dict[StreamPartition, Extent] = {}
        for name, source in unit.sources.items():
            topic = source.stream.topic
            of_topic = self.tools.log.extents(topic)
            follows = unit is not main and main.topics().get(name) == topic
            for key in unit.progress:
                if key.stream != name:
                    continue
                first, end = of_topic[Partition(topic, key.partition)]
                if follows:
                    end = main.progress.get(key, Progress()).offset
                if self._ends is not None:
                    end = min(end, self._ends.get((name, Partition(topic, key.partition)), 0))
                extents[key] = Extent(first, end)
        return extents

    def join_main(self, unit: Unit) -> bool:
        """Swap a unit in if it stands where the main one stands; the main one waits meanwhile."""
        main = self.units[MAIN]
        if unit is main or self._stays_apart(unit):
            return False
        with ExitStack() as held:
            held.enter_context(self.join_lock)
            if unit.name not in self.units:
                return False
            replaced = self._replaced_by(unit)
            for each in (main, unit, *replaced):
                held.enter_context(each.lock)
            # A partition that was added is read by both, or by neither.
            self._notice_partitions(main)
            self._notice_partitions(unit)
            if 0 < self.lag(unit) <= _NEARLY_LEVEL_RECORDS:
                self.turn_unit(unit, max_records=_NEARLY_LEVEL_RECORDS)
            ends = {key: extent.end_offset for key, extent in self.extents(unit).items()}
            if self._stays_apart(unit) or not self._level(unit, ends):
                return False
            faults.reach("before_swap")
            self.tools.store.show(self.epoch, unit.name, self._shown_with(unit))
            self._merge_units(main, unit, replaced)
        logger.info("%s: level, and swapped in", ", ".join(fold.name for fold in unit.folds))
        return True

    def _stays_apart(self, unit: Unit) -> bool:
        """Whether a unit goes on by itself, level or not.

        It failed; or it has to search for many records that fail; or its version is an old one
        that was set aside, which goes when its successor comes.
        """
        brings_stream = any(source.owned for source in unit.sources.values())
        versions = {(fold.name, fold.version) for fold in unit.folds}
        return (
            unit.state is HoldingState.FAILED
            or (unit.failing and not brings_stream)
            or not versions <= self._wanted
        )

    def _replaced_by(self, unit: Unit) -> list[Unit]:
        names = {fold.name for fold in unit.folds}
        return [
            other
            for other in self.units.values()
            if other is not unit
            and other.name != MAIN
            and other.folds
            and all(fold.name in names for fold in other.folds)
            and not any(source.owned for source in other.sources.values())
        ]

    def lag(self, unit: Unit) -> int:
        """Return how many records a unit has still to read."""
        ends = {key: extent.end_offset for key, extent in self.extents(unit).items()}
        return backlog(unit.progress, ends)

    def _level(self, unit: Unit, ends: Mapping[StreamPartition, int]) -> bool:
        """Whether a unit stands at the main one's position, or past `ends` where that has none."""
        main = self.units[MAIN]
        for name, source in unit.sources.items():
            held = main.sources.get(name)
            if not source.owned and (held is None or held.version != source.version):
                return False  # its stream's new version has to be swapped in first
        for key, place in unit.progress.items():
            topic = unit.sources[key.stream].stream.topic
            follows = main.topics().get(key.stream) == topic
            if place.offset < ends[key] or (follows and place.offset != ends[key]):
                return False
        return True

    def _shown_with(self, unit: Unit) -> list[Table]:
        """Return the tables that get their names when a unit is swapped in.

        Views that were set aside while their stream's new version was built are among them: what
        the old version said of them is gone with it.
        """
        brought = {source.owner for source in unit.sources.values() if source.owned}
        return [
            fold.table
            for other in self.units.values()
            for fold in other.folds
            if other is unit or other.sources[fold.stream.name].owner in brought
        ]

    def _merge_units(self, main: Unit, unit: Unit, replaced: Sequence[Unit]) -> None:
        # New dictionaries instead of changed ones: other units' threads read these.
        names = {fold.name for fold in unit.folds}
        brought = {name for name, source in unit.sources.items() if source.owned}
        kept = [f for f in main.folds if f.name not in names and f.stream.name not in brought]
        main.folds = kept + unit.folds
        main.sources = main.sources | {name: unit.sources[name] for name in brought}
        progress = {k: p for k, p in main.progress.items() if k.stream not in brought}
        main.progress = progress | unit.progress
        gone = {unit.name, *(other.name for other in replaced)}
        self.units = {name: each for name, each in self.units.items() if name not in gone}

    def stop_at_the_end(self) -> None:
        """Read no further than the log's end as it is now."""
        self._ends = {
            (name, partition): extent.end_offset
            for unit in self.units.values()
            for name, topic in unit.topics().items()
            for partition, extent in self.tools.log.extents(topic).items()
        }

    def finished(self) -> bool:
        """Whether there is nothing to read, and nothing that will be swapped in."""
        return all(
            unit.state is HoldingState.FAILED
            or ((unit.name == MAIN or self._stays_apart(unit)) and self.lag(unit) == 0)
            for unit in self.units.values()
        )

    def close(self) -> None:
        """Let go of the engine's threads. Log, store and Spark belong to the caller."""
        self._pool.shutdown()
