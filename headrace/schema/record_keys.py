"""The primary key of a change, read from the key of its record.

A key of several columns is a JSON object. That of one column may be one too, or the value alone: as
a JSON text, in quotation marks, or bare. So `{"id": 7}`, `7` and `"7"` are one key of an INT. Bytes
that are no such object are taken as they are. Of Kafka Connect's `{"schema": ..., "payload": ...}`
the payload is read.

`KeyDecoder.strict` defines this, for one key; all keys of a batch are read together where that is
sure to give the same.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schema.json import JsonDecoder
from headrace.schema.json_text import Dead, parse_object, parse_text, show
from headrace.schema.json_values import make_converter, unit_of
from headrace.schema.types import Column

__all__ = ["KeyDecoder"]

#: Whole numbers as JSON writes them, that fit BIGINT whatever the digits are.
_WHOLE = r"\A(?:0|-?[1-9][0-9]{0,17})\z"


class KeyDecoder:
    """Reads the columns of a primary key. Picklable; to be used by one thread at a time."""

    def __init__(self, columns: Sequence[Column], timestamp_format: str | None) -> None:
        self._columns = tuple(columns)
        self._converters = [
            make_converter(column.type, unit_of(column, timestamp_format)) for column in columns
        ]
        self._objects = JsonDecoder(columns, timestamp_format=timestamp_format)
        self.schema = self._objects.schema

    def decode(self, keys: pa.Array) -> tuple[list[pa.Array], dict[int, str]]:
        """Return an array per column, and why keys are dead, by their indices."""
        arrays, doubtful = self._together(keys)
        if not len(doubtful):
            return arrays, {}
        dead: dict[int, str] = {}
        values: dict[int, dict[str, object]] = {}
        found = keys.take(pa.array(doubtful)).to_pylist()
        for index, key in zip(doubtful.tolist(), found, strict=True):
            try:
                values[index] = self.strict(key)
            except Dead as error:
                dead[index] = error.reason
        if values:
            mask = np.zeros(len(keys), dtype=bool)
            mask[list(values)] = True
            arrays = [
                pc.replace_with_mask(
                    array, pa.array(mask), pa.array([each[name] for each in values.values()], type)
                )
                for array, (name, type) in zip(arrays, self._typed(), strict=True)
            ]
        return arrays, dead

    def strict(self, key: bytes | None) -> dict[str, object]:
        """Return the value of every column. Dead."""
        if key is None:
            raise Dead("the record has no key")
        try:
            return self._strict(key)
        except Dead as dead:
            raise dead.within("key") from None

    def _strict(self, key: bytes) -> dict[str, object]:
        names = [column.name for column in self._columns]
        if len(names) == 1:
            if self._columns[0].type.kind == "BINARY" and not _is_object_of(key, names[0]):
                return {names[0]: key}
            members = _single(key, names[0])
        else:
            members = parse_object(key)
            payload = members.get("payload")
            if isinstance(payload, dict) and not all(name in members for name in names):
                members = payload
        row: dict[str, object] = {}
        for name, convert in zip(names, self._converters, strict=True):
            value = members.get(name)
            if value is None:
                problem = "is null" if name in members else "is missing"
                raise Dead(f"{problem}, and it is of the primary key", name)
            try:
                row[name] = convert(value)
            except Dead as dead:
                raise dead.within(name) from None
        return row

    def _typed(self) -> list[tuple[str, pa.DataType]]:
        return [(field.name, field.type) for field in self.schema]

    def _together(self, keys: pa.Array) -> tuple[list[pa.Array], npt.NDArray[np.int64]]:
        """Return what can be read of all keys at once, and the indices of the others."""
        if len(self._columns) > 1:
            decoded = self._objects.decode(keys)
            return list(decoded.rows.columns), decoded.dead.to_numpy()
        [column], keys = self._columns, keys.cast(pa.binary())
        is_object = pc.starts_with(keys, b"{").fill_null(False)
        objects = np.flatnonzero(is_object.to_numpy(zero_copy_only=False))
        # Where this takes a record, the strict path takes it as well, and sees the same.
        decoded = self._objects.decode(keys.take(pa.array(objects)))
        found = decoded.rows.column(0)
        if len(objects) < len(keys):
            bare = self._bare(pc.if_else(is_object, pa.scalar(None, pa.binary()), keys), column)
            source = np.arange(len(keys), dtype=np.int64)
            source[objects] = len(keys) + np.arange(len(objects))
            found = pa.concat_arrays([bare, found]).take(pa.array(source))
        return [found], np.flatnonzero(pc.is_null(found).to_numpy(zero_copy_only=False))

    def _bare(self, keys: pa.Array, column: Column) -> pa.Array:
        """Return the bare values among keys, null where that is not known for sure."""
        unknown = pa.nulls(len(keys), column.type.arrow)
        if column.type.kind == "BINARY":
            return keys
        if not (column.type.kind == "STRING" or column.type.is_integer):
            return unknown
        try:
            texts = keys.cast(pa.string())
        except pa.ArrowInvalid:
            return unknown
        if column.type.kind == "STRING":
            quoted = pc.starts_with(texts, '"').fill_null(False)
            return pc.if_else(quoted, pa.scalar(None, pa.string()), texts)
        whole = pc.match_substring_regex(texts, _WHOLE).fill_null(False)
        numbers = pc.if_else(whole, texts, pa.scalar(None, pa.string())).cast(pa.int64())
        try:
            return numbers.cast(column.type.arrow)
        except pa.ArrowInvalid:  # one is out of range
            return unknown


def _is_object_of(key: bytes, name: str) -> bool:
    if not key.startswith(b"{"):
        return False
    try:
        members = parse_object(key)
    except Dead:
        return False
    return name in members or isinstance(members.get("payload"), dict)


def _single(key: bytes, name: str) -> dict[str, object]:
    """Return what a key of one column holds, as the members of an object."""
    try:
        text = key.decode()
    except UnicodeDecodeError as error:
        raise Dead(f"not UTF-8 at byte {error.start}") from None
    if text[:1] == "{":
        try:
            members = parse_object(key)
        except Dead:
            return {name: text}
        if name not in members and "payload" in members:
            payload = members["payload"]
            return payload if isinstance(payload, dict) else {name: payload}
        if name not in members:
            raise Dead(f"{show(members)} has no {name}")
        return members
    if text[:1] == '"':
        try:
            return {name: parse_text(key)}
        except Dead:
            return {name: text}
    return {name: text}
