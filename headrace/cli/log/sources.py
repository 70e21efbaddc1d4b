"""What `append` reads: a file or stdin, plain or gzip, lines or CSV with a header.

What it is follows from its first bytes and, for CSV, from its name (or --format). A byte order mark
of UTF-8 is left out. Other compressions and binary formats are refused with the command that makes
lines of them.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.cli.log.csv_rows import read_rows, split_header
from headrace.cli.log.lines import Lines, read_lines
from headrace.errors import UsageError
from headrace.log.base import MAX_RECORD_BYTES

__all__ = ["STDIN", "Source", "open_source"]

STDIN = "stdin"

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_REFUSED = {
    b"\xff\xfe": ("text in UTF-16", "iconv -f UTF-16 -t UTF-8 {}"),
    b"\xfe\xff": ("text in UTF-16", "iconv -f UTF-16 -t UTF-8 {}"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "zstd -dc {}"),
    b"BZh": ("compressed with bzip2", "bzip2 -dc {}"),
    b"\xfd7zXZ": ("compressed with xz", "xz -dc {}"),
    b"PK\x03\x04": ("a zip archive", "unzip -p {}"),
    b"PAR1": ("a Parquet file", "duckdb -c \"COPY '{}' TO '/dev/stdout' (FORMAT json)\""),
}
_LONGEST = 5
_TAR = slice(257, 262)


@dataclass(frozen=True)
class Source:
    """Records to append, and what to call them."""

    name: str
    noun: str  # line, or row of a CSV
    batches: Iterator[Lines]


class _Peeked:
    """A stream whose first bytes were looked at."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._head = b""

    def peek(self, size: int) -> bytes:
        """Return the first bytes, `size` at least if there are as many."""
        while len(self._head) < size and (data := self._stream.read1(1 << 16)):
            self._head += data
        return self._head

    def peek_line(self, most: int) -> bytes:
        """Return the first line, or as much of it as `most`."""
        size = 1
        while b"\n" not in self.peek(size) and len(self._head) >= size and size <= most:
            size = len(self._head) + 1
        return self._head.partition(b"\n")[0]

    def skip(self, size: int) -> None:
        self._head = self._head[size:]

    def read1(self, size: int = -1) -> bytes:
        if not self._head:
            data: bytes = self._stream.read1(size)
            return data
        size = len(self._head) if size < 0 else size
        data, self._head = self._head[:size], self._head[size:]
        return data

    read = read1  # as gzip calls it, which takes less than it asked for

    def fileno(self) -> int:
        if self._head:
            raise io.UnsupportedOperation("there is something to read")
        number: int = self._stream.fileno()
        return number


@contextmanager
def open_source(
    file: str, *, format: str = "auto", topic: str, fields: Collection[str] = ()
) -> Iterator[Source]:
    """Open what is to be appended; `fields` are the keys that streams of the topic read.

    UsageError: it cannot be read, or not as the format says; then, or while it is read.
    """
    name = STDIN if file == "-" else file
    with ExitStack() as opened:
        try:
            stream = (
                sys.stdin.buffer if file == "-" else opened.enter_context(Path(file).open("rb"))
            )
            peeked = _Peeked(stream)
            first = peeked.peek(1)[:1]
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
        if first == _GZIP[:1] and peeked.peek(2).startswith(_GZIP):
            unpacked = opened.enter_context(gzip.GzipFile(fileobj=peeked, mode="rb"))  # type: ignore[call-overload]
            peeked = _Peeked(unpacked)
            with _reading(name):
                first = peeked.peek(1)[:1]
        with _reading(name):
            _refuse_binary(peeked, first, name, topic)
            if first == _MARK[:1] and peeked.peek(len(_MARK)).startswith(_MARK):
                peeked.skip(len(_MARK))
            is_csv = format == "csv" or (format == "auto" and _is_named_csv(name))
            if is_csv or (format == "auto" and fields and peeked.peek(1)[:1] not in (b"{", b"")):
                header = peeked.peek_line(MAX_RECORD_BYTES)
                _check_header(header, name, fields, is_csv=is_csv)
        batches = read_rows(peeked, name, header) if is_csv else read_lines(peeked, name)
        yield Source(name, "row" if is_csv else "line", _told(batches, name))


def _told(batches: Iterator[Lines], name: str) -> Iterator[Lines]:
    with _reading(name):
        yield from batches


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(
            f"{name}: what was compressed with gzip is damaged or cut off ({error}). Get the file "
            f"again."
        ) from error
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror or error}") from error


def _is_named_csv(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _refuse_binary(peeked: _Peeked, first: bytes, name: str, topic: str) -> None:
    if any(magic.startswith(first) for magic in _REFUSED) and first:
        head = peeked.peek(_LONGEST)
        for magic, (what, command) in _REFUSED.items():
            if head.startswith(magic):
                raise UsageError(
                    f"{name}: this is {what}, not lines of text. Append what "
                    f"`{command.format(name)} | headrace append {topic}` makes of it."
                )
    if peeked.peek(1)[_TAR] == b"ustar":
        raise UsageError(
            f"{name}: this is a tar archive, not lines of text. Take its files out with "
            f"`tar -xf {name}` and append them one by one."
        )


def _check_header(header: bytes, name: str, fields: Collection[str], *, is_csv: bool) -> None:
    """Refuse a CSV without the columns that streams read, and lines that look like one with."""
    try:
        names = set(split_header(header)[1])
    except ValueError:
        names = set()
    if is_csv and fields and names and names.isdisjoint(fields):
        raise UsageError(
            f"{name}:1: the header has none of the fields that streams of the topic read "
            f"({', '.join(sorted(fields))}). If the file has no header line, write one; to append "
            f"the lines as they are, pass --format lines."
        )
    if not is_csv and len(names) > 1 and not names.isdisjoint(fields):
        raise UsageError(
            f"{name}:1: this looks like the header of a CSV file, and a stream reads the topic as "
            f"JSON. Pass --format csv to append each row as a JSON object, or --format lines to "
            f"append the lines as they are."
        )
