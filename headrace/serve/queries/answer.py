"""The answer to a query: bytes of a form, and the commit and positions that it was read at."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

import pyarrow as pa

from headrace.serve.queries.forms import Form

__all__ = ["Answer"]

_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Answer:
    """An answer that is complete. Read it once and close it: its bytes are in a file.

    `positions` are those of the tables that the query names, `position` is how far all of them are.
    `rows` counts them, `columns` has their names and types.
    """

    form: Form
    columns: Sequence[Mapping[str, str]]
    rows: int
    commit: int
    positions: Mapping[str, str]
    position: str
    milliseconds: float
    content_bytes: int
    file: BinaryIO

    def __enter__(self) -> "Answer":
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield the content piece by piece, then close the answer."""
        with self:
            self.file.seek(0)
            while chunk := self.file.read(_CHUNK_BYTES):
                yield chunk

    def json_chunks(self) -> Iterator[bytes]:
        """Yield the whole answer as one JSON object, then close it. The form is JSON."""
        assert self.form is Form.JSON
        before: dict[str, Any] = {
            "columns": list(self.columns),
            "commit": self.commit,
            "positions": dict(self.positions),
            "truncated": False,
            "milliseconds": round(self.milliseconds, 3),
        }
        yield json.dumps(before)[:-1].encode() + b', "rows": ['
        yield from self.chunks()
        yield b"]}"

    def table(self) -> pa.Table:
        """Return the content as a table, and close the answer. The form is Arrow."""
        assert self.form is Form.ARROW
        with self:
            self.file.seek(0)
            return pa.ipc.open_stream(self.file).read_all()

    def close(self) -> None:
        """Free the answer."""
        self.file.close()
