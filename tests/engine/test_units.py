"""The units of an engine: several threads change them at once, and no change is lost.

Method: threads enter and remove units as fast as they can, with the interpreter switching between
them all the time; in the end those are there that were entered and not removed.
"""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.engine.spark.shares import bounded
from headrace.engine.unit import Unit
from headrace.ledger.entries import MAIN
from headrace.log import EmbeddedLog
from headrace.model.definitions import Project
from headrace.project.settings import Settings
from headrace.store.opening import open_store

THREADS, ROUNDS = 8, 60


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    log, store = EmbeddedLog(tmp_path / "log", sync=False), open_store(tmp_path / "store.duckdb")
    no_spark = cast(Any, None)  # it is not started, so it takes no turns
    engine = Engine(Project((), ()), log, store, no_spark)
    yield engine
    engine.close()
    store.close()
    log.close()


@pytest.fixture
def _restless() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
def test_units_that_threads_enter_and_remove_at_once_are_all_known(engine: Engine) -> None:
    begin = threading.Barrier(THREADS)
    seen: list[bool] = []

    def change(thread: int) -> None:
        begin.wait()
        for number in range(ROUNDS):
            name = f"view:{thread}@{number}"
            engine._change_units(enter=[Unit(name, Settings())])
            if number % 2:
                engine._change_units(remove={name})
            seen.append((name in engine.units) == (number % 2 == 0))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {
        f"view:{thread}@{number}" for thread in range(THREADS) for number in range(0, ROUNDS, 2)
    }
    assert set(engine.units) == kept
    assert len(seen) == THREADS * ROUNDS
    assert all(seen)


def test_a_mapping_that_was_handed_out_never_changes(engine: Engine) -> None:
    engine._change_units(enter=[Unit("main", Settings())])
    before = engine.units
    engine._change_units(enter=[Unit("view:a@1", Settings())], remove={"main"})
    assert list(before) == ["main"]
    assert list(engine.units) == ["view:a@1"]


@pytest.mark.spark
def test_the_tasks_of_every_other_unit_leave_the_main_one_a_core() -> None:
    spark = start_spark()
    cores = spark.sparkContext.defaultParallelism
    shares = {}
    for name in (MAIN, "view:a@1"):
        session = Unit(name, Settings()).session(spark, "a")
        frame = bounded(session.range(0, 100, numPartitions=cores + 6))
        # By a column that the range is not partitioned by, or Spark would not shuffle.
        shuffled = frame.selectExpr("id % 10 AS digit").groupBy("digit").count()
        shares[name] = (frame.rdd.getNumPartitions(), shuffled.rdd.getNumPartitions())
        assert shuffled.count() == 10
    assert shares == {MAIN: (cores + 6, cores), "view:a@1": (max(1, cores - 1),) * 2}
