"""Rows of CSV with a header as records: JSON objects by the names of the header, all of it text.

    InvoiceNo,Quantity,Note            {"InvoiceNo":"536365","Quantity":"6","Note":null}
    536365,6,                    ->

Promises:
- A cell is the text that stands there. Columns of numbers take numeric text, so no digit is lost.
- An empty cell is null, and `""` is the empty text. Quotes may hold commas and newlines.
- Empty lines are left out, unless there is one column: there such a line is an empty cell.
- A row with more or fewer cells than the header, and text that is not UTF-8, is refused with its
  place, and no row of its block is handed on.
- Without a comma, the header's cells are told apart by semicolons, tabs or bars, if it has some.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from headrace.cli.log.lines import CHUNK_BYTES, Lines, Readable, gather, too_large
from headrace.errors import UsageError
from headrace.log.base import MAX_RECORD_BYTES
from headrace.wording import counted

__all__ = ["read_rows", "split_header"]

_DELIMITERS = ",;\t|"
_SPECIAL = '["\\\\\x00-\x1f]'
# The backslash first, or it would escape what the others write.
_ESCAPES = [("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")]
_ESCAPES += [(chr(code), f"\\u{code:04x}") for code in range(32) if chr(code) not in "\n\r\t"]
_SHOWN_CHARACTERS = 60
# What Arrow says; it counts the header as a row.
_ROW = re.compile(r"Row #(\d+)")
_CELLS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def split_header(line: bytes) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, and its names. ValueError: not UTF-8, or no CSV."""
    text = line.decode().rstrip("\r\n")
    delimiter = next((each for each in _DELIMITERS if each in text), ",")
    try:
        names = next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return delimiter, names


def read_rows(stream: Readable, name: str, header: bytes) -> Iterator[Lines]:
    """Yield the rows of a stream that begins with its header; numbers are those of the rows."""
    delimiter, names = _check_header(name, header)
    reader = _open(stream, name, delimiter, names)
    row = 1
    while reader is not None:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowInvalid as error:
            raise _unreadable(name, row, error) from error
        values = _to_json(batch)
        large = np.flatnonzero(pc.binary_length(values).to_numpy() > MAX_RECORD_BYTES)
        if len(large):
            raise too_large(f"{name}, row {row + int(large[0])}", "this row as JSON")
        numbers = np.arange(row, row + len(values))
        row += len(values)
        if len(values):
            yield Lines(values, numbers, 0, row - 1)


def _check_header(name: str, header: bytes) -> tuple[str, list[str]]:
    try:
        delimiter, names = split_header(header)
    except ValueError as error:
        raise _unreadable(name, 0, error) from error
    for at, each in enumerate(names, 1):
        if not each.strip():
            raise UsageError(f"{name}:1: column {at} of the header has no name; give it one.")
        if names.index(each) < at - 1:
            raise UsageError(f"{name}:1: the header names {each!r} twice; rename one of the two.")
    if not names:
        raise UsageError(f"{name}: there is no header line, so the columns have no names.")
    return delimiter, names


def _open(stream: Readable, name: str, delimiter: str, names: list[str]) -> Any:
    try:
        return arrow_csv.open_csv(
            pa.PythonFile(_File(stream), "r"),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=CHUNK_BYTES),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if str(error).startswith("CSV parse error: Empty CSV file or block"):
            return None  # a header without a newline, and no rows
        raise _unreadable(name, 1, error) from error


class _File(io.RawIOBase):
    """A stream as Arrow asks for a file."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return gather(self._stream, size)[0]

    def readable(self) -> bool:
        return True


def _to_json(rows: pa.RecordBatch) -> pa.Array:
    """Return each row as the text of a JSON object."""
    parts: list[Any] = []
    for at, name in enumerate(rows.schema.names):
        parts.append(("," if at else "{") + json.dumps(name, ensure_ascii=False) + ":")
        quoted = pc.binary_join_element_wise('"', _escaped(rows.column(at)), '"', "")
        parts.append(pc.fill_null(quoted, "null"))
    return pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary())


def _escaped(cells: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(cells, _SPECIAL)).as_py():
        return cells
    for character, escape in _ESCAPES:
        if pc.any(pc.match_substring(cells, character)).as_py():
            cells = pc.replace_substring(cells, character, escape)
    return cells


def _unreadable(name: str, row: int, error: Exception) -> UsageError:
    """Return what is wrong with the CSV, found in the block that begins with a row."""
    text = str(error)
    if found := _CELLS.search(text):
        number, expected, actual, shown = found.groups()
        return UsageError(
            f"{name}: row {int(number) - 1} has {counted(int(actual), 'cell')}, and the header has "
            f"{expected}: {shown[:_SHOWN_CHARACTERS]!r}. Correct the row, or quote the cell that "
            f"holds the delimiter."
        )
    if "UTF8" in text or isinstance(error, UnicodeDecodeError):
        number = _ROW.search(text)
        where = f"row {int(number[1]) - 1}" if number else "the header"
        return UsageError(
            f"{name}: {where} is not UTF-8. Convert it, such as with "
            f"`iconv -f WINDOWS-1252 -t UTF-8`, or to append the lines as they are pass "
            f"--format lines."
        )
    return UsageError(
        f"{name}: the CSV cannot be read from row {row} on: {text}. Mend it, or to append the "
        f"lines as they are pass --format lines."
    )
