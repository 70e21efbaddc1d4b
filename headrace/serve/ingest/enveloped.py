"""Envelopes: `{"key": text, "value": {...}, "headers": {name: text}}` around each record.

Promises:
- The value is stored as its text stands in the envelope; `null` is a record without a value, which
  deletes what its key stands for.
- A key that is missing is read from the value, as without an envelope; one that is null is none.
- `"delete": true` deletes the row of a table whose primary key the value has.
"""

from typing import Any, NamedTuple

from headrace.serve.ingest.cutting import Cut, Unread, refused, scan, show, skip

__all__ = ["Opened", "open_envelopes"]

_MEMBERS = ("key", "value", "headers", "delete")


class Opened(NamedTuple):
    """What envelopes hold; `keyed` tells which name their key, `gone` which delete a row."""

    keys: list[bytes | None]
    keyed: list[bool]
    values: list[bytes | None]
    headers: list[list[dict[str, Any]] | None]
    gone: list[bool]


def open_envelopes(cut: Cut) -> Opened:
    """Return what the envelopes of a body hold. UsageError names the first that is none."""
    opened = Opened([], [], [], [], [])
    for text, number in zip(cut.texts, cut.numbers, strict=True):
        try:
            _open(text.decode(), opened)
        except Unread as problem:
            raise refused(f"{cut.noun} {number}", problem) from None
    return opened


def _open(text: str, opened: Opened) -> None:
    members = _members(text)
    if "value" not in members:
        raise Unread('an envelope has a "value"; without envelope=true a record is sent as it is')
    value, start, end = members["value"]
    if value is not None and not isinstance(value, dict):
        raise Unread('"value" is neither an object nor null')
    key = members["key"][0] if "key" in members else None
    if key is not None and not isinstance(key, str):
        raise Unread('"key" is neither text nor null')
    headers = members["headers"][0] if "headers" in members else None
    delete = members["delete"][0] if "delete" in members else False
    if not isinstance(delete, bool):
        raise Unread('"delete" is neither true nor false')
    if delete and value is None:
        raise Unread('to delete a row, write its primary key as "value"')
    opened.gone.append(delete)
    opened.keys.append(None if key is None else _encode(key, "key"))
    opened.keyed.append("key" in members)
    opened.values.append(None if value is None else text[start:end].encode())
    opened.headers.append(_headers(headers))


def _members(text: str) -> dict[str, tuple[Any, int, int]]:
    """Return the members of an object that is known to be one: value, and where its text is."""
    found: dict[str, tuple[Any, int, int]] = {}
    at = skip(text, skip(text, 0) + 1)
    while text[at] != "}":
        name, at = scan(text, at)
        if name not in _MEMBERS:
            raise Unread(
                f"an envelope has no member {name!r:.60}; it has key, value, headers, delete"
            )
        if name in found:
            raise Unread(f"the envelope has {name!r} twice")
        start = skip(text, skip(text, at) + 1)
        value, end = scan(text, start)
        found[name] = (value, start, end)
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)
        elif text[at] != "}":
            raise Unread(show(text, at))
    return found


def _headers(headers: object) -> list[dict[str, Any]] | None:
    if headers is None:
        return None
    if not isinstance(headers, dict):
        raise Unread('"headers" is not an object of texts')
    found = []
    for name, value in headers.items():
        if value is not None and not isinstance(value, str):
            raise Unread(f"the header {name!r:.60} is neither text nor null")
        _encode(name, "header")
        found.append({"name": name, "value": None if value is None else _encode(value, "header")})
    return found


def _encode(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Unread(f"half of a surrogate pair stands alone in a {what}") from None
