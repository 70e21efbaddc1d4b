"""The rows of a view at one commit, read at the store's speed and kept to be sent at a reader's.

A transaction that is open for long makes the store keep what others have replaced, so a slow reader
must not hold one. Rows are kept as Arrow, in memory while they are few and in a file without a name
beyond that; reading them takes one batch of memory at a time.
"""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO

import pyarrow as pa

from headrace.errors import QueryRefused
from headrace.serve.following.messages import snapshot_pages
from headrace.serve.following.shapes import Shape
from headrace.store.base import Snapshot

__all__ = ["Spool"]

_IN_MEMORY_BYTES = 4 << 20


class Spool:
    """All rows of a shape. QueryRefused: they are more than may be kept, or take too long."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: str,
        shape: Shape,
        *,
        page_bytes: int,
        max_bytes: int,
        max_seconds: float,
    ) -> None:
        self._file: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - `close`
        self.rows = 0
        try:
            batches = snapshot.keyed_batches(view, shape.selection, max_seconds=max_seconds)
            self._write(view, snapshot_pages(batches, page_bytes), max_bytes)
        except BaseException:
            self._file.close()
            raise

    def _write(self, view: str, pages: Iterator[pa.Table], max_bytes: int) -> None:
        writer, size = None, 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for page in pages:
            if writer is None:
                writer = pa.ipc.new_stream(self._file, page.schema, options=options)
            size += page.nbytes
            if size > max_bytes:
                raise QueryRefused(
                    f"view {view} has more rows than a subscriber is sent at once ({max_bytes} "
                    f"bytes). Choose rows with `where` or columns with `columns`; or begin without "
                    f"rows (snapshot=false) and read them from an export."
                )
            self.rows += page.num_rows
            writer.write_table(page)
        if writer is not None:
            writer.close()

    def pages(self) -> Iterator[pa.Table]:
        """Yield the rows, a message's worth at a time."""
        if self.rows:
            self._file.seek(0)
            with pa.ipc.open_stream(self._file) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])

    def close(self) -> None:
        """Forget the rows."""
        self._file.close()
