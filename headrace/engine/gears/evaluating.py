"""Evaluate expressions over merged rows that the store cannot: one Spark job for all views.

The store hands over the rows that a turn touched, within its commit (store/base.py, `Evaluate`). As
in a fold, plans are made once and read a file that holds the rows (prepared.py).

Promises:
- A value is a function of its row alone: neither the cut into turns nor the gear shows.
- Where an expression fails on a row, it is NULL for that row, and no other is harmed.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from headrace.engine.gears.frames import make_frame
from headrace.engine.gears.prepared import Prepared, can_prepare, collect
from headrace.engine.gears.probing import SHARING, try_all
from headrace.engine.gears.rows_file import RowsFile, lend_file
from headrace.engine.spark.errors import SPARK_ERRORS, SparkError, explain
from headrace.errors import MergeFailed
from headrace.plan.tables import Table
from headrace.schema.types import parse_type
from headrace.store.base import ROW

__all__ = ["evaluate_rows", "no_rows"]

#: Rows of a table that are evaluated at once; a replay may touch millions.
CHUNK_ROWS = 50_000


def evaluate_rows(spark: SparkSession, rows: Mapping[Table, pa.Table]) -> dict[Table, pa.Table]:
    """Return what Spark evaluates of the rows of each table. MergeFailed: Spark cannot."""
    if not can_prepare(spark):
        return {table: _evaluate_apart(spark, table, each) for table, each in rows.items()}
    found: dict[Table, list[pa.Table]] = {table: [] for table in rows}
    with ExitStack() as held:
        files = {table: held.enter_context(lend_file(_rows_name(table))) for table in rows}
        plans = {table: _prepared(spark, table, file) for table, file in files.items()}
        most = max((each.num_rows for each in rows.values()), default=0)
        for begin in range(0, max(most, 1), CHUNK_ROWS):
            here = [table for table, each in rows.items() if begin <= max(each.num_rows - 1, 0)]
            for table in here:
                files[table].write(rows[table].slice(begin, CHUNK_ROWS))
            results = collect([plans[table] for table in here])
            for table, result in zip(here, results, strict=True):
                if not isinstance(result, pa.Table):
                    raise _failed(table, result) from result
                found[table].append(result)
    return {table: pa.concat_tables(each) for table, each in found.items()}


def no_rows(table: Table) -> pa.Table:
    """Return what `evaluate_rows` is given of a table that has no rows to evaluate."""
    columns = [(name, type.arrow) for name, type in table.evaluated_inputs.items()]
    return pa.schema([(ROW, pa.int64()), *columns]).empty_table()


def _prepared(spark: SparkSession, table: Table, file: RowsFile) -> Prepared:
    try:
        return _prepare(spark, table, file)
    except SPARK_ERRORS as error:
        raise _failed(table, error) from error


def _evaluate_apart(spark: SparkSession, table: Table, rows: pa.Table) -> pa.Table:
    """Evaluate rows with a plan that is made for them: tasks do not see the driver's files."""
    session = spark.newSession()
    try:
        return make_frame(session, rows).select(*_columns(session, table)).toArrow()
    except SPARK_ERRORS as error:
        raise _failed(table, error) from error


def _rows_name(table: Table) -> str:
    return f"rows of {table.name}"


@lru_cache(maxsize=1024)  # beyond it, views are planned anew now and then
def _prepare(spark: SparkSession, table: Table, file: RowsFile) -> Prepared:
    """Return the plan over the rows of a file. What Spark raises passes through."""
    session = spark.newSession()
    types = {ROW: parse_type("BIGINT"), **table.evaluated_inputs}
    prepared = Prepared(file.frame(session, types).select(*_columns(session, table)))
    assert prepared.repeatable, "a plan of expressions keeps nothing"
    return prepared


def _columns(session: SparkSession, table: Table) -> Sequence[Column]:
    # See probing.py; it holds for whatever the session runs.
    session.conf.set(SHARING, "false")
    return [
        F.col(ROW),
        *(
            # May be NULL in Spark's eyes: it cannot hand over a struct that is NULL with a field
            # that never is.
            try_all(session, {"v": f"if({ROW} IS NULL, NULL, {each.expression})"}).alias(each.name)
            for each in table.evaluated
        ),
    ]


def _failed(table: Table, error: SparkError) -> MergeFailed:
    return MergeFailed(
        f"view {table.view}: Spark cannot evaluate its merged rows: {explain(error).sentence}",
        view=table.view,
    )
