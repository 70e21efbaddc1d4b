"""The forms of an answer: Arrow, and rows as JSON or CSV, written batch by batch.

JSON is the rows alone, `[1,"a"],[2,"b"]`; who sends it puts the columns and the brackets around it.
It is made by the process that answers: a list of some megabytes takes hundreds as Python's objects.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import pyarrow as pa

from headrace.serve.http.values import answer_to_json

__all__ = ["Form", "csv_line", "encoded"]

_ROWS = 1_000  # that are Python's objects at once


class Form(StrEnum):
    """How an answer is written."""

    ARROW = "arrow"
    JSON = "json"
    CSV = "csv"


def encoded(
    form: Form, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[bytes | memoryview]:
    """Yield an answer in a form, piece by piece."""
    return _FORMS[form](schema, batches)


def _arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    sink = _Pieces()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
            yield from sink.take()
    yield from sink.take()


class _Pieces:
    """A file that hands on what was written to it."""

    closed = False

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, content: bytes) -> int:
        self._written.append(bytes(content))
        return len(content)

    def flush(self) -> None: ...

    def take(self) -> list[bytes]:
        written, self._written = self._written, []
        return written


def _json(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    before = ""
    for rows in _rows(schema, batches):
        text = json.dumps(rows, separators=(",", ":"))[1:-1]
        if text:
            yield f"{before}{text}".encode()
            before = ","


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    yield f"{csv_line(schema.names)}\n".encode()
    for rows in _rows(schema, batches):
        yield "".join(f"{csv_line(row)}\n" for row in rows).encode()


def _rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[list[list[object]]]:
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS):
            part = pa.Table.from_batches([batch.slice(start, _ROWS)], schema)
            yield answer_to_json(part)["rows"]


def csv_line(row: Iterable[object]) -> str:
    """Return a row as CSV: NULL is an empty cell, the empty text is `""`.

    So `headrace append` reads it back; the writer of Python 3.11 makes no difference of the two.
    """
    return ",".join(map(_csv_cell, row))


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    structured = isinstance(value, dict | list | bool)
    text = json.dumps(value, ensure_ascii=False) if structured else str(value)
    if text and not any(each in text for each in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


_FORMS: dict[
    Form, Callable[[pa.Schema, Iterable[pa.RecordBatch]], Iterator[bytes | memoryview]]
] = {
    Form.ARROW: _arrow,
    Form.JSON: _json,
    Form.CSV: _csv,
}
