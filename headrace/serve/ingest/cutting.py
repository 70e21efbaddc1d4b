"""Cut a body into the texts of its records, each as it was sent.

Promises:
- Every text is one JSON object. It is not encoded anew: `12.50` stays `12.50`, `1e400` stays
  `1e400`.
- A body is cut as a whole or refused; the error names the first bad line or record, counted from 1.
- At most MAX_RECORDS, or lines. The values that are parsed are thrown away, one record after the
  other.
- A value takes 22 times the memory of its text, if it is all `[]`. So neither a body of too many
  records nor a record that is too large is parsed as a whole.
"""

import json
import re
from collections.abc import Sequence
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
    "too_many",
]

#: Of one body: all of them are read before the first is stored.
MAX_RECORDS = 50_000

_SHOWN_CHARACTERS = 60
#: That are parsed of a text at once. The largest record fits wherever it begins in the first half.
_WINDOW_CHARACTERS = 2 * MAX_RECORD_BYTES
#: Of a literal or an escape that a window ends in, such as `-Infinity` or a pair of `\uXXXX`.
_CUT_CHARACTERS = 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_space = re.compile(r"[ \t\n\r]*").match


class Unread(Exception):
    """Why a text is not what it should be."""


class _TooLong(Exception):
    """A value has more characters than a record may have bytes."""


class Cut(NamedTuple):
    """The records of a body, and what to call them: line 1, record 1."""

    texts: list[bytes]
    numbers: Sequence[int]
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


def too_large(where: str, size: int | str) -> RecordTooLarge:
    """Return the error for a record over the limit."""
    return RecordTooLarge(
        f"{where}: {size} bytes of key, value and headers, {MAX_RECORD_BYTES} is the most a record "
        f"may have. Nothing was appended; store the payload elsewhere and append a reference to it."
    )


def too_many(count: str) -> RecordTooLarge:
    """Return the error for a body of too many records."""
    return RecordTooLarge(
        f"the body has {count}, {MAX_RECORDS:,} is the most. Nothing was appended; send them in "
        f"several requests."
    )


def cut_lines(body: bytes) -> Cut:
    """Return the records of JSON lines; empty lines are left out. UsageError, RecordTooLarge."""
    body = body.removeprefix(_BYTE_ORDER_MARK)
    count = body.count(b"\n") + (not body.endswith(b"\n"))
    if count > MAX_RECORDS:
        raise too_many(f"{count:,} lines")
    # A newline is one byte in UTF-8 and never part of another character.
    lines, own = _decode(body).split("\n"), body.split(b"\n")
    if not lines[-1]:
        del lines[-1], own[-1]
    if max(map(len, own), default=0) <= MAX_RECORD_BYTES and _are_objects(lines):
        return Cut(own, range(1, len(own) + 1), "line")
    texts: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        try:
            if (at := skip(line, 0)) < len(line):
                text = own[number - 1].removesuffix(b"\r")
                if len(text) > MAX_RECORD_BYTES:
                    raise too_large(f"line {number}", len(text))
                _check_end(line, _Objects(line).end(at))
                texts.append(text)
                numbers.append(number)
        except Unread as problem:
            raise refused(f"line {number}", problem) from None
    return Cut(texts, numbers, "line")


def _are_objects(lines: list[str]) -> bool:
    """Whether every line is an object and nothing else, which most are; found out in one go."""
    try:
        ends = [end for _, end in map(_decode_at, lines)]
    except (json.JSONDecodeError, RecursionError, Unread):
        return False
    return ends == list(map(len, lines)) and all(line[0] == "{" for line in lines)


def cut_json(body: bytes) -> Cut:
    """Return the records of JSON: one object, or an array of them. UsageError, RecordTooLarge."""
    text = _decode(body.removeprefix(_BYTE_ORDER_MARK))
    texts: list[bytes] = []
    try:
        at = skip(text, 0)
        if text.startswith("[", at):
            _cut_array(text, at, texts)
        else:
            end = _Objects(text).end(at)
            if (rest := skip(text, end)) < len(text):
                raise _more_than_one(text, rest)
            _add(texts, text[at:end])
    except Unread as problem:
        raise refused(f"record {len(texts) + 1}", problem) from None
    except _TooLong:
        size = f"more than {MAX_RECORD_BYTES}"
        raise too_large(f"record {len(texts) + 1}", size) from None
    return Cut(texts, range(1, len(texts) + 1), "record")


def _add(texts: list[bytes], text: str) -> None:
    """Add a record. RecordTooLarge: it is too large, or one too many."""
    if len(texts) == MAX_RECORDS:
        raise too_many(f"more than {MAX_RECORDS:,} records")
    encoded = text.encode()
    if len(encoded) > MAX_RECORD_BYTES:
        raise too_large(f"record {len(texts) + 1}", len(encoded))
    texts.append(encoded)


def _more_than_one(text: str, at: int) -> Unread:
    return Unread(f"{show(text, at)}; JSON lines have the type application/x-ndjson")


def _cut_array(text: str, at: int, texts: list[bytes]) -> None:
    """Add the elements of an array to `texts`; those before a bad one are there when it raises."""
    objects = _Objects(text)
    at = skip(text, at + 1)
    if not text.startswith("]", at):
        while True:
            end = objects.end(at)
            _add(texts, text[at:end])
            if text.startswith(",{", end):
                at = end + 1
                continue
            at = skip(text, end)
            if text.startswith("]", at):
                break
            if not text.startswith(",", at):
                raise Unread(show(text, at))
            at = skip(text, at + 1)
    _check_end(text, at + 1)


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise refused(f"line {line}", f"not UTF-8 at byte {error.start} of the body") from None


class _Objects:
    """Finds where the objects of a text end; to be asked from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._move(0)

    def _move(self, at: int) -> None:
        self._start = at
        self._window = self._text[at : at + _WINDOW_CHARACTERS]

    def end(self, at: int) -> int:
        """Return the index of the end of the object that begins at an index. Unread, _TooLong."""
        if at - self._start > _WINDOW_CHARACTERS - MAX_RECORD_BYTES:
            self._move(at)
        try:
            value, end = _decode_at(self._window, at - self._start)
        except json.JSONDecodeError as error:
            if not self._is_cut(error):
                raise Unread(show(self._text, self._start + error.pos)) from None
            if self._text.startswith("{", at):
                raise _TooLong from None
            end = len(self._window)
        except RecursionError:
            raise Unread("nested too deep") from None
        else:
            if isinstance(value, dict):
                return self._start + end
        shown = self._text[at : min(self._start + end, at + _SHOWN_CHARACTERS)]
        raise Unread(f"not a JSON object: {shown.encode(errors='replace').decode()}")

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether a value is not complete because the window ends, not because it is wrong."""
        if self._start + len(self._window) == len(self._text):
            return False
        at_the_end = error.pos >= len(self._window) - _CUT_CHARACTERS
        return at_the_end or error.msg.startswith("Unterminated string")


def _check_end(text: str, at: int) -> None:
    if (rest := skip(text, at)) < len(text):
        raise Unread(show(text, rest))
