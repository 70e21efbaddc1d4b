"""The engine: opens a project's units, turns them, and swaps in what has become level.

`turn` takes one turn of every unit in the caller's thread; `running.run_engine` gives every unit
a thread of its own, so that a replay holds nobody up.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext

from pyspark.sql import SparkSession

from headrace import faults
from headrace.engine.beside import Beside
from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.secrecy import check_secrecy
from headrace.engine.spark.shares import use_pool
from headrace.engine.spark.zones import check_zone
from headrace.engine.tables.levels import TableLevels
from headrace.engine.tables.removal import check_topics
from headrace.engine.time.saving import SavedMarkers
from headrace.engine.time.timekeeping import check_known
from headrace.engine.turn.emitting import Emitting
from headrace.engine.turn.outset import Outset, standing
from headrace.engine.turn.pace import TurnTooLarge
from headrace.engine.turn.planning import Ends, Planner
from headrace.engine.turn.turn import Tools, take_turn
from headrace.engine.unit import Unit, UnitStream
from headrace.engine.versions.beginnings import beginnings
from headrace.engine.versions.changes import decide_changes
from headrace.engine.versions.failing import let_fail
from headrace.engine.versions.swapping import (
    built_along,
    is_level,
    merge_into_main,
    replaced_by,
    shown_with,
    stays_apart,
    tables_seen,
)
from headrace.engine.versions.sweeping import sweep_state
from headrace.errors import DefinitionError, MergeFailed, Problem, Unreachable
from headrace.ledger.definitions import check_readable, stream_of, view_of
from headrace.ledger.entries import (
    MAIN,
    Holding,
    HoldingState,
    PlannedTurn,
    TurnReport,
)
from headrace.log.base import DEFAULT_PARTITIONS, Log
from headrace.model.definitions import Project, View
from headrace.operators.state import StateFolder
from headrace.plan.stages import Fold, kept_tables, places_of, tables_of
from headrace.project.settings import Settings
from headrace.sinks.outbox import ensure_topic
from headrace.sinks.publishing import Publisher
from headrace.store.base import Snapshot, Store
from headrace.store.following import Follower
from headrace.wording import counted

__all__ = ["Engine"]

logger = logging.getLogger("headrace.engine")

MAX_VIEW_THREADS = 8
# A unit this close to the main one takes its last turn while the main one waits.
_NEARLY_LEVEL_RECORDS = 20_000


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class Engine:
    """Maintains a project's views. `start` it before anything else.

    With `ends` it reads no further than those offsets: how an audit stops at a position. Without
    `publishes` it writes nothing to the log, no markers either. `evaluated` has, by view, the
    places over aggregates that Spark evaluates; of other views this release decides. `wall` tells
    microseconds from anywhere, and never goes back.
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
        evaluated: Mapping[str, Collection[str]] | None = None,
        wall: Callable[[], int] = _monotonic_us,
    ) -> None:
        self.project = project
        self._evaluated = {name: frozenset(each) for name, each in (evaluated or {}).items()}
        self.settings = settings or Settings()
        self._units: dict[str, Unit] = {}
        self._registry = threading.Lock()  # held to change `_units`
        self.epoch = 0
        self.on_turn: Callable[[TurnReport], None] = lambda _: None
        self._wanted: set[tuple[str, str]] = set()  # names and versions of the project's views
        self._pool = ThreadPoolExecutor(MAX_VIEW_THREADS, thread_name_prefix="view")
        views = {view.name: view for view in project.views}
        self.emitting = Emitting(project.sinks, views, wall)
        state = StateFolder(store.state_folder)
        publisher = Publisher(log, store) if publishes else None
        self.beside = Beside(self._publish, self._settle, self.emitting)
        self.tools = Tools(
            spark, log, store, self._pool, self.emitting, state, publisher, self.beside
        )
        self.planner = Planner(
            log,
            store,
            self.settings,
            lambda: self.units,
            self.beside.due_in_us,
            wall=wall,
            ends=ends,
        )
        self._levels = TableLevels(store, log)
        self._saved_markers = SavedMarkers(store, self.planner.time)
        self._replaying = threading.Lock()  # held for a long turn of any unit but the main one
        self.join_lock = threading.Lock()  # held by a unit that is, or waits to be, swapped in

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units there are now; a mapping that was handed out never changes."""
        return self._units

    def _change_units(self, *, enter: Iterable[Unit] = (), remove: Collection[str] = ()) -> None:
        """Enter and remove units. Several units' threads do so at once; no change is lost."""
        with self._registry:
            kept = {name: each for name, each in self._units.items() if name not in remove}
            self._units = kept | {unit.name: unit for unit in enter}

    def start(self) -> None:
        """Check every definition, take over the store, and open the units.

        DefinitionError: definitions are refused, all problems at once. DefinitionUnreadable: a
        later release wrote what the ledger keeps. UsageError: secrets would be sent in the clear.
        Whichever it is, nothing was changed.
        """
        with self.tools.store.open() as snapshot:
            for holding in snapshot.holdings():
                check_readable(holding)
            self.emitting.stay_paused(snapshot.sinks())
        check_secrecy(self.tools.log, self._spark_setting)
        check_topics(self.tools.log, self.project.streams)
        folds = self._plan_project()
        self._wanted = set(folds)
        self._saved_markers.resume()
        self.epoch = self.planner.begin(writes=self.tools.publisher is not None)
        for stream in self.project.streams:
            ensure_topic(self.tools.log, stream.topic, DEFAULT_PARTITIONS)
        # Before anything changes: what sinks are owed is told as it was defined.
        self._publish_all()
        with self.tools.store.open() as snapshot:
            holdings, missed = snapshot.holdings(), self._levels.missed(snapshot)
        if missed:
            self.tools.store.drop(self.epoch, missed)
            holdings = [held for held in holdings if held not in missed]
        evaluated = {owner: places_of(planned) for owner, planned in folds.items()}
        changes = decide_changes(self.project, holdings, evaluated)
        for holding in changes.drop:
            logger.info("%s %s@%s is dropped", holding.kind, holding.name, holding.version)
        if changes.drop:
            self.tools.store.drop(self.epoch, changes.drop)
        if changes.enter:
            known = {holding.unit for holding in holdings}
            begin = beginnings(self.project, self.planner, changes.enter, known)
            self.tools.store.hold(self.epoch, changes.enter, begin)
            self._levels.begin(held for held in changes.enter if held not in holdings)
        self._open_units(folds)
        sweep_state(self.tools.state, self.units.values())
        self.tools.store.show(self.epoch, MAIN, kept_tables(self.units[MAIN].folds))
        self._set_followers()
        self._save_markers()
        self._publish_all()

    def _save_markers(self) -> None:
        if self.tools.publisher is not None:
            self._saved_markers.save(self.units.values())

    def _spark_setting(self, name: str, default: str) -> str | None:
        # All of them are copied, one by one, in some 50 ms: only for who asks.
        return self.tools.spark.sparkContext.getConf().get(name, default)

    def _set_followers(self) -> None:
        """Let the store know who follows which view, and the tables that readers see."""
        if self.tools.publisher is None:
            return  # an audit: nobody reads what it makes
        with self.tools.store.open() as snapshot:
            versions = snapshot.shown()
        followers = self.emitting.followers(self.settings)
        tables = tables_seen(self.units.values(), versions)
        self.tools.store.set_followers(self.epoch, followers, tables)

    def publish(self) -> None:
        """Publish what turns could not; to sinks, what is due. Unreachable."""
        with self._watching():
            self.beside.now()

    def _publish(self, *, outbox: bool, written: bool, may_wait: bool = False) -> None:
        self.tools.publish(self.epoch, outbox=outbox, written=written, may_wait=may_wait)

    def _settle(self) -> None:
        if self.tools.publisher is not None:
            self.tools.publisher.settle()

    def _publish_all(self) -> None:
        """Publish all that waits, also to sinks that are not due. Unreachable.

        Not to a sink that is paused, nor to one that is no longer defined: what that was owed is
        let go.
        """
        if self.tools.publisher is not None:
            with self._watching():
                topics = {sink.topic for sink in self.emitting.sinks} - self.emitting.paused
                self.emitting.note_told(self.tools.publisher.publish(self.epoch, sinks=topics))

    def _plan_project(self) -> dict[tuple[str, str], tuple[Fold, ...]]:
        problems: list[Problem] = []
        folds: dict[tuple[str, str], tuple[Fold, ...]] = {}
        # Side by side: Spark takes a quarter of a second for a view when it has just started.
        for view, planned in zip(
            self.project.views, self._pool.map(self._plan, self.project.views), strict=True
        ):
            if isinstance(planned, DefinitionError):
                problems += planned.problems
            else:
                folds[view.name, planned[0].version] = planned
        with self.tools.store.open() as snapshot:
            problems += self.emitting.problems(snapshot.sinks())
        if problems:
            raise DefinitionError(problems)
        return folds

    def _plan(self, view: View) -> tuple[Fold, ...] | DefinitionError:
        try:
            streams, places = self.project.streams_of(view), self._evaluated.get(view.name)
            planned = plan_view(self.tools.spark, view, streams, evaluated=places)
            check_zone(self.tools.spark, self.tools.store, planned[0])
        except DefinitionError as error:
            return error
        return planned

    def _open_units(self, folds: Mapping[tuple[str, str], tuple[Fold, ...]]) -> None:
        with self.tools.store.open() as snapshot:
            holdings = snapshot.holdings()
            opened = [self._open_unit(snapshot, name) for name in snapshot.units()]
        for unit in opened:
            check_known(self.planner.time.book, unit.time_offset)
        self._change_units(enter=opened, remove=set(self.units))
        for holding in holdings:
            unit = self.units[holding.unit]
            if holding.kind == "stream":
                stream = stream_of(holding, holding.name)
                unit.streams[holding.name] = UnitStream(stream, owned=True)
        for holding in holdings:
            unit = self.units[holding.unit]
            if holding.kind == "stream":
                continue
            planned = folds.get((holding.name, holding.version))
            if planned is None or places_of(planned) != holding.evaluated:
                planned = self._plan_old(holding)
            for table in kept_tables(planned):
                self.tools.store.prepare(table)
            unit.add(planned)
            unit.state, unit.reason = holding.state, holding.reason
        self.units[MAIN].state = HoldingState.LIVE
        self.planner.time.cover(map(standing, self.units.values()))
        for unit in self.units.values():
            self.planner.begin_unit(unit)

    def _open_unit(self, snapshot: Snapshot, name: str) -> Unit:
        """Return a unit as the ledger knows it, still without streams and views."""
        unit = Unit(name, self.settings, turn=snapshot.units()[name])
        unit.progress = dict(snapshot.progress(name))
        unit.time_offset = snapshot.time_offset(name)
        manifests = snapshot.manifests().items()
        unit.manifests = {each: runs for (holder, each), runs in manifests if holder == name}
        return unit

    def _plan_old(self, holding: Holding) -> tuple[Fold, ...]:
        """Plan a version that goes on until its successor is level."""
        streams = tuple(stream_of(holding, name) for name in holding.inputs)
        places = frozenset(holding.evaluated)
        return plan_view(self.tools.spark, view_of(holding), streams, holding.version, places)

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
        with self._watching(), unit.lock, self.beside.lull.turning():
            self.beside.check()
            if unit.state.stands_still or unit.name not in self.units:
                return None
            report = None
            while report is None:
                decided = self.planner.decide(unit, max_records)
                if decided is None:
                    self._levels.note(unit)
                    if unit.name == MAIN and self.emitting.due():
                        self.beside.soon()
                    return None
                try:
                    report = self._take(unit, *decided, gear)
                except TurnTooLarge:
                    records = decided[0].records
                    many = counted(records, "record")
                    logger.info("%s: one turn cannot take %s, so it takes fewer", unit.name, many)
                    max_records = max(1, records // 2)
            unit.last = report
            if unit.reaches_end:
                self._levels.note(unit)
            unit.pace.note(report.records, sum(report.milliseconds.values()) / 1000)
            if unit.name == MAIN:
                self._save_markers()
        self.on_turn(report)
        return report

    def _take(
        self, unit: Unit, planned: PlannedTurn, outset: Outset, gear: str | None
    ) -> TurnReport:
        gear = gear or self.planner.gear(planned)
        folds = list(unit.folds)
        try:
            with self._share_of(unit, gear):
                note = self.planner.marking.note
                return take_turn(unit, self.tools, planned, outset, gear_name=gear, note=note)
        finally:
            # Also when the turn was committed and then could not publish.
            gone = [fold for fold in folds if fold not in unit.folds]
            if gone:
                self.open_asides(unit, gone)

    @contextmanager
    def _share_of(self, unit: Unit, gear: str) -> Iterator[None]:
        """Give a turn its share of Spark: long ones of replays, one at a time, leave a core."""
        apart = unit.name != MAIN
        use_pool(self.tools.spark, "replay" if apart else None)
        with self._replaying if apart and gear == "long" else nullcontext():
            yield

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Let nothing be idle that merely could not be seen: the log was out of reach."""
        try:
            yield
        except Unreachable:
            self.planner.marking.forget()
            raise

    def open_asides(self, unit: Unit, folds: Sequence[Fold]) -> None:
        """Open the units of views that have left one, as the ledger says."""
        with self.tools.store.open() as snapshot:
            held = {(h.name, h.version): h for h in snapshot.holdings() if h.kind == "view"}
            for table in tables_of(folds):
                of_view = [fold for fold in folds if fold.table == table]
                holding = held[table.view, table.version]
                aside = unit
                if holding.unit != unit.name:
                    aside = self._open_unit(snapshot, holding.unit)
                aside.add(of_view)
                aside.state, aside.reason = holding.state, holding.reason
                self._change_units(enter=[aside])

    def join_main(self, unit: Unit) -> bool:
        """Swap a unit in if it stands where the main one stands; the main one waits meanwhile."""
        main = self.units[MAIN]
        if unit is main or stays_apart(unit, self._wanted):
            return False
        with ExitStack() as held:
            held.enter_context(self.join_lock)
            if unit.name not in self.units:
                return False
            replaced = replaced_by(unit, self.units)
            along = built_along(unit, self.units, self._wanted)
            if any(self.planner.lag(each) > _NEARLY_LEVEL_RECORDS for each in along):
                return False
            for each in (main, unit, *replaced, *along):
                held.enter_context(each.lock)
            # A partition that was added is read by all, or by none.
            self.planner.notice_partitions(main)
            if main.added:
                return False  # its next turn enters them, with their markers
            for each in (unit, *along):
                self._draw_level(each)
            if stays_apart(unit, self._wanted) or not self._level(unit):
                return False
            faults.reach("before_swap")
            brought = shown_with(unit, self.units, self._wanted)
            older = kept_tables(fold for each in (*replaced, main) for fold in each.folds)
            try:
                changed = self.tools.store.show(self.epoch, unit.name, kept_tables(brought), older)
            except MergeFailed as error:
                let_fail(self.tools.store, self.epoch, unit, str(error))
                return False
            self.emitting.note_changed(changed)
            files = {
                run.file
                for each in (main, unit, *replaced)
                for runs in each.manifests.values()
                for run in runs
            }
            merge_into_main(unit, main)
            self._change_units(remove={unit.name, *(other.name for other in replaced)})
            if files:
                self.tools.tidy(files)
        views = ", ".join(table.view for table in tables_of(unit.folds))
        logger.info("%s: level, and swapped in", views)
        if changed:
            with self._watching():
                self.beside.soon(outbox=True, written=True)
        return True

    def _draw_level(self, unit: Unit) -> None:
        """Take a unit's last turn, if there is little left to read, while the main one waits."""
        self.planner.notice_partitions(unit)
        behind = unit.time_offset < self.units[MAIN].time_offset or unit.added
        if behind or 0 < self.planner.lag(unit) <= _NEARLY_LEVEL_RECORDS:
            self.turn_unit(unit, max_records=_NEARLY_LEVEL_RECORDS)

    def _level(self, unit: Unit) -> bool:
        along = built_along(unit, self.units, self._wanted)
        ends = {key: extent.end_offset for key, extent in self.planner.extents(unit).items()}
        return is_level(unit, self.units[MAIN], along, ends)

    def finished(self) -> bool:
        """Whether there is nothing to read or tell, no marker, and nothing to be swapped in."""
        time_offset = self.units[MAIN].time_offset
        return (
            all(
                unit.state.stands_still
                or (
                    (unit.name == MAIN or stays_apart(unit, self._wanted))
                    and unit.time_offset == time_offset
                    and self.planner.lag(unit) == 0
                )
                for unit in self.units.values()
            )
            and not self.emitting.due()
        )

    def end_input(self) -> None:
        """Say in the log that no more records come: every window that has rows closes.

        The markers go just past the last window, its allowed lateness and the delay, no further.
        Records that come after all are late for these windows.
        """
        main = self.units[MAIN]
        with main.lock, self.tools.store.open() as snapshot:
            for name, source in main.streams.items():
                # Also of views that stay apart: they read the same markers.
                ends_us = [
                    end_us + (fold.view.lateness_us or 0)
                    for unit in self.units.values()
                    for fold in unit.pipeline.folds_over(name)
                    if (end_us := snapshot.last_end(fold.table)) is not None
                ]
                if source.owned and ends_us:
                    self.planner.marking.mark_end(main, source.stream, max(ends_us))

    def follow(self, view: str, *, after: str | None = None) -> Follower:
        """Return a reader of a view and of how it changes, from now on or after a token.

        TokenRefused, TokenTooOld.
        """
        return Follower(self.tools.store, view, after=after)

    def last_turns(self) -> dict[str, TurnReport]:
        """Return the last turn of every unit that this engine has turned, with all its times."""
        return {unit.name: unit.last for unit in self.units.values() if unit.last is not None}

    def keep_times(self) -> None:
        """Let the store know how long the last turns took, commit and publishing included."""
        if last := self.last_turns():
            self.tools.store.keep_times(self.epoch, list(last.values()))

    def close(self) -> None:
        """Let go of the engine's threads. Log, store and Spark belong to the caller."""
        self._pool.shutdown()
        self._levels.save()
