"""Cut input into records, one per line, without a loop over lines.

Promises:
- A record is the bytes of its line, without its end: a newline, a carriage return and a newline, or
  the end of the input. Nothing else is added or taken away.
- Empty lines are no records. The last line needs no newline, and stays with those before it.
- What has arrived is handed on at once, so that a slow pipe is not held up.
- At most a chunk and one record are in memory. RecordTooLarge names the line, and everything
  before it was handed on.
"""

import io
import select
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.errors import RecordTooLarge
from headrace.log.base import MAX_RECORD_BYTES

__all__ = ["CHUNK_BYTES", "Lines", "Readable", "gather", "read_lines", "too_large"]

#: What is appended at once: each append to several partitions costs some 40 ms of syncs.
CHUNK_BYTES = 8 << 20


class Readable(Protocol):
    """Where bytes come from."""

    def read1(self, size: int, /) -> bytes:
        """Return what is there, at most `size`; wait if there is nothing, b"" at the end."""
        ...

    def fileno(self) -> int:
        """Return the descriptor to wait for. io.UnsupportedOperation: there is none."""
        ...


class Lines(NamedTuple):
    """Some records, and the numbers of their lines."""

    values: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    empty: int  # lines left out
    last: int  # the number of the last line, empty or not


def read_lines(stream: Readable, name: str) -> Iterator[Lines]:
    """Yield the records of a stream, in order."""
    rest = b""
    first_line = 1
    for chunk, ended in _chunks(stream):
        data = rest + chunk
        if ended and data and not data.endswith(b"\n"):
            data += b"\n"
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if end:
            yield from _cut(data[:end], name, first_line)
            first_line += data.count(b"\n", 0, end)
        if len(rest) > MAX_RECORD_BYTES + 1:  # a carriage return may be its last byte
            raise too_large(f"{name}:{first_line}", "this line")


def _chunks(stream: Readable) -> Iterator[tuple[bytes, bool]]:
    """Yield what has arrived, as much as a chunk takes, and whether it was the last."""
    ended = False
    while not ended:
        data, ended = gather(stream, CHUNK_BYTES)
        yield data, ended


def gather(stream: Readable, size: int) -> tuple[bytes, bool]:
    """Return what has arrived, at most `size`, and whether the stream is at its end."""
    parts: list[bytes] = []
    ended = False
    # The end of the input is ready too, so a file's last line is not left for another chunk.
    while size and not ended and (not parts or _is_ready(stream)):
        data = stream.read1(size)
        ended = not data
        parts.append(data)
        size -= len(data)
    return b"".join(parts), ended


def _is_ready(stream: Readable) -> bool:
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return True  # it is in memory
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _cut(data: bytes, name: str, first_line: int) -> Iterator[Lines]:
    raw = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(raw == ord("\n"))
    lengths = np.diff(newlines, prepend=-1) - 1
    returns = (lengths > 0) & (raw[newlines - 1] == ord("\r"))
    lengths -= returns
    large = np.flatnonzero(lengths > MAX_RECORD_BYTES)
    if len(large):
        lengths = lengths[: large[0]]
    # Without their ends the lines lie side by side, which is how Arrow keeps binary values.
    kept = np.ones(len(raw), dtype=bool)
    kept[newlines] = False
    kept[newlines[returns] - 1] = False
    content = raw[kept][: int(lengths.sum())]
    filled = np.flatnonzero(lengths)
    offsets = np.concatenate(([0], np.cumsum(lengths[filled]))).astype(np.int32)
    values = pa.BinaryArray.from_buffers(
        pa.binary(), len(filled), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    last = first_line + len(lengths) - 1
    yield Lines(values, first_line + filled, len(lengths) - len(filled), last)
    if len(large):
        raise too_large(f"{name}:{first_line + int(large[0])}", "this line")


def too_large(where: str, what: str) -> RecordTooLarge:
    """Return the error for a record over the limit."""
    return RecordTooLarge(
        f"{where}: {what} is over {MAX_RECORD_BYTES} bytes, the most a record may have. Store the "
        f"payload elsewhere, and append a reference to it."
    )
