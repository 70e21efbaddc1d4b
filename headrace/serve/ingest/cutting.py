"""Cut a body into the texts of its records, each as it was sent.

Promises:
- Every text is one JSON object. It is not encoded anew: `12.50` stays `12.50`, `1e400` stays
  `1e400`.
- A body is cut as a whole or refused; the error names the first bad line or record, counted from 1.
- At most MAX_RECORDS. The values that are parsed are thrown away, one record after the other.
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


def too_large(where: str, size: int) -> RecordTooLarge:
    """Return the error for a record over the limit."""
    return RecordTooLarge(
        f"{where}: {size} bytes of key, value and headers, {MAX_RECORD_BYTES} is the most a record "
        f"may have. Nothing was appended; store the payload elsewhere and append a reference to it."
    )


def cut_lines(body: bytes) -> Cut:
    """Return the records of JSON lines; empty lines are left out. UsageError, RecordTooLarge."""
    body = body.removeprefix(_BYTE_ORDER_MARK)
    # A newline is one byte in UTF-8 and never part of another character.
    lines, own = _decode(body).split("\n"), body.split(b"\n")
    if not lines[-1]:
        del lines[-1], own[-1]
    if _are_objects(lines):
        return _checked(Cut(own, range(1, len(own) + 1), "line"))
    texts: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        try:
            if (at := skip(line, 0)) < len(line):
                _check_end(line, _object_end(line, at))
                texts.append(own[number - 1].removesuffix(b"\r"))
                numbers.append(number)
        except Unread as problem:
            raise refused(f"line {number}", problem) from None
    return _checked(Cut(texts, numbers, "line"))


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
            end = _object_end(text, at)
            if (rest := skip(text, end)) < len(text):
                raise _more_than_one(text, rest)
            texts.append(text[at:end].encode())
    except Unread as problem:
        raise refused(f"record {len(texts) + 1}", problem) from None
    return _checked(Cut(texts, range(1, len(texts) + 1), "record"))


def _more_than_one(text: str, at: int) -> Unread:
    return Unread(f"{show(text, at)}; JSON lines have the type application/x-ndjson")


def _cut_array(text: str, at: int, texts: list[bytes]) -> None:
    """Add the elements of an array to `texts`; those before a bad one are there when it raises."""
    at = skip(text, at + 1)
    if not text.startswith("]", at):
        while True:
            end = _object_end(text, at)
            texts.append(text[at:end].encode())
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


def _checked(cut: Cut) -> Cut:
    if len(cut.texts) > MAX_RECORDS:
        raise RecordTooLarge(
            f"the body has {len(cut.texts):,} records, {MAX_RECORDS:,} is the most. Nothing was "
            f"appended; send them in several requests."
        )
    if cut.texts and max(map(len, cut.texts)) > MAX_RECORD_BYTES:
        for text, number in zip(cut.texts, cut.numbers, strict=True):
            if len(text) > MAX_RECORD_BYTES:
                raise too_large(f"{cut.noun} {number}", len(text))
    return cut


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise refused(f"line {line}", f"not UTF-8 at byte {error.start} of the body") from None


def _object_end(text: str, at: int) -> int:
    if not text.startswith("{", at):
        _, end = scan(text, at)
        shown = text[at : min(end, at + _SHOWN_CHARACTERS)]
        raise Unread(f"not a JSON object: {shown.encode(errors='replace').decode()}")
    _, end = scan(text, at)
    return end


def _check_end(text: str, at: int) -> None:
    if (rest := skip(text, at)) < len(text):
        raise Unread(show(text, rest))
