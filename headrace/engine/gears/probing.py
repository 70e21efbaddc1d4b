"""Find the records that a view's expressions fail on: all of them in one Spark job.

Spark has no SQL for "does this fail", but Catalyst has the expression that `try_add` and its kin
are made of: TryEval, NULL where its child raises. Around a struct, which is never NULL by itself,
it says just that. It is reached through py4j, since PySpark does not offer it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from headrace.engine.gears.frames import make_frame
from headrace.plan.spark.expanding import Expand
from headrace.plan.stages import Fold

__all__ = ["SHARING", "failing_rows", "try_all"]

# A value that two expressions share would be worked out before either, outside of TryEval.
SHARING = "spark.sql.subexpressionElimination.enabled"


def failing_rows(fold: Fold, session: SparkSession, rows: pa.Table) -> np.ndarray:
    """Return which rows an expression of the view fails on. What Spark raises passes through."""
    places = np.arange(rows.num_rows, dtype=np.int64)
    numbered = rows.append_column("__row", pa.array(places))
    with _without_sharing(session):
        judged = make_frame(session, numbered)
        fails = F.lit(False)
        for number, level in enumerate(fold.narrow.levels):
            if isinstance(level, Expand):
                judged = judged.selectExpr("*", level.text)
                continue
            tried = f"__level{number}"
            judged = judged.withColumn(tried, try_all(session, dict(level)))
            names = [name for name, _ in level]
            judged = judged.select("*", *(F.col(f"{tried}.{name}").alias(name) for name in names))
            fails = fails | F.col(tried).isNull()
        if fold.values:
            # A record that WHERE fails on has no `__skip`, and nothing else is asked of it.
            values = {f"v{i}": text for i, text in enumerate(fold.values)}
            fails = fails | try_all(session, values).isNull()
        found = judged.where(fails).select("__row").toArrow()
    mask = np.zeros(rows.num_rows, dtype=bool)
    mask[found["__row"].to_numpy()] = True
    return mask


def try_all(session: SparkSession, expressions: Mapping[str, str]) -> Column:
    """Return a struct of expressions that is null where one of them fails."""
    fields = ", ".join(f"'{name}', {text}" for name, text in expressions.items())
    struct = F.expr(f"named_struct({fields})")
    catalyst = session._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    convert = catalyst.classic.ExpressionUtils
    tried = catalyst.catalyst.expressions.TryEval(convert.expression(struct._jc))
    return Column(convert.column(tried))


@contextmanager
def _without_sharing(session: SparkSession) -> Iterator[None]:
    session.conf.set(SHARING, "false")
    try:
        yield
    finally:
        session.conf.unset(SHARING)
