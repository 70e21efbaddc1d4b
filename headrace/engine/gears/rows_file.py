"""A file that hands the rows of a turn to plans that Spark has made once.

Spark reads it with its own Parquet reader, in Java: a Python worker as the leaf of a plan would
add some 50 ms to every task. A plan remembers how long the file was when the plan was made, so the
length never changes: behind the columns is a hole, which takes no room on disk, and then the
footer, which says where the columns are.

Several plans read one file, each the columns that it needs. A file is lent to one turn at a time.
"""

import errno
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4
from weakref import finalize

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from headrace.errors import DiskFull, EngineError
from headrace.plan.spark.names import identifier
from headrace.schema.types import DataType

__all__ = ["RowsFile", "lend_file"]

# The rows of a short turn are at most 64 MiB as JSON.
_LENGTH_BYTES = 1 << 30
_FOOTER_END_BYTES = 8  # the length of the footer, and the format's name

# All of the file is for one task, whatever its length; and nothing in it is worth skipping.
_SETTINGS = {
    "spark.sql.files.maxPartitionBytes": str(_LENGTH_BYTES),
    "spark.sql.files.openCostInBytes": str(_LENGTH_BYTES),
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}


class RowsFile:
    """A file of rows, for plans of one task each."""

    def __init__(self) -> None:
        # Spark removes the folder when it ends, also when this process is killed.
        self._path = Path(SparkFiles.getRootDirectory()) / f"rows-{uuid4()}.parquet"
        self.clear()
        finalize(self, self._path.unlink, missing_ok=True)

    def frame(self, session: SparkSession, types: Mapping[str, DataType]) -> DataFrame:
        """Return columns of the rows that the file holds when the frame is run.

        The session's settings are changed, so it is one that is used for this alone.
        """
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        schema = ", ".join(f"{identifier(name)} {type.sql}" for name, type in types.items())
        # A URI, since Spark's default file system may be another one than this machine's.
        # One partition in Spark's eyes as well, so that it shuffles nothing.
        return session.read.schema(schema).parquet(self._path.as_uri()).coalesce(1)

    def write(self, rows: pa.Table) -> None:
        """Let the file hold these rows. DiskFull, EngineError."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            rows.schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            store_schema=False,
        ) as writer:
            writer.write_table(rows)
        data = memoryview(sink.getvalue())
        footer_length = int.from_bytes(data[-_FOOTER_END_BYTES:-4], "little") + _FOOTER_END_BYTES
        if len(data) > _LENGTH_BYTES:  # protects data, so not an assertion
            raise EngineError(
                f"the rows of a turn take {len(data):,} bytes, more than {_LENGTH_BYTES:,}. Set "
                f"`short_turn_bytes` under [engine] in headrace.toml to a smaller number. Nothing "
                f"is lost: the turn is taken again."
            )
        with self._told(), self._path.open("wb") as file:
            file.write(data[:-footer_length])
            file.seek(_LENGTH_BYTES - footer_length)
            file.write(data[-footer_length:])

    def clear(self) -> None:
        """Let the file hold nothing. EngineError."""
        with self._told(), self._path.open("wb") as file:
            os.truncate(file.fileno(), _LENGTH_BYTES)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = DiskFull if error.errno == errno.ENOSPC else EngineError
            raise kind(
                f"{self._path.parent}: the rows of a turn cannot be handed to Spark: {error}. Make "
                f"room there, or set `spark.local.dir` under [spark] in headrace.toml. Nothing is "
                f"lost: the turn is taken again."
            ) from error


_lock = threading.Lock()
_free: dict[tuple[str, str], list[RowsFile]] = {}  # by Spark's folder and stream


@contextmanager
def lend_file(stream: str) -> Iterator[RowsFile]:
    """Lend a file to a turn, the one that a stream of this name had last if it is free.

    The plans that were made over it can be used again then.
    """
    folder = SparkFiles.getRootDirectory()
    with _lock:
        for ended in [key for key in _free if key[0] != folder]:
            del _free[ended]  # their Spark has ended, and their folder with it
        free = _free.setdefault((folder, stream), [])
        file = free.pop() if free else None
    file = file or RowsFile()
    try:
        yield file
    finally:
        file.clear()
        with _lock:
            free.append(file)
