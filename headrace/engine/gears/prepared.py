"""Plans that Spark has made once, and that every short turn runs again over other rows.

To parse, analyse and plan a query takes Spark as long as to run it over the few thousand rows of a
short turn, and longer the more the query says. A prepared plan has one task, which reads a file;
the rows of a turn are that file (rows_file.py).

`collect` runs many plans as one job per core, whatever their number: a job costs some 10 ms, and a
task unpacks all plans of its job, so a task per plan would cost their number squared. (16 views on
2 busy cores: 1,300 ms as one job with a task each, 700 to 800 ms as two jobs with a task each.)

Not every plan can be prepared, and the rows of the others travel with a plan that is made for them
(frames.py):
- Tasks must see the driver's files, so Spark must not run on other machines.
- No step of the plan may keep anything from one run to the next, as a shuffle does.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.engine.gears.rows_file import RowsFile
from headrace.engine.spark.errors import SPARK_ERRORS, SparkError
from headrace.plan.fold import input_columns
from headrace.plan.stages import Fold
from headrace.project.config import runs_here
from headrace.schema.types import DataType

__all__ = ["Prepared", "can_prepare", "collect", "prepare_fold"]

# Steps that work out everything anew in every run.
_KEEP_NOTHING = frozenset(
    {
        "Coalesce", "ColumnarToRow", "FileScan", "Filter", "Generate", "HashAggregate",
        "InputAdapter", "ObjectHashAggregate", "Project", "Scan", "Sort", "SortAggregate",
        "WholeStageCodegen",
    }
)  # fmt: skip


def can_prepare(spark: SparkSession) -> bool:
    """Whether tasks see the driver's files."""
    return runs_here(str(spark.sparkContext.master))


class Prepared:
    """A plan that was made once. What Spark raises passes through.

    Where it is not `repeatable`, running it again would give what earlier rows made.
    """

    def __init__(self, frame: DataFrame) -> None:
        self.spark = frame.sparkSession.sparkContext
        self.schema = to_arrow_schema(frame.schema, timezone="UTC")
        self.repeatable = set(_steps(frame._jdf.queryExecution().executedPlan())) <= _KEEP_NOTHING
        self.batches = frame._jdf.toArrowBatchRdd() if self.repeatable else None

    def run(self) -> pa.Table:
        """Run the plan over the rows that its file holds now."""
        found = collect([self])[0]
        if isinstance(found, pa.Table):
            return found
        raise found


def prepare_fold(spark: SparkSession, fold: Fold, file: RowsFile) -> Prepared:
    """Return the plan of a fold over the rows of a file. What Spark raises passes through.

    Folds with one query share it, such as those of an audit and of the engine that it audits.
    """
    types = input_columns(fold.stream, fold.narrow.columns)
    return _prepare(spark, fold.query, tuple(types.items()), file)


@lru_cache(maxsize=1024)  # beyond it, views are planned anew now and then
def _prepare(
    spark: SparkSession, query: str, types: tuple[tuple[str, DataType], ...], file: RowsFile
) -> Prepared:
    session = spark.newSession()
    file.frame(session, dict(types)).createOrReplaceTempView("__input")
    return Prepared(session.sql(query))


def collect(plans: Sequence[Prepared]) -> list[pa.Table | SparkError]:
    """Run plans, and return the result of each, or why it has none.

    Plans that share a job with one that fails are run again by themselves.
    """
    if not plans:
        return []
    shares = min(len(plans), plans[0].spark.defaultParallelism)
    found: dict[Prepared, pa.Table | SparkError] = {}
    for share, results in _run([tuple(plans[at::shares]) for at in range(shares)]):
        if isinstance(results, list):
            found.update(zip(share, results, strict=True))
        elif len(share) == 1:
            found[share[0]] = results
    for (plan,), results in _run([(plan,) for plan in plans if plan not in found]):
        found[plan] = results[0] if isinstance(results, list) else results
    return [found[plan] for plan in plans]


#: Plans of one job.
_Share = tuple[Prepared, ...]

# What stands behind the batches of a plan: another message of Arrow's, and no batch.
_END = pa.schema([]).serialize().to_pybytes()


def _run(shares: Sequence[_Share]) -> Iterator[tuple[_Share, list[pa.Table] | SparkError]]:
    """Run jobs side by side, and yield what each gave."""
    jobs = [(share, _united(share).collectAsync()) for share in shares]
    for share, job in jobs:
        try:
            batches = job.get()
        except SPARK_ERRORS as error:
            yield share, error
        else:
            yield share, _decode(share, _fetch(share[0].spark, batches))


@lru_cache(maxsize=256)
def _united(share: _Share) -> Any:
    """Return plans as one task: the Arrow batches of each, in order, and _END behind them."""
    context = share[0].spark
    jvm = context._jvm
    assert jvm is not None
    of_bytes, of_arrays = (
        jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName(name))
        for name in ("[B", "[[B")
    )
    end = context._jsc.parallelize([_END], 1).rdd()
    batches = jvm.java.util.ArrayList()
    for plan in share:
        batches.add(plan.batches)
        batches.add(end)
    together = context._jsc.sc().union(
        jvm.org.apache.spark.api.python.PythonUtils.toSeq(batches), of_bytes
    )
    to_java = jvm.org.apache.spark.api.java.JavaRDD.fromRDD
    return to_java(to_java(together, of_bytes).coalesce(1).rdd().glom(), of_arrays)


def _fetch(context: SparkContext, batches: Any) -> memoryview:
    """Return the byte arrays of a job as one, in one call: each call waits for Java's attention."""
    jvm = context._jvm
    assert jvm is not None
    return memoryview(jvm.com.google.common.primitives.Bytes.concat(batches.get(0)))


def _decode(share: _Share, data: memoryview) -> list[pa.Table]:
    """Return the result of each plan from the batches of all."""
    source = pa.BufferReader(data)
    tables = []
    for plan in share:
        found = []
        while (message := pa.ipc.read_message(source)).type == "record batch":
            found.append(pa.ipc.read_record_batch(message, plan.schema))
        tables.append(pa.Table.from_batches(found, plan.schema))
    return tables


def _steps(plan: Any) -> Iterator[str]:
    """Return the names of a plan's steps, without the numbers that some have."""
    yield plan.nodeName().partition(" ")[0]
    children = plan.children()
    for number in range(children.size()):
        yield from _steps(children.apply(number))
