"""Cut a body into the texts of its records, each as it was sent.

Promises:
- Every text is one JSON object. It is not encoded anew: `12.50` stays `12.50`, `1e400` stays
  `1e400`.
- A body is cut as a whole or refused; the error names the first bad line or record, counted from 1.
- At most MAX_RECORDS, and the values of one record are in memory at a time.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from headrace.errors import RecordTooLarge, UsageError
from headrace.log.base import MAX_RECORD_BYTES

__all__ = [
    "MAX_RECORDS",
    "Cut",
    "Unread",
    "cut_json",
    "cut_lines",
    "refused",
    "scan",
    "show",
    "skip",
    "too_large",
]

#: Of one body: all of them are read before the first is stored.
MAX_RECORDS = 50_000

_SHOWN_CHARACTERS = 60
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_space = re.compile(r"[ \t\n\r]*").match


class Unread(Exception):
    """Why a text is not what it should be."""


class Cut(NamedTuple):
    """The records of a body, and what to call them: line 1, record 1."""

    texts: list[bytes]
    numbers: list[int]
    noun: str


def _refuse_constant(name: str) -> NoReturn:
    raise Unread(f"not JSON: {name} is not a JSON number")


# Numbers are not used, only their text is: and Python refuses an integer of 4,301 digits.
_decode_at = json.JSONDecoder(
    parse_int=float, parse_constant=_refuse_constant, strict=True
).raw_decode


def scan(text: str, at: int) -> tuple[Any, int]:
    """Return the JSON value that begins at an index, and the index of its end. Unread."""
    try:
        return _decode_at(text, at)
    except json.JSONDecodeError as error:
        raise Unread(show(text, error.pos)) from None
    except RecursionError:
        raise Unread("nested too deep") from None


def show(text: str, at: int) -> str:
    """Return what is wrong at an index."""
    rest = text[at : at + _SHOWN_CHARACTERS]
    if not rest:
        return "not JSON: it ends too soon"
    rest = rest.encode(errors="replace").decode()
    return f"not JSON: unexpected {rest!r} at character {at + 1}"


def skip(text: str, at: int) -> int:
    """Return the index of the next character that is no white space."""
    found = _space(text, at)
    assert found is not None, "it matches nothing at all, too"
    return found.end()


def refused(where: str, problem: object) -> UsageError:
    """Return the error for a body with a bad record."""
    return UsageError(f"{where}: {problem}. Nothing was appended; correct the body.")


def too_large(where: str, size: int) -> RecordTooLarge:
    """Return the error for a record over the limit."""
    return RecordTooLarge(
        f"{where}: {size} bytes of key, value and headers, {MAX_RECORD_BYTES} is the most a record "
        f"may have. Nothing was appended; store the payload elsewhere and append a reference to it."
    )


def cut_lines(body: bytes) -> Cut:
    """Return the records of JSON lines; empty lines are left out. UsageError, RecordTooLarge."""
    cut = Cut([], [], "line")
    number = 0
    body = body.removeprefix(_BYTE_ORDER_MARK)
    try:
        # A newline is one byte in UTF-8 and never part of another character.
        pairs = zip(_decode(body).split("\n"), body.split(b"\n"), strict=True)
        for number, (line, own) in enumerate(pairs, 1):
            # Most lines are an object and nothing else.
            at = 0 if line.startswith("{") else skip(line, 0)
            if at == len(line):
                continue
            end = _object_end(line, at)
            if end < len(line):
                _check_end(line, end)
                own = own.removesuffix(b"\r")
            _take(cut, own, number)
    except Unread as problem:
        raise refused(f"line {number}", problem) from None
    return cut


def cut_json(body: bytes) -> Cut:
    """Return the records of JSON: one object, or an array of them. UsageError, RecordTooLarge."""
    text = _decode(body.removeprefix(_BYTE_ORDER_MARK))
    cut = Cut([], [], "record")
    try:
        at = skip(text, 0)
        parts = _elements(text, at) if text.startswith("[", at) else _only(text, at)
        for number, (start, end) in enumerate(parts, 1):
            _take(cut, text[start:end].encode(), number)
    except Unread as problem:
        raise refused(f"record {len(cut.texts) + 1}", problem) from None
    return cut


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise refused(f"line {line}", f"not UTF-8 at byte {error.start} of the body") from None


def _take(cut: Cut, text: bytes, number: int) -> None:
    if len(text) > MAX_RECORD_BYTES:
        raise too_large(f"{cut.noun} {number}", len(text))
    if len(cut.texts) == MAX_RECORDS:
        raise RecordTooLarge(
            f"the body has more than {MAX_RECORDS:,} records, which is the most. Nothing was "
            f"appended; send them in several requests."
        )
    cut.texts.append(text)
    cut.numbers.append(number)


def _object_end(text: str, at: int) -> int:
    if not text.startswith("{", at):
        _, end = scan(text, at)
        shown = text[at : min(end, at + _SHOWN_CHARACTERS)]
        raise Unread(f"not a JSON object: {shown.encode(errors='replace').decode()}")
    _, end = scan(text, at)
    return end


def _only(text: str, at: int) -> Iterator[tuple[int, int]]:
    end = _object_end(text, at)
    if (rest := skip(text, end)) < len(text):
        raise Unread(f"{show(text, rest)}; JSON lines have the type application/x-ndjson")
    yield at, end


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    at = skip(text, at + 1)
    if text.startswith("]", at):
        at += 1
    else:
        while True:
            end = _object_end(text, at)
            yield at, end
            at = skip(text, end)
            if text.startswith("]", at):
                at += 1
                break
            if not text.startswith(",", at):
                raise Unread(show(text, at))
            at = skip(text, at + 1)
    _check_end(text, at)


def _check_end(text: str, at: int) -> None:
    if (rest := skip(text, at)) < len(text):
        raise Unread(show(text, rest))
