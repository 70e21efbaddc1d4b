"""Format `debezium`: change events of databases, with or without the schema part of an envelope.

- `c`, `r`, `u`: the row in `after` is the newest of its key. Where `before` has another key, the
  row of that key is gone: the record has a second row, which deletes it.
- `d`: the row is gone; its key is read from `before`, or from the record's key. `before` may hold
  nothing but the key, and placeholders: a row that leaves is known from the table.
- `t`: all rows of the partition are gone, those of earlier records (Operation.TRUNCATE).
- No value (a tombstone: its delete came before), and `m`, a message that is no change: ignored.

A value that did not change and was not sent leaves its column as it was (`UNSENT`). Everything else
is dead, with the reason. `decode_debezium` defines this, one record at a time; `fast` is for many.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.schema.codec import DELETED, UNSENT, Change, Encoding, Operation
from headrace.schema.debezium_values import Way, is_unsent, make_convert, way_of
from headrace.schema.json_places import show_place, steps_of
from headrace.schema.json_text import Dead, parse_object, show
from headrace.schema.json_values import Convert
from headrace.schema.record_keys import KeyDecoder
from headrace.schema.types import Column
from headrace.schema.upsert import key_columns

__all__ = [
    "BETWEEN",
    "OPENING",
    "OPERATIONS",
    "can_be_unsent",
    "cut_schema",
    "decode_debezium",
    "fields_of",
    "open_envelope",
    "ways_of",
]

#: What stands before the schema of an envelope, and between it and the envelope.
OPENING = b'{"schema":'
BETWEEN = b',"payload":'

OPERATIONS = {
    "c": Operation.UPSERT,
    "r": Operation.UPSERT,
    "u": Operation.UPSERT,
    "d": Operation.DELETE,
    "t": Operation.TRUNCATE,
    "m": Operation.IGNORE,
}
#: Parts of the schema: the fields of a row, by name.
Fields = Mapping[str, Mapping[str, Any]]


def can_be_unsent(column: Column) -> bool:
    """Whether a database may leave out the values of a column that did not change."""
    return column.type.kind in ("STRING", "BINARY", "ARRAY", "MAP", "STRUCT")


def decode_debezium(encoding: Encoding, key: bytes | None, value: bytes | None) -> Change:
    """Return what one record says, worked out in plain Python. Dead."""
    nothing: dict[str, object] = dict.fromkeys(column.name for column in encoding.columns)
    nothing |= {DELETED: None, UNSENT: None}
    if value is None:
        return Change(Operation.IGNORE, nothing)
    envelope, fields = open_envelope(parse_object(value))
    if envelope is None:
        return Change(Operation.IGNORE, nothing)
    operation = _operation(envelope)
    if operation is Operation.IGNORE:
        return Change(operation, nothing)
    _check_source(encoding, envelope.get("source"))
    if operation is Operation.TRUNCATE:
        return Change(operation, nothing)
    plan = _plan(encoding, json.dumps(fields, sort_keys=True))
    before = _part(envelope, "before")
    if operation is Operation.DELETE:
        found = _key(plan, before, "before")
        if found is None:
            names = KeyDecoder(key_columns(encoding), encoding.timestamp_format)
            found = names.strict(key)
        return Change(operation, nothing | found | {DELETED: True})
    after = _part(envelope, "after")
    if after is None:
        raise Dead(f"after is null, and op is {show(envelope['op'])}")
    row, unsent = _row(plan, after)
    moved = None
    old = _key(plan, before, "before")
    if old is not None and any(row[name] != each for name, each in old.items()):
        moved = nothing | old | {DELETED: True}
    return Change(operation, row | {DELETED: False, UNSENT: unsent or None}, moved)


class _Place(NamedTuple):
    """A column of a row: where it stands there, and how it is converted."""

    name: str
    steps: tuple[str | int, ...]
    label: str
    column: Column
    is_key: bool
    convert: Convert


@lru_cache(maxsize=64)
def _plan(encoding: Encoding, fields: str) -> tuple[_Place, ...]:
    ways = ways_of(encoding, json.loads(fields))
    return tuple(
        _Place(
            column.name,
            steps_of(column),
            show_place(steps_of(column)),
            column,
            column.name in encoding.key,
            make_convert(column.type, way),
        )
        for column, way in zip(encoding.columns, ways, strict=True)
    )


def ways_of(encoding: Encoding, fields: Fields | None) -> list[Way]:
    """Return how each column is written. Dead: a part of the schema is none."""
    return [
        way_of(
            column,
            None if fields is None else fields.get(str(steps_of(column)[0]), {}),
            encoding.timestamp_format,
            encoding.decimal_format,
        )
        for column in encoding.columns
    ]


def open_envelope(members: dict[str, object]) -> tuple[dict[str, object] | None, Fields | None]:
    """Return the envelope within a value, and the fields of its rows as the schema says them."""
    if "op" in members or "payload" not in members:
        return members, None
    payload = members["payload"]
    if payload is None:
        return None, None
    if not isinstance(payload, dict):
        raise Dead(f"payload is no envelope: {show(payload)}")
    return payload, fields_of(members.get("schema"))


def cut_schema(value: bytes) -> tuple[bytes, bytes]:
    """Return what stands before and behind the envelope: the schema, as Debezium writes it."""
    if not value.startswith(OPENING):
        return b"", b""
    try:
        _, end = json.JSONDecoder().raw_decode(value[len(OPENING) :].decode())
    except (ValueError, RecursionError):
        return b"", b""
    length = len(value[len(OPENING) :].decode()[:end].encode())
    prefix = value[: len(OPENING) + length + len(BETWEEN)]
    # Without white space, and nothing behind it: anything else is read strictly.
    return (prefix, b"}") if prefix.endswith(BETWEEN) and value.endswith(b"}}") else (b"", b"")


def fields_of(schema: object) -> Fields | None:
    """Return the fields of `after` in the schema of an envelope, by name; None: it has none."""
    for part in _fields(schema):
        if part.get("field") == "after":
            return {str(each.get("field")): each for each in _fields(part)}
    return None


def _fields(schema: object) -> Sequence[dict[str, Any]]:
    found = schema.get("fields") if isinstance(schema, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _operation(envelope: Mapping[str, object]) -> Operation:
    op = envelope.get("op")
    if op is None:
        raise Dead("no op: this is no change event of Debezium")
    if not isinstance(op, str) or op not in OPERATIONS:
        raise Dead(f"op {show(op)} is not known; it is one of {', '.join(OPERATIONS)}")
    return OPERATIONS[op]


def _check_source(encoding: Encoding, source: object) -> None:
    """Refuse a change of another table than the one that the definition names."""
    if encoding.source_table is None:
        return
    names = source if isinstance(source, dict) else {}
    table = names.get("table")
    within = names.get("schema") or names.get("db")
    if encoding.source_table not in (table, f"{within}.{table}"):
        found = "no table" if table is None else f"{within}.{table}"
        raise Dead(f"it is a change of {found}, not of {encoding.source_table}")


def _part(envelope: Mapping[str, object], name: str) -> dict[str, object] | None:
    part = envelope.get(name)
    if part is not None and not isinstance(part, dict):
        raise Dead(f"{name} is not an object: {show(part)}")
    return part


def _key(
    plan: Sequence[_Place], part: Mapping[str, object] | None, where: str
) -> dict[str, object] | None:
    """Return the key in a part of an envelope; None: it is not all there. Dead."""
    if part is None:
        return None
    found: dict[str, object] = {}
    for place in plan:
        if place.is_key:
            value = _at(part, place, where)
            if value is None:
                return None
            found[place.name] = _converted(place, value, where)
    return found


def _row(
    plan: Sequence[_Place], after: Mapping[str, object]
) -> tuple[dict[str, object], list[str]]:
    row: dict[str, object] = {}
    unsent: list[str] = []
    for place in plan:
        value = _at(after, place, "after")
        row[place.name] = None
        if value is None:
            if not place.column.nullable:
                problem = "is null" if place.steps[0] in after else "is missing"
                raise Dead(f"{problem}, and the column is NOT NULL", f"after.{place.label}")
        elif (
            not place.is_key and can_be_unsent(place.column) and is_unsent(value, place.column.type)
        ):
            unsent.append(place.name)
        else:
            row[place.name] = _converted(place, value, "after")
    return row, unsent


def _converted(place: _Place, value: object, where: str) -> object:
    try:
        return place.convert(value)
    except Dead as dead:
        raise dead.within(f"{where}.{place.label}") from None


def _at(part: Mapping[str, object], place: _Place, where: str) -> object:
    value: object = part
    for at, step in enumerate(place.steps):
        if value is None:
            return None
        if isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        elif isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        else:
            shown = show_place(place.steps[:at])
            raise Dead(f"{show(value)} at {shown} has no {step}", f"{where}.{place.label}")
    return value
