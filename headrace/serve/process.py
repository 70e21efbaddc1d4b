"""The engine's process: everything a running engine holds, taken in order and given back in turn.

1. The engine lock: a second engine is refused before it touches anything.
2. Log and store.
3. Spark, started in a thread, so that a signal is heard meanwhile.
4. The engine, which checks every definition and takes over the store.
5. The plans of live turns, made and run once: the first turn is as quick as the next ones.
6. The HTTP API, and its address.

Once for a machine, while the engine runs, an archive is made that the next start is quicker with.

When definitions are edited, another engine takes the place of the one there is; the rest stays.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.engine.reach import Reach
from headrace.engine.spark.classes import OPTIONS
from headrace.errors import DefinitionError, StoreBusy, Unreachable
from headrace.ledger.entries import MAIN, HoldingState, TurnReport
from headrace.log.base import Log
from headrace.log.opening import open_log
from headrace.model.definitions import Project
from headrace.observe.drift import Drift, find_drift
from headrace.project.config import Config
from headrace.project.disk import Disk
from headrace.project.folder import OpenProject
from headrace.project.lock import hold_engine_lock, owner_token
from headrace.serve.access import dashboard_link, plan_with, start_project_spark
from headrace.serve.api import serving_api
from headrace.serve.archiving import keeping_archive
from headrace.serve.signal import Signal
from headrace.serve.starting import Stopped, unless_stopped
from headrace.serve.turns import Turns
from headrace.store.base import Store
from headrace.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.engine.engine import Engine

__all__ = ["Served", "serving"]

# Somebody's `headrace sql` may be reading the store at the moment an engine starts.
_STORE_PATIENCE_SECONDS = 5.0


class Served:
    """A project that is being served; `engine` is another one after `renew`.

    `link` opens the dashboard, and lets in whoever has it.
    """

    def __init__(
        self, config: Config, log: Log, store: Store, spark: "SparkSession", reach: Reach
    ) -> None:
        self.config = config
        self.disk = Disk(config)
        self.commits = Signal()
        self.turns = Turns()
        self.on_turn: Callable[[TurnReport], None] = lambda _: None
        self.engine: Engine
        self.link = ""
        self._log = log
        self._store = store
        self._spark = spark
        self._reach = reach

    def start(self, definitions: Project, stop: threading.Event) -> None:
        """Start an engine, which checks the definitions first. DefinitionError, Stopped."""
        from headrace.engine.engine import Engine  # loads Spark: only once there is one

        settings = self.config.settings
        engine = Engine(definitions, self._log, self._store, self._spark, settings=settings)
        try:
            _start_engine(engine, self._reach, stop)
        except BaseException:
            engine.close()
            raise
        engine.emitting.on_commit = self.commits.note
        engine.on_turn = self._note_turn
        self.engine = engine
        self.commits.note()

    def renew(self, definitions: Project, stop: threading.Event) -> None:
        """Let an engine with other definitions go on. The old one must not be turning.

        DefinitionError: they are refused, and an engine with the old ones goes on.
        """
        old = self.engine.project
        self.engine.close()
        try:
            self.start(definitions, stop)
        except DefinitionError as error:
            self.disk.refuse(definitions, error)
            self.start(old, stop)
            raise

    def plan(self, definitions: Project) -> None:
        """Let Spark check definitions; nothing else is done. DefinitionError: status says so."""
        try:
            plan_with(self._spark, definitions)
        except DefinitionError as error:
            self.disk.refuse(definitions, error)
            raise

    def drift(self) -> Drift | None:
        """Return how the definitions on disk differ from those that the ledger holds."""
        with self._store.open() as snapshot:
            return find_drift(self.disk, snapshot)

    def _note_turn(self, report: TurnReport) -> None:
        self.turns.note(report)
        self.on_turn(report)

    def pause_view(self, name: str) -> None:
        """Pause a view when its turn under way has ended. UsageError."""
        from headrace.engine.versions.pausing import pause_view

        pause_view(self.engine, name)
        self.commits.note()

    def resume_view(self, name: str) -> None:
        """Let a paused view go on. UsageError, PositionLost."""
        from headrace.engine.versions.pausing import resume_view

        resume_view(self.engine, name)
        self.commits.note()

    def pause_sink(self, name: str) -> None:
        """Let a sink be told nothing from now on. UsageError."""
        from headrace.engine.versions.pausing import pause_sink

        pause_sink(self.engine, name)
        self.commits.note()

    def resume_sink(self, name: str) -> None:
        """Let a paused sink be told what waits for it. UsageError."""
        from headrace.engine.versions.pausing import resume_sink

        resume_sink(self.engine, name)
        self.commits.note()

    def unready(self) -> str | None:
        """Return which views are not live yet, as a sentence; None: all are."""
        # From memory: whoever asks for it needs no permission.
        waiting = {
            fold.name
            for unit in self.engine.units.values()
            if unit.state is HoldingState.BUILDING
            for fold in unit.folds
        }
        return f"still being built: {', '.join(sorted(waiting))}" if waiting else None

    def close(self) -> None:
        """Let go of the engine."""
        self.engine.close()


@contextmanager
def serving(
    opened: OpenProject,
    stop: threading.Event,
    *,
    tell: Callable[[str], None] = lambda _: None,
    patient: bool = True,
    watches: bool = False,
) -> Iterator[Served]:
    """Start a project's engine and serve its API; `tell` hears what is being done.

    A log out of reach is waited for, unless not `patient`: Unreachable. EngineRunning,
    DefinitionError, StoreBusy, JavaMissing, AccessDenied. Stopped: `stop` was set on the way.
    `watches` tells others that edits are applied, which the caller does.
    """
    config = opened.config
    with ExitStack() as stack:
        holder = stack.enter_context(hold_engine_lock(config.runtime))
        log = open_log(config.log, name=f"engine:{config.name}")
        stack.callback(log.close)
        store = _open_store(config.store_path, stop)
        stack.callback(store.close)
        tell("starting Spark")
        spark = _start_spark(config, stop)
        stack.callback(spark.stop)
        tell("checking the definitions")
        served = Served(config, log, store, spark, Reach(stop, patient=patient))
        served.start(opened.definitions, stop)
        stack.callback(served.close)
        if patient:
            tell("preparing the views")
            _warm(served, stop)
        url = stack.enter_context(serving_api(config, served, holder, watches=watches))
        if stop.is_set():
            raise Stopped
        tell(f"serving {config.name} on {url}")
        served.link = dashboard_link(url, owner_token(config.runtime))
        with keeping_archive(os.environ.get(OPTIONS, "")) if patient else nullcontext():
            yield served


def _start_engine(engine: "Engine", reach: Reach, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            engine.start()
        except Unreachable as error:
            reach.wait(error)
        else:
            reach.found()
            return
    raise Stopped


def _open_store(path: Path, stop: threading.Event) -> Store:
    deadline = time.monotonic() + _STORE_PATIENCE_SECONDS
    while True:
        try:
            return open_store(path)
        except StoreBusy:
            if time.monotonic() > deadline or stop.wait(0.1):
                raise


def _start_spark(config: Config, stop: threading.Event) -> "SparkSession":
    # In a thread of its own PySpark leaves the signal handlers alone.
    return unless_stopped(lambda: start_project_spark(config), stop)


def _warm(served: Served, stop: threading.Event) -> None:
    from headrace.engine.gears.warming import warm_folds

    engine = served.engine
    folds = engine.units[MAIN].folds
    unless_stopped(lambda: warm_folds(engine.tools.spark, engine.tools.pool, folds), stop)
