"""JSON text to plain values, strictly as RFC 8259 writes it, and back to text.

Promises:
- A number stays as it was written (`Number`), so nothing is rounded before its column is known.
- What is refused does not depend on the machine: nesting has a limit of its own, because Python's
  depends on how deep the caller's stack already is, and a lone surrogate has no UTF-8.
- Of a key that stands twice the last counts.
"""

import json
import re
from json.encoder import encode_basestring

__all__ = [
    "MAX_NESTING",
    "MAX_VALUE_BYTES",
    "Dead",
    "Number",
    "parse_object",
    "parse_text",
    "show",
    "write_text",
]

MAX_VALUE_BYTES = 1 << 20
MAX_NESTING = 128
SHOWN_CHARACTERS = 60

_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|([\[{])|([\]}])', re.DOTALL)


class Dead(Exception):
    """A record cannot be read as the schema says; `path` leads to the value within the record."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    @property
    def reason(self) -> str:
        """One short sentence for the dead-letter topic."""
        return f"{self.path}: {self.problem}" if self.path else self.problem

    def within(self, parent: str) -> "Dead":
        """Return the same problem as seen from one level further out."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return Dead(self.problem, f"{parent}{separator}{self.path}")


class Number(str):
    """A JSON number, as written."""

    __slots__ = ()


def parse_object(value: bytes | None) -> dict[str, object]:
    """Return the members of a record's JSON object. Dead: it is not one, or past a limit."""
    if value is None:
        raise Dead("no value")
    parsed = _parse(value)
    if type(parsed) is not dict:
        raise Dead(f"not a JSON object: {show(parsed)}")
    return parsed


def parse_text(value: bytes) -> str:
    """Return the text that a JSON value is. Dead: it is not one."""
    parsed = _parse(value)
    if type(parsed) is not str:
        raise Dead(f"not a JSON text: {show(parsed)}")
    return parsed


def _parse(value: bytes) -> object:
    if len(value) > MAX_VALUE_BYTES:
        raise Dead(f"the value has {len(value)} bytes; the limit is {MAX_VALUE_BYTES}")
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise Dead(f"not UTF-8 at byte {error.start}") from None
    if _is_nested_too_deep(value):
        raise Dead(f"nested more than {MAX_NESTING} deep")
    try:
        parsed: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Dead(_describe(text, error.pos)) from None
    if "\\u" in text and _has_lone_surrogate(parsed):
        raise Dead("not JSON: half of a surrogate pair stands alone")
    return parsed


def write_text(value: object) -> str:
    """Return a parsed value as compact JSON text, its numbers as written."""
    if type(value) is Number:
        return str(value)
    if type(value) is str:
        return encode_basestring(value)
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is list:
        return f"[{','.join(map(write_text, value))}]"
    assert type(value) is dict
    members = (f"{encode_basestring(name)}:{write_text(part)}" for name, part in value.items())
    return f"{{{','.join(members)}}}"


def show(value: object) -> str:
    """Return a value's JSON text for a message: cut, and always valid Unicode."""
    return _cut(write_text(value).encode(errors="replace").decode())


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."


def _describe(text: str, at: int) -> str:
    place = f"at byte {len(text[:at].encode())}"
    rest = text[at:]
    return f"not JSON: unexpected {_cut(rest)} {place}" if rest else f"not JSON: it ends {place}"


def _refuse_constant(name: str) -> None:
    raise Dead(f"not JSON: {name} is not a JSON number")


def _is_nested_too_deep(value: bytes) -> bool:
    if value.count(b"[") + value.count(b"{") <= MAX_NESTING:
        return False
    depth = 0
    for match in _BRACKET.finditer(value):
        if match.group(1):
            depth += 1
            if depth > MAX_NESTING:
                return True
        elif match.group(2):
            depth -= 1
    return False


def _has_lone_surrogate(value: object) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, list):
        return any(map(_has_lone_surrogate, value))
    if isinstance(value, dict):
        return any(map(_has_lone_surrogate, value)) or any(map(_has_lone_surrogate, value.values()))
    return False


_DECODER = json.JSONDecoder(
    parse_float=Number, parse_int=Number, parse_constant=_refuse_constant, strict=True
)
