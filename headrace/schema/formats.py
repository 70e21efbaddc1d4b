"""The formats of records: the one place that makes a codec of what a definition says."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from headrace.schema.codec import (
    CHANGE_COLUMNS,
    DELETED,
    UNSENT,
    Change,
    Codec,
    Encoding,
    Operation,
)
from headrace.schema.debezium import can_be_unsent, decode_debezium
from headrace.schema.debezium_events import EventCodec, decode_event
from headrace.schema.debezium_fast import DebeziumCodec
from headrace.schema.json import JsonCodec
from headrace.schema.json_strict import decode_strict
from headrace.schema.types import Column
from headrace.schema.upsert import UpsertCodec, decode_upsert

__all__ = [
    "STREAM_FORMATS",
    "TABLE_FORMATS",
    "change_columns",
    "counted_operations",
    "decode_record",
    "make_codec",
    "unsent_columns",
]


class _Format(NamedTuple):
    codec: Callable[[Encoding, Collection[str] | None], Codec]
    strict: Callable[[Encoding, bytes | None, bytes | None], Change]


def _decode_json(encoding: Encoding, _: bytes | None, value: bytes | None) -> Change:
    values = decode_strict(encoding.columns, value, encoding.timestamp_format)
    return Change(Operation.APPEND, values)


_FORMATS = {
    "json": _Format(JsonCodec, _decode_json),
    "upsert": _Format(UpsertCodec, decode_upsert),
    "debezium": _Format(DebeziumCodec, decode_debezium),
}
#: A stream of change events: each is a record, and no row is the newest.
_EVENTS = _Format(EventCodec, decode_event)
#: What WITH (format = '...') may say of a stream, and of a table.
STREAM_FORMATS = ("json", "debezium")
TABLE_FORMATS = ("upsert", "debezium")


def change_columns(encoding: Encoding) -> tuple[Column, ...]:
    """Return the columns that rows of changes have besides those that are declared."""
    names = [DELETED] if encoding.key else []
    names += [UNSENT] if encoding.format == "debezium" and names else []
    return tuple(Column(name, CHANGE_COLUMNS[name]) for name in names)


def unsent_columns(encoding: Encoding) -> tuple[str, ...]:
    """Return the columns whose values a change may leave as they were."""
    if encoding.format != "debezium":
        return ()
    return tuple(
        each.name
        for each in encoding.columns
        if each.name not in encoding.key and can_be_unsent(each)
    )


def counted_operations(encoding: Encoding) -> tuple[Operation, ...]:
    """Return the operations that are counted of records, besides that they are readable."""
    if encoding.key:
        return (Operation.UPSERT, Operation.DELETE, Operation.TRUNCATE, Operation.IGNORE)
    return (Operation.IGNORE,) if encoding.format == "debezium" else ()


def make_codec(encoding: Encoding, wanted: Collection[str] | None = None) -> Codec:
    """Return the codec of an encoding that gives the wanted columns, or all."""
    return _format(encoding).codec(encoding, wanted)


def decode_record(encoding: Encoding, key: bytes | None, value: bytes | None) -> Change:
    """Return what one record says, worked out in plain Python: what decoding means. Dead."""
    return _format(encoding).strict(encoding, key, value)


def _format(encoding: Encoding) -> _Format:
    if encoding.format == "debezium" and not encoding.key:
        return _EVENTS
    return _FORMATS[encoding.format]
