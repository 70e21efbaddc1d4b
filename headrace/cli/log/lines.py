"""Cut input into records, one per line, without a loop over lines.

Promises:
- A record is the bytes of its line, without the newline; nothing else is added or taken away.
- Empty lines are no records. The last line needs no newline.
- Whatever has arrived is handed on at once, so that a slow pipe is not held up.
- At most a chunk and one record are in memory. RecordTooLarge names the line, and everything
  before it was handed on.
"""

import json
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from headrace.errors import RecordTooLarge
from headrace.log.base import MAX_RECORD_BYTES

__all__ = ["Lines", "field_keys", "read_lines"]

CHUNK_BYTES = 4 << 20


class Lines(NamedTuple):
    """Some records, and how many empty lines stood between them."""

    values: pa.BinaryArray
    empty: int


def read_lines(stream: BinaryIO, name: str) -> Iterator[Lines]:
    """Yield the records of a stream, in order."""
    rest = b""
    first_line = 1
    while True:
        # `read1` returns what is there; `read` would wait for a full chunk.
        chunk: bytes = getattr(stream, "read1", stream.read)(CHUNK_BYTES)
        data = rest + chunk if chunk or not rest else rest + b"\n"
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if end:
            yield from _cut(data[:end], name, first_line)
            first_line += data.count(b"\n", 0, end)
        if len(rest) > MAX_RECORD_BYTES:
            raise _too_large(name, first_line, "more than")
        if not chunk:
            return


def _cut(data: bytes, name: str, first_line: int) -> Iterator[Lines]:
    raw = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(raw == ord("\n"))
    lengths = np.diff(newlines, prepend=-1) - 1
    large = np.flatnonzero(lengths > MAX_RECORD_BYTES)
    if len(large):
        lengths = lengths[: large[0]]
    # Without their newlines the lines lie side by side, which is how Arrow keeps binary values.
    content = raw[raw != ord("\n")][: int(lengths.sum())]
    kept = lengths[lengths > 0]
    offsets = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)
    values = pa.BinaryArray.from_buffers(
        pa.binary(), len(kept), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    yield Lines(values, len(lengths) - len(kept))
    if len(large):
        raise _too_large(name, first_line + int(large[0]), "over")


def _too_large(name: str, line: int, how: str) -> RecordTooLarge:
    return RecordTooLarge(
        f"{name}:{line}: this line is {how} {MAX_RECORD_BYTES} bytes, the most a record may have. "
        f"The lines before it were appended; store the payload elsewhere and append a reference."
    )


def field_keys(values: pa.BinaryArray, name: str) -> pa.Array:
    """Return one field of each JSON object as its key; null where there is none to be read.

    A number is kept as it is written.
    """
    return pa.array([_field(value, name) for value in values.to_pylist()], pa.binary())


def _field(value: bytes, name: str) -> bytes | None:
    try:
        record = json.loads(value, parse_int=str, parse_float=str)
    except ValueError:
        return None
    found = record.get(name) if isinstance(record, dict) else None
    if isinstance(found, bool):
        return b"true" if found else b"false"
    return found.encode(errors="surrogatepass") if isinstance(found, str) else None
