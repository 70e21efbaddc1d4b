"""Find who answers: the running engine, or the store itself when none runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.errors import DefinitionError, Problem, Unreachable
from headrace.ledger.definitions import short_version
from headrace.log.opening import open_log
from headrace.model.definitions import Project
from headrace.model.fingerprint import stream_fingerprint
from headrace.plan.stages import Fold, Pipeline, plan_pipeline
from headrace.project.config import Config
from headrace.project.disk import Disk
from headrace.project.folder import read_definitions
from headrace.project.lock import Address, address_of_holder, lock_holder
from headrace.serve.desk import Desk, StoreDesk
from headrace.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "dashboard_link",
    "open_desk",
    "plan_definitions",
    "plan_on_disk",
    "plan_with",
    "running_engine",
]

# An engine that is starting needs some seconds for Spark before it answers.
START_SECONDS = 30.0


@contextmanager
def open_desk(config: Config) -> Iterator[Desk]:
    """Open the way to a project's answers. Unreachable: no engine answers, or no store yet."""
    address = running_engine(config)
    if address is not None:
        from headrace.serve.client import EngineClient  # loads httpx: not needed without engine

        client = EngineClient(address)
        try:
            yield client
        finally:
            client.close()
        return
    if not config.store_path.exists():
        raise Unreachable(f"{config.store_path}: no store yet: run `headrace run`")
    log = open_log(config.log)
    store = open_store(config.store_path, read_only=True)
    try:
        yield StoreDesk(
            config.name,
            log,
            store,
            config.settings,
            pipelines=lambda: [plan_on_disk(config)],
            disk=Disk(config),
            prepares_plans=config.prepares_plans,
        )
    finally:
        store.close()
        log.close()


def running_engine(config: Config) -> Address | None:
    """Return the address of the project's engine, None when none runs.

    An engine that is starting is waited for. Unreachable: it takes too long.
    """
    deadline = time.monotonic() + START_SECONDS
    while (holder := lock_holder(config.runtime)) is not None:
        if address := address_of_holder(config.runtime, holder):
            return address
        if time.monotonic() > deadline:
            raise Unreachable(
                f"{config.folder}: the engine (pid {holder.pid}, since {holder.started}) is "
                f"still starting; see what it prints, and ask again"
            )
        time.sleep(0.1)
    return None


def plan_on_disk(config: Config) -> Pipeline:
    """Plan the project as its files are now; Spark tells the types. DefinitionError: all."""
    return plan_definitions(config, read_definitions(config.folder))


def plan_definitions(config: Config, definitions: Project) -> Pipeline:
    """Plan definitions; Spark tells the types. DefinitionError: all."""
    return plan_with(start_project_spark(config), definitions)


def plan_with(spark: "SparkSession", definitions: Project) -> Pipeline:
    """Plan definitions with a Spark that is running. DefinitionError: all."""
    from headrace.engine.spark.analysis import plan_view  # loads Spark

    folds: list[Fold] = []
    problems: list[Problem] = []
    for view in definitions.views:
        try:
            folds += plan_view(spark, view, definitions.streams_of(view))
        except DefinitionError as error:
            problems += error.problems
    if problems:
        raise DefinitionError(problems)
    streams = [(each, short_version(stream_fingerprint(each))) for each in definitions.streams]
    return plan_pipeline(streams, folds)


def start_project_spark(config: Config) -> "SparkSession":
    """Start Spark as headrace.toml says. JavaMissing, EngineError."""
    from headrace.engine.spark.session import start_spark  # takes a second to load

    return start_spark(master=config.spark_master, settings=config.spark_settings)


def dashboard_link(url: str, token: str) -> str:
    """Return a link that opens the dashboard; browsers send no server what stands behind #."""
    return f"{url}/#token={token}"
