"""How the workers of a run share the test files.

Four workers keep two cores busy. The first two run Spark in their own process, and take the files
that do; a Spark in each of the four would cost more than it waits for. The third takes the tests of
Kafka, so that one broker serves them all, the fourth those that start processes. Both wait much.
Those of Spark give way to them, so that they wait for nothing else; what is left of the cores is
for Spark. Who has no file of its own left takes any that is left; but the last two take one of
Spark only where many are, because each would start one first. The tests of a file stay together and
share what they start.

xdist's own groups (`--dist loadgroup`) have no effect with pytest 9.
"""

import os
from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

__all__ = ["ByNeed", "begins_with_spark", "give_way", "rank"]

ROOT = Path(__file__).parent.parent


class Need(Enum):
    """What the tests of a file start."""

    SPARK = "a Spark in the test's own process"
    KAFKA = "a broker"
    PROCESSES = "engines, commands, a browser"
    NOTHING = "nothing that takes long"


PROCESSES = ("tests/cli/", "tests/browser/", "tests/engine/test_java.py")
#: They need a Spark and a broker: together, so that one worker has both.
SPARK_ON_KAFKA = tuple(f"tests/engine/test_{name}.py" for name in ("adaptive", "idle", "on_kafka"))
#: What takes longest goes first, else one worker is still at it in the end.
LONG = (
    "tests/sql/test_cases.py",
    *(
        f"tests/engine/test_{name}.py"
        for name in ("unique", "transcripts", "aggregates", "versions", "sinks", "written_streams")
    ),
    "tests/aggregates/test_aggregate_laws.py",
    "tests/cli/test_engine_process.py",
    "tests/cli/test_quickstart.py",
    "tests/log/test_kafka.py",
    "tests/store/test_contract.py",
    "tests/store/test_touched_windows.py",
)

#: What a worker takes, by its number, first choice first.
ANY = (Need.NOTHING, Need.PROCESSES, Need.KAFKA)
CHOICES: Sequence[Sequence[Need]] = (
    (Need.SPARK, *ANY),
    (Need.SPARK, *ANY),
    (Need.KAFKA, Need.PROCESSES, Need.NOTHING, Need.SPARK),
    (Need.PROCESSES, Need.NOTHING, Need.KAFKA, Need.SPARK),
)
#: Of Spark, before it is worth while to start another one.
MANY_FILES = 10


def give_way(worker: str | None) -> None:
    """Let a worker that runs Spark, and what it starts, leave the cores to the others first."""
    if worker is not None and CHOICES[_number(worker)][0] is Need.SPARK:
        os.nice(5)


def begins_with_spark(worker: str | None) -> bool:
    """Return whether Spark is what a worker needs first, in its own process or in another one."""
    return worker is None or CHOICES[_number(worker)][0] in (Need.SPARK, Need.PROCESSES)


def _number(worker: str) -> int:
    return int(worker.removeprefix("gw")) % len(CHOICES)


@cache
def need_of(file: str) -> Need:
    """Return what the tests of a file start; of a Spark and something else, the Spark."""
    text = (ROOT / file).read_text()
    if file.startswith(PROCESSES):
        return Need.PROCESSES
    if "pytest.mark.spark" in text:
        return Need.SPARK
    return Need.KAFKA if "broker" in text else Need.NOTHING


@cache
def rank(file: str) -> int:
    """Return when a file is run, among those of the same need."""
    if file in SPARK_ON_KAFKA:
        return -1
    return LONG.index(file) if file in LONG else len(LONG)


class ByNeed(LoadFileScheduling):
    """Hands out file by file, to each worker what it is for."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return SPARK_ON_KAFKA[0] if file in SPARK_ON_KAFKA else file

    def _reschedule(self, node: WorkerController) -> None:
        if self._next(node) is None and not node.shutting_down:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = self._next(node)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _next(self, node: WorkerController) -> str | None:
        choices = CHOICES[_number(node.gateway.id)]
        for need in choices:
            files = [file for file in self.workqueue if need_of(file) is need]
            starts = need is Need.SPARK and choices[0] is not need and not self._has_spark(node)
            if len(files) >= (MANY_FILES if starts else 1):
                return files[0]
        return None

    def _has_spark(self, node: WorkerController) -> bool:
        return any(need_of(file) is Need.SPARK for file in self.assigned_work[node])
