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
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.engine.reach import Reach
from headrace.engine.spark.classes import OPTIONS
from headrace.errors import DefinitionError, StoreBusy, Unreachable
from headrace.ledger.entries import MAIN
from headrace.log.base import Log
from headrace.log.opening import open_log
from headrace.model.definitions import Project
from headrace.observe.drift import Drift, find_drift
from headrace.observe.status import EngineStatus
from headrace.project.config import Config
from headrace.project.disk import Disk
from headrace.project.folder import OpenProject
from headrace.serve.access import plan_with, start_project_spark
from headrace.serve.archiving import keeping_archive
from headrace.serve.desk import StoreDesk
from headrace.serve.http.api import Api
from headrace.serve.http.server import serve
from headrace.serve.lock import Holder, hold_engine_lock, publish_address
from headrace.serve.queries.pool import QueryPool
from headrace.serve.starting import Stopped, unless_stopped
from headrace.store.base import Store
from headrace.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.engine.engine import Engine

__all__ = ["Served", "serving"]

# Somebody's `headrace sql` may be reading the store at the moment an engine starts.
_STORE_PATIENCE_SECONDS = 5.0


class Served:
    """A project that is being served; `engine` is another one after `renew`."""

    def __init__(
        self, config: Config, log: Log, store: Store, spark: "SparkSession", reach: Reach
    ) -> None:
        self.config = config
        self.disk = Disk(config)
        self.engine: Engine
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
        self.engine = engine

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
        url = stack.enter_context(_serving_api(config, served, holder, watches))
        if stop.is_set():
            raise Stopped
        tell(f"serving {config.name} on {url}")
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


@contextmanager
def _serving_api(config: Config, served: Served, holder: Holder, watches: bool) -> Iterator[str]:
    token = secrets.token_urlsafe(32)
    with QueryPool(served.engine.tools.store, folder=config.runtime) as queries:
        api = Api(_make_desk(config, served, holder, watches, queries), token=token)
        with (
            serve(api.app, port=config.port) as url,
            publish_address(config.runtime, url, holder, token),
        ):
            try:
                yield url
            finally:
                queries.close()  # before the server, which would wait for their answers


def _make_desk(
    config: Config, served: Served, holder: Holder, watches: bool, queries: QueryPool
) -> StoreDesk:
    tools = served.engine.tools
    return StoreDesk(
        config.name,
        tools.log,
        tools.store,
        config.settings,
        pipelines=lambda: [unit.pipeline for unit in list(served.engine.units.values())],
        disk=served.disk,
        engine=EngineStatus(holder.pid, holder.started, watches),
        last_turns=lambda: served.engine.last_turns(),
        prepares_plans=config.prepares_plans,
        queries=queries,
    )
