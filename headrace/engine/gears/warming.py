"""Make the plans of a unit's live turns, and run each once, before the first record comes.

The first run of a plan takes Spark seconds: it plans the query, writes Java code for it and
compiles that. Without warming, the first turn after a start would take as long.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.gears.evaluating import evaluate_rows, no_rows
from headrace.engine.gears.prepared import Prepared, can_prepare, collect, prepare_fold
from headrace.engine.gears.rows_file import lend_file
from headrace.engine.spark.errors import SPARK_ERRORS
from headrace.errors import MergeFailed
from headrace.plan.fold import input_columns
from headrace.plan.stages import Fold, tables_of

__all__ = ["warm_folds"]


def warm_folds(spark: SparkSession, pool: ThreadPoolExecutor, folds: Sequence[Fold]) -> None:
    """Prepare folds, and run them over no rows. DiskFull, EngineError.

    What fails here fails again in the turn, which says of which view it is.
    """
    if not folds or not can_prepare(spark):
        return
    streams = {fold.stream.name: fold.stream for fold in folds}
    with ExitStack() as held:
        files = {name: held.enter_context(lend_file(name)) for name in streams}

        def prepare(fold: Fold) -> Prepared | None:
            try:
                return prepare_fold(spark, fold, files[fold.stream.name])
            except SPARK_ERRORS:
                return None

        plans = [plan for plan in pool.map(prepare, folds) if plan is not None and plan.repeatable]
        for name, stream in streams.items():
            types = input_columns(stream).items()
            schema = pa.schema([(column, type.arrow) for column, type in types])
            files[name].write(schema.empty_table())
        collect(plans)
    evaluated = [table for table in tables_of(folds) if table.evaluated]
    with suppress(MergeFailed):
        evaluate_rows(spark, {table: no_rows(table) for table in evaluated})
