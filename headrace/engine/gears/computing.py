"""Columns that a record is read with, and that Spark computes: a computed event time or unique id.

They are computed after decoding and before stamping, by the same expressions in both gears: in the
driver over the decoded rows of a short turn, with a plan that is made once; in a long turn between
the task that decodes a split and the one that stamps it, in one pass over it (splits.py).

Promise: a record on which one of them fails, or is null, is dead for the stream, and no other is.
The reason is a function of the record alone, so it is the same in both gears and for every cut.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headrace.engine.gears.frames import make_frame
from headrace.engine.gears.prepared import Prepared, can_prepare
from headrace.engine.gears.probing import SHARING, try_all
from headrace.engine.gears.rows_file import RowsFile
from headrace.engine.spark.errors import SPARK_ERRORS, explain
from headrace.errors import EngineError
from headrace.model.definitions import Computed, Stream
from headrace.plan.spark.names import text_of
from headrace.schema.codec import Decoded
from headrace.schema.formats import make_codec
from headrace.schema.json_text import show

__all__ = ["ComputingDecoder", "RowShape", "compute", "include", "sources"]


def sources(stream: Stream, wanted: Collection[str]) -> frozenset[str]:
    """Return the columns to decode where these are wanted, some of which may be computed."""
    eager = {each.name for each in stream.eager}
    read = (name for each in stream.eager for name in each.scalar.refs)
    return frozenset(wanted) - eager | frozenset(read)


class RowShape:
    """Which columns the rows of a stream have where some are wanted; picklable."""

    def __init__(self, stream: Stream, wanted: Collection[str]) -> None:
        self.wanted = frozenset(wanted) | {each.name for each in stream.eager}
        kept = [column for column in stream.scanned if column.name in self.wanted]
        kept = kept or list(stream.columns[:1])  # as a decoder does
        self.schema = pa.schema([(column.name, column.type.arrow) for column in kept])


class ComputingDecoder:
    """Decodes as another codec does, and lets Spark compute. For one thread, in the driver."""

    def __init__(self, stream: Stream, wanted: Collection[str], spark: SparkSession) -> None:
        self._stream = stream
        self._shape = RowShape(stream, wanted)
        self.schema, self.wanted = self._shape.schema, self._shape.wanted
        self._decoder = make_codec(stream.encoding, sources(stream, wanted))
        self.reads = self._decoder.reads
        self._session = spark.newSession()
        self._file = RowsFile() if can_prepare(spark) else None
        self._plan: Prepared | None = None

    def decode(self, records: pa.Table) -> Decoded:
        """Return one row for every record, in order. EngineError, DiskFull."""
        decoded = self._decoder.decode(records)
        rows = pa.Table.from_batches([decoded.rows])
        if rows.num_rows > len(decoded.dead):
            try:
                made = self._compute(rows)
            except SPARK_ERRORS as error:
                raise EngineError(
                    f"stream {self._stream.name}: computing its columns fails in Spark: "
                    f"{explain(error).sentence}. The turn is not committed, and nothing is lost. "
                    f"Run again; should it fail again, mend the expression."
                ) from error
            if made.num_rows != rows.num_rows:  # protects data, so not an assertion
                raise RuntimeError(f"Spark made {made.num_rows} rows of {rows.num_rows} records")
        else:
            stream = self._stream
            nulls = {
                _tried(stream, each): pa.nulls(rows.num_rows, _type(each)) for each in stream.eager
            }
            made = pa.table(nulls)
        for name in made.column_names:
            rows = rows.append_column(name, made[name])
        return include(self._stream, self._shape, rows, decoded)

    def _compute(self, rows: pa.Table) -> pa.Table:
        stream = self._stream
        made = [_tried(stream, each) for each in stream.eager]
        if self._file is None:
            frame = compute(self._session, self._stream, make_frame(self._session, rows))
            return frame.select(*made).toArrow()
        if self._plan is None:
            every = {column.name: column.type for column in stream.columns}
            types = {name: every[name] for name in rows.column_names}
            frame = compute(self._session, stream, self._file.frame(self._session, types))
            self._plan = Prepared(frame.select(*made))
        self._file.write(rows)
        try:
            return self._plan.run()
        finally:
            self._file.clear()


def compute(session: SparkSession, stream: Stream, frame: DataFrame) -> DataFrame:
    """Return a frame of decoded rows with what Spark computes of them, for `include`."""
    # See probing.py; it holds for whatever the session runs.
    session.conf.set(SHARING, "false")
    columns = {
        _tried(stream, each): try_all(session, {"value": text_of(each.scalar)})
        for each in stream.eager
    }
    return frame.withColumns(columns)


def include(stream: Stream, shape: RowShape, rows: pa.Table, decoded: Decoded) -> Decoded:
    """Return rows that `compute` made as those of the stream; `decoded` says which were dead."""
    arrays: dict[str, pa.Array] = {}
    judged = np.zeros(rows.num_rows, dtype=bool)
    judged[decoded.dead.to_numpy()] = True
    found: list[tuple[np.ndarray, Computed, bool]] = []
    for each in stream.eager:
        tried = _whole(rows[_tried(stream, each)])
        arrays[each.name] = pc.struct_field(tried, [0])
        for array, fails in ((tried, True), (arrays[each.name], False)):
            missing = pc.is_null(array).to_numpy(zero_copy_only=False) & ~judged
            judged |= missing
            found.append((np.flatnonzero(missing), each, fails))
    for indices, each, fails in found:
        if len(indices):
            inputs = rows.select(each.scalar.refs).take(pa.array(indices)).to_pylist()
            decoded = decoded.bury(indices, [_reason(stream, each, row, fails) for row in inputs])
    columns = [
        arrays[name] if name in arrays else _whole(rows[name]) for name in shape.schema.names
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=shape.schema)
    return Decoded(batch, decoded.dead, decoded.reasons)


def _tried(stream: Stream, computed: Computed) -> str:
    return f"__tried_{stream.eager.index(computed)}"


def _type(computed: Computed) -> pa.DataType:
    assert computed.type is not None
    return pa.struct([("value", computed.type.arrow)])


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _reason(stream: Stream, computed: Computed, row: dict[str, object], fails: bool) -> str:
    """Return why a record is dead that a column cannot be computed of."""
    role = "the event time" if computed.name == stream.event_time else "the unique id"
    inputs = " and ".join(f"{name} = {_show(value)}" for name, value in row.items())
    where = f" where {inputs}" if inputs else ""
    if fails:
        return f"{computed.name}: {text_of(computed.scalar)} fails{where}"
    return f"{computed.name}: {role} is null{where}"


def _show(value: object) -> str:
    return show(value) if value is None or isinstance(value, str) else show(str(value)).strip('"')
