"""The engine's process: everything a running engine holds, taken in order and given back in turn.

1. The engine lock: a second engine is refused before it touches anything.
2. Log and store.
3. Spark, started in a thread, so that a signal is heard meanwhile.
4. The engine, which checks every definition and takes over the store.
5. The HTTP API, and its address.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.engine.reach import Reach
from headrace.errors import StoreBusy, Unreachable
from headrace.log.opening import open_log
from headrace.project.config import Config
from headrace.project.folder import OpenProject
from headrace.serve.access import start_project_spark
from headrace.serve.api import Api
from headrace.serve.desk import StoreDesk
from headrace.serve.lock import Holder, hold_engine_lock, publish_address
from headrace.serve.server import serve
from headrace.store.base import Store
from headrace.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.engine.engine import Engine

__all__ = ["Stopped", "serving"]

# Somebody's `headrace sql` may be reading the store at the moment an engine starts.
_STORE_PATIENCE_SECONDS = 5.0


class Stopped(Exception):
    """The engine was told to stop before it ran."""


@contextmanager
def serving(
    opened: OpenProject,
    stop: threading.Event,
    *,
    tell: Callable[[str], None] = lambda _: None,
    patient: bool = True,
) -> Iterator["Engine"]:
    """Start a project's engine and serve its API; `tell` hears what is being done.

    A log out of reach is waited for, unless not `patient`: Unreachable. EngineRunning,
    DefinitionError, StoreBusy, JavaMissing, AccessDenied. Stopped: `stop` was set on the way.
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
        from headrace.engine.engine import Engine  # loads Spark: only once there is one

        engine = Engine(opened.definitions, log, store, spark, settings=config.settings)
        stack.callback(engine.close)
        _start_engine(engine, Reach(stop, patient=patient), stop)
        url = stack.enter_context(_serving_api(config, engine, holder))
        if stop.is_set():
            raise Stopped
        tell(f"serving {config.name} on {url}")
        yield engine


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
    # In a thread of its own PySpark leaves the signal handlers alone; and Java, which takes
    # seconds to start, can be left behind at once: it ends when this process does.
    found: list[SparkSession] = []
    failures: list[BaseException] = []

    def start() -> None:
        try:
            found.append(start_project_spark(config))
        except BaseException as error:  # noqa: BLE001 - raised below, by the thread that waits
            failures.append(error)

    thread = threading.Thread(target=start, name="spark-start", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        if stop.is_set():
            raise Stopped
    if failures:
        raise failures[0]
    return found[0]


@contextmanager
def _serving_api(config: Config, engine: "Engine", holder: Holder) -> Iterator[str]:
    tools = engine.tools
    desk = StoreDesk(
        config.name,
        tools.log,
        tools.store,
        config.settings,
        spark=lambda: tools.spark,
        folds=lambda: [fold for unit in list(engine.units.values()) for fold in list(unit.folds)],
    )
    token = secrets.token_urlsafe(32)
    api = Api(desk, token=token)
    with serve(api.app, port=config.port) as url:
        try:
            with publish_address(config.runtime, url, holder, token):
                yield url
        finally:
            api.close()
