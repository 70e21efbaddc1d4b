"""Which key a record has: read out of its value, as the streams of its topic declare.

A stream declares its key with `key = 'column'`; a stream that has a unique id and no key is keyed
by the id, because duplicates are found within a partition. So is a record without the declared key,
if its stream has a unique id: else its copies would be spread over the partitions.

Promises:
- Equal values of the key's column have equal keys: of STRING, BOOLEAN, whole numbers and DECIMAL
  the key is the text of the value as the column reads it, so `12`, `12.0` and `"12"` are one key of
  a BIGINT. Of other types it is the text that stands in the record.
- A record without a readable value there, nor a unique id, has no key: null.
- A topic of a table has the table's primary key, as a JSON object (row_keys.py).
- No Python per record where the decoder needs none (schema/json_fast.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import UsageError
from headrace.model.definitions import Stream
from headrace.project.row_keys import READ_AS_VALUES, RowKeyReader
from headrace.schema.codec import Encoding
from headrace.schema.formats import make_codec
from headrace.schema.json_places import parse_place, show_place, steps_of
from headrace.schema.types import Column, parse_type

__all__ = ["KeyReader", "declared_key", "declared_keys", "field_key"]

_TEXT = parse_type("STRING")


class KeyReader:
    """Reads one place of JSON records as their key; `fallback` reads those without a value there.

    To be used by one thread at a time.
    """

    deletes = False

    def __init__(self, column: Column, fallback: "KeyReader | None" = None) -> None:
        typed = column if column.type.kind in READ_AS_VALUES else replace(column, type=_TEXT)
        self._column = replace(typed, nullable=True, format=None)
        self._codec = make_codec(Encoding("json", (self._column,)))
        self.fallback = fallback

    @property
    def place(self) -> str:
        """The place in the record, as FROM and --key-field name it."""
        return show_place(steps_of(self._column))

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the key of each record, in order; null where there is none to be read."""
        (found,) = self._codec.decode(pa.table({"value": values})).rows.columns
        keys = found.cast(pa.string()).cast(pa.binary())
        if self.fallback is None or not keys.null_count:
            return keys
        missing = keys.is_null()
        return pc.replace_with_mask(keys, missing, self.fallback(values.filter(missing)))

    def reads_same(self, other: "KeyReader") -> bool:
        """Whether both read the same place in the same way; fallbacks are not compared."""
        mine, theirs = self._column, other._column
        return (steps_of(mine), mine.type) == (steps_of(theirs), theirs.type)


def field_key(text: str) -> KeyReader:
    """Return what reads the key from a place that a user names. UsageError: it is none."""
    try:
        path = parse_place(text)
    except ValueError as error:
        raise UsageError(f"--key-field {error}") from error
    return KeyReader(Column("key", _TEXT, True, path))


def declared_keys(streams: Iterable[Stream]) -> dict[str, KeyReader | RowKeyReader]:
    """Return by topic what reads the keys that streams declare, for `Sender(log, keys=...)`.

    UsageError: one cannot be read, or streams of a topic declare different ones.
    """
    streams = list(streams)
    found = {stream.topic: declared_key(streams, stream.topic) for stream in streams}
    return {topic: key for topic, key in found.items() if key is not None}


def declared_key(streams: Iterable[Stream], topic: str) -> KeyReader | RowKeyReader | None:
    """Return what reads the key of a topic's records, None where no stream declares one.

    That of a table comes first: a row without it is none.

    Of several streams with the same key, the unique id of the first that has one is the fallback.
    UsageError: it cannot be read, or streams declare different ones.
    """
    streams = list(streams)
    tables = [each for each in streams if each.topic == topic and each.format == "upsert"]
    if tables:
        return _row_key(topic, tables)
    chosen: tuple[Stream, KeyReader] | None = None
    for stream in streams:
        name = stream.key or stream.unique
        if stream.topic != topic or name is None:
            continue
        column = next((each for each in stream.columns if each.name == name), None)
        if column is None:
            raise UsageError(
                f"{topic}: the key of stream {stream.name} is its column {name}, which Spark "
                f"computes, so it cannot be read here. Name the field that the key is in with "
                f"--key-field, pass --key, or append without keys with --no-key."
            )
        key = KeyReader(column, _unique_key(stream))
        if chosen is not None and not chosen[1].reads_same(key):
            raise UsageError(
                f"{topic}: stream {chosen[0].name} has the key {chosen[0].key or chosen[0].unique} "
                f"and stream {stream.name} the key {name}, and a record has one key. Choose it: "
                f"--key-field '{chosen[1].place}' or --key-field '{key.place}'; or pass --no-key."
            )
        if chosen is None or chosen[1].fallback is None:
            chosen = (stream, key)
    return None if chosen is None else chosen[1]


def _row_key(topic: str, tables: Sequence[Stream]) -> RowKeyReader:
    first = tables[0]
    for other in tables[1:]:
        if other.primary_key != first.primary_key:
            raise UsageError(
                f"{topic}: table {first.name} has the primary key {', '.join(first.primary_key)} "
                f"and table {other.name} has {', '.join(other.primary_key)}, and a record has one "
                f"key. Choose it: pass --key or --key-field."
            )
    return RowKeyReader(first)


def _unique_key(stream: Stream) -> KeyReader | None:
    """Return what reads the unique id; None if it is the key, or if only Spark can compute it."""
    if stream.key in (None, stream.unique):
        return None
    columns = [each for each in stream.columns if each.name == stream.unique]
    return KeyReader(columns[0]) if columns else None
