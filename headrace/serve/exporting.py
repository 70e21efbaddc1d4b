"""Write all rows of a view at one commit: a stream of Arrow, in batches.

The schema's metadata says what was written: `headrace.view`, `headrace.commit` and
`headrace.position`, as text.
"""

from typing import BinaryIO

import pyarrow as pa

from headrace.errors import QueryRefused
from headrace.serve.missing import explain_missing
from headrace.serve.queries.positions import of_table, position_text, read_positions
from headrace.store.base import Snapshot

__all__ = ["COMMIT", "POSITION", "VIEW", "write_view"]

VIEW = b"headrace.view"
COMMIT = b"headrace.commit"
POSITION = b"headrace.position"


def write_view(snapshot: Snapshot, sink: BinaryIO, view: str) -> None:
    """Write the rows of a view, or of its errors. QueryRefused: there is none. StoreError."""
    found = [each for each in snapshot.public_tables() if each.name.lower() == view.lower()]
    if not found:
        raise QueryRefused(explain_missing(view, snapshot))
    table = found[0]
    positions = read_positions(snapshot, snapshot.shown())
    metadata = {
        VIEW: table.name.encode(),
        COMMIT: str(snapshot.commits()).encode(),
        POSITION: position_text(of_table(table.name, positions)).encode(),
    }
    with (
        snapshot.public_rows(table.name, [column.name for column in table.columns]) as rows,
        pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata)) as stream,
    ):
        for batch in rows.batches:
            stream.write_batch(batch)
