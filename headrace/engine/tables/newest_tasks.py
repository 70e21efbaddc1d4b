"""Tables in the long gear: tasks read, decode, stamp and fold their splits, each by itself.

Changes of a key are in one partition, so what the tasks make of their splits needs no shuffle: the
store merges it as it merges what turns make.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.engine.gears.computing import RowShape
from headrace.engine.gears.reading import Assignment, Batches, run_tasks
from headrace.engine.gears.splits import make_stamper
from headrace.engine.gears.stamping import Shaped, failure
from headrace.errors import LogError, Unreachable
from headrace.model.definitions import Stream
from headrace.model.table_views import together_columns
from headrace.operators.newest import Newest, fold_newest
from headrace.plan.spark.names import identifier
from headrace.plan.stages import Fold
from headrace.schema.codec import DELETED, UNSENT
from headrace.schema.formats import unsent_columns

__all__ = ["fold_changes", "newest_of"]

#: So many changes are folded together; a split may have any number of them.
_TOGETHER = 1_000_000


def newest_of(fold: Fold) -> Newest:
    """Return what a table's fold makes of changes."""
    stream, columns = fold.stream, fold.table.columns
    [newest] = [each for each in columns if each.name == fold.table.newest]
    [_, value] = newest.type.parts
    apart = unsent_columns(stream.encoding)
    members = zip(value.names, (DELETED, *together_columns(stream)), strict=True)
    return Newest(
        pa.schema([(each.name, each.type.arrow) for each in columns]),
        stream.primary_key,
        tuple(members),
        apart,
        UNSENT if apart else None,
    )


def fold_changes(session: SparkSession, fold: Fold, assignments: Sequence[Assignment]) -> pa.Table:
    """Return the delta of a table, and the summaries of the splits. What Spark raises passes."""
    newest = newest_of(fold)
    event_time = {fold.stream.event_time} if fold.stream.event_time else set()
    wanted = newest.reads | event_time
    columns = [f"{identifier(each.name)} {each.type.sql}" for each in fold.table.columns]
    schema = ", ".join([*columns, "__skip BOOLEAN", "__side BINARY"])
    work = partial(_fold_all, fold.stream, RowShape(fold.stream, wanted), newest)
    return run_tasks(session, fold.stream, assignments, wanted, work, schema).toArrow()


def _fold_all(
    stream: Stream,
    shape: Shaped,
    newest: Newest,
    _: int,
    assignment: Assignment,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    stamper = make_stamper(stream, assignment, shape)
    waiting: list[pa.RecordBatch] = []
    try:
        for records, decoded in batches:
            waiting.append(stamper.stamp(records, stamper.accept(records, decoded)))
            if sum(each.num_rows for each in waiting) >= _TOGETHER:
                yield _delta(newest, waiting)
                waiting = []
        if waiting:
            yield _delta(newest, waiting)
        side = stamper.summary().to_bytes()
    except (LogError, Unreachable) as error:
        side = failure(error)
    nulls = [pa.nulls(1, field.type) for field in newest.schema]
    last = [pa.nulls(1, pa.bool_()), pa.array([side], pa.binary())]
    yield pa.RecordBatch.from_arrays([*nulls, *last], schema=_with_side(newest.schema))


def _delta(newest: Newest, changes: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    folded = fold_newest(newest, pa.Table.from_batches(changes))
    own = [pa.repeat(pa.scalar(False), len(folded)), pa.nulls(len(folded), pa.binary())]
    return pa.RecordBatch.from_arrays([*folded.columns, *own], schema=_with_side(newest.schema))


def _with_side(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, ("__skip", pa.bool_()), ("__side", pa.binary())])
