"""Folds that Spark has planned once, and that every short turn runs again over other rows.

To parse, analyse and plan a fold's query takes Spark as long as to run it over the few thousand
rows of a short turn, and longer the more the query says. The plan of a prepared fold has one task,
which reads a file; the rows of a turn are that file.

Not every fold can be prepared, and the rows of the others travel with a plan that is made for them
(frames.py):
- Tasks must see the driver's files, so Spark must not run on other machines.
- No step of the plan may keep anything from one run to the next, as a shuffle does.
"""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.tasks import Task, spare_the_collector
from headrace.errors import DiskFull, EngineError
from headrace.plan.fold import input_columns
from headrace.plan.spark.names import identifier
from headrace.plan.stages import Fold

__all__ = ["PreparedFold", "RowsFile", "can_prepare", "prepare"]

# Steps that work out everything anew in every run.
_KEEP_NOTHING = frozenset(
    {
        "ColumnarToRow", "Filter", "Generate", "HashAggregate", "InputAdapter", "MapInArrow",
        "ObjectHashAggregate", "Project", "Range", "Sort", "SortAggregate", "WholeStageCodegen",
    }
)  # fmt: skip


def can_prepare(spark: SparkSession) -> bool:
    """Whether tasks see the driver's files."""
    return str(spark.sparkContext.master).startswith("local")


@lru_cache(maxsize=1024)  # beyond it, views are planned anew now and then
def prepare(spark: SparkSession, fold: Fold) -> "PreparedFold":
    """Return a fold with its plan. What Spark raises passes through."""
    return PreparedFold(fold, spark.newSession())


class PreparedFold:
    """A fold and its plan, in a session of its own. What Spark raises passes through.

    Where it is not `repeatable`, running it again would give what earlier rows made.
    """

    def __init__(self, fold: Fold, session: SparkSession) -> None:
        types = input_columns(fold.stream, fold.narrow.columns)
        self._columns = list(types)
        self._lock = threading.Lock()
        self._file = RowsFile()
        schema = ", ".join(f"{identifier(name)} {type.sql}" for name, type in types.items())
        self._file.frame(session, schema).createOrReplaceTempView("__input")
        self._result = session.sql(fold.query)
        steps = set(_steps(self._result._jdf.queryExecution().executedPlan()))
        self.repeatable = steps <= _KEEP_NOTHING

    def run(self, rows: pa.Table) -> pa.Table:
        """Fold rows and return the result; one call waits for the other. DiskFull, EngineError."""
        rows = rows.select(self._columns)
        with self._lock, self._file.holding(rows):
            return self._result.toArrow()


class RowsFile:
    """A file that hands the rows of a turn to the one task of a plan that is made once."""

    def __init__(self) -> None:
        # Spark removes the folder when it ends, also when this process is killed.
        self._path = Path(SparkFiles.getRootDirectory()) / f"rows-{uuid4()}.arrow"

    def frame(self, session: SparkSession, schema: str) -> DataFrame:
        """Return the rows that the file holds when the frame is run."""
        return session.range(1, numPartitions=1).mapInArrow(_reading(str(self._path)), schema)

    @contextmanager
    def holding(self, rows: pa.Table) -> Iterator[None]:
        """Let the file hold rows. DiskFull, EngineError."""
        try:
            self._write(rows)
            yield
        finally:
            self._path.unlink(missing_ok=True)

    def _write(self, rows: pa.Table) -> None:
        try:
            with pa.ipc.new_file(str(self._path), rows.schema) as writer:
                writer.write_table(rows)
        except OSError as error:
            kind = DiskFull if error.errno == errno.ENOSPC else EngineError
            raise kind(
                f"{self._path.parent}: the rows of a turn cannot be handed to Spark: {error}. Make "
                f"room there, or set `spark.local.dir` under [spark] in headrace.toml. Nothing is "
                f"lost: the turn is taken again."
            ) from error


def _steps(plan: Any) -> Iterator[str]:
    """Return the names of a plan's steps, without the numbers that some have."""
    yield plan.nodeName().partition(" ")[0]
    children = plan.children()
    for number in range(children.size()):
        yield from _steps(children.apply(number))


def _reading(path: str) -> Task:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in numbers:
            with pa.memory_map(path) as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
        spare_the_collector()

    return run
