"""Find the records that a view's expressions fail on: all of them in one Spark job.

Spark has no SQL for "does this fail", but Catalyst has the expression that `try_add` and its kin
are made of: TryEval, NULL where its child raises. Around a struct, which is never NULL by itself,
it says just that. It is reached through py4j, since PySpark does not offer it. A Spark that has no
such class can still be asked whether the expressions fail on one record alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from headrace.engine.gears.frames import make_frame
from headrace.engine.spark.errors import SPARK_ERRORS
from headrace.errors import ProbeMissing
from headrace.plan.spark.expanding import Expand
from headrace.plan.stages import Fold

__all__ = ["SHARING", "any_fails", "failing_rows", "fails_alone", "try_all"]

# A value that two expressions share would be worked out before either, outside of TryEval.
SHARING = "spark.sql.subexpressionElimination.enabled"


_TRY_EVAL = "TryEval"


def failing_rows(fold: Fold, session: SparkSession, rows: pa.Table) -> np.ndarray:
    """Return which rows an expression of the view fails on. ProbeMissing.

    What Spark raises passes through.
    """
    places = np.arange(rows.num_rows, dtype=np.int64)
    numbered = rows.append_column("__row", pa.array(places))
    with _without_sharing(session):
        found = _failing(fold, session, make_frame(session, numbered)).select("__row").toArrow()
    mask = np.zeros(rows.num_rows, dtype=bool)
    mask[found["__row"].to_numpy()] = True
    return mask


def any_fails(fold: Fold, session: SparkSession) -> bool:
    """Return whether an expression fails on any row of `__input`. ProbeMissing.

    Spark's tasks look for it, however many rows there are. What Spark raises passes through.
    """
    with _without_sharing(session):
        return bool(_failing(fold, session, session.table("__input")).take(1))


def fails_alone(fold: Fold, session: SparkSession, row: pa.Table) -> bool:
    """Return whether evaluating the view's expressions fails where there is only this row."""
    try:
        return bool(failing_rows(fold, session, row).any())
    except ProbeMissing:
        pass
    try:
        _with_levels(fold, make_frame(session, row)).selectExpr("*", *fold.values).toArrow()
    except SPARK_ERRORS:
        return True
    return False


def _failing(fold: Fold, session: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the rows of a frame that an expression of the view fails on."""
    fails = F.lit(False)
    for number, level in enumerate(fold.narrow.levels):
        if isinstance(level, Expand):
            frame = frame.selectExpr("*", level.text)
            continue
        tried = f"__level{number}"
        frame = frame.withColumn(tried, try_all(session, dict(level)))
        names = [name for name, _ in level]
        frame = frame.select("*", *(F.col(f"{tried}.{name}").alias(name) for name in names))
        fails = fails | F.col(tried).isNull()
    if fold.values:
        # A record that WHERE fails on has no `__skip`, and nothing else is asked of it.
        values = {f"v{i}": text for i, text in enumerate(fold.values)}
        fails = fails | try_all(session, values).isNull()
    return frame.where(fails)


def _with_levels(fold: Fold, frame: DataFrame) -> DataFrame:
    for level in fold.narrow.levels:
        columns = [level.text] if isinstance(level, Expand) else [f"{t} AS {n}" for n, t in level]
        frame = frame.selectExpr("*", *columns)
    return frame


def try_all(session: SparkSession, expressions: Mapping[str, str]) -> Column:
    """Return a struct of expressions that is null where one of them fails. ProbeMissing."""
    fields = ", ".join(f"'{name}', {text}" for name, text in expressions.items())
    struct = F.expr(f"named_struct({fields})")
    catalyst = session._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    convert = catalyst.classic.ExpressionUtils
    try_eval = getattr(catalyst.catalyst.expressions, _TRY_EVAL)
    if isinstance(try_eval, JavaPackage):
        raise ProbeMissing(
            "this release of Spark has no TryEval, which tells the records that an expression "
            "fails on. Install the release that Headrace asks for: pip install 'pyspark>=4.2,<4.4'"
        )
    return Column(convert.column(try_eval(convert.expression(struct._jc))))


@contextmanager
def _without_sharing(session: SparkSession) -> Iterator[None]:
    session.conf.set(SHARING, "false")
    try:
        yield
    finally:
        session.conf.unset(SHARING)
