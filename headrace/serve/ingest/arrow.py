"""Bodies in Arrow: records as the log takes them, or rows of any columns, each an object of JSON.

Who sends it may mean harm, so nothing is believed: every buffer is checked, a compressed one is
refused (8 MB of it can become terabytes), and so is every type in which few bytes stand for many.
Names of columns stand in every object, and a boolean is one bit: what becomes of a body is counted
while it is made.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headrace.errors import RecordTooLarge, UsageError
from headrace.log.base import APPENDS, HEADERS, MAX_RECORD_BYTES
from headrace.serve.http.values import plain
from headrace.serve.ingest.cutting import (
    MAX_RECORDS,
    Unread,
    refused,
    scan,
    skip,
    too_large,
    too_many,
)
from headrace.wording import counted

__all__ = ["MAX_TEXT_BYTES", "read_body"]

#: Of all objects that the rows of a body become.
MAX_TEXT_BYTES = 32 << 20
#: That are Python's objects at once, unless one row has more.
_SLICE_VALUES = 20_000
#: Of one row: each takes two bytes of its text at least, as in `[0,0]`.
_MAX_ROW_VALUES = MAX_RECORD_BYTES // 2
_RECORD_BATCH = 3  # of the union MessageHeader, in Arrow's Message.fbs
_COMPRESSION = 3  # the field of RecordBatch


def read_body(body: bytes) -> tuple[pa.RecordBatch, bool]:
    """Return the records of a stream of Arrow as APPENDS, and whether it names their keys.

    UsageError, RecordTooLarge.
    """
    table = _read(body)
    if table.num_rows > MAX_RECORDS:
        raise too_many(counted(table.num_rows, "record"))
    if "value" in table.column_names and set(table.column_names) <= set(APPENDS.names):
        return _records(table), "key" in table.column_names
    values = pa.array(_objects(table), pa.binary())
    nothing = pa.nulls(len(values), pa.binary())
    columns = [nothing, values, pa.nulls(len(values), HEADERS)]
    return pa.RecordBatch.from_arrays(columns, schema=APPENDS), False


def _read(body: bytes) -> pa.Table:
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(body) as reader:
            for field in reader.schema:
                _check_type(field.name, field.type)
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise UsageError(
            f"the body is no stream of Arrow: {str(error)[:200]}. Nothing was appended; send what "
            f"pyarrow.ipc.new_stream writes, without compression."
        ) from error
    if len(set(table.column_names)) < table.num_columns:
        raise UsageError("two columns have the same name. Nothing was appended; rename one.")
    return table


def _refuse_compressed(body: bytes) -> None:
    """Refuse a stream with a compressed batch, before it is read. UsageError."""
    messages = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
            raise UsageError(
                "the batches are compressed, which is not read here. Nothing was appended; write "
                "the stream without compression."
            )
        if message.type == "dictionary":
            raise _refused_type("a dictionary")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the header of a batch, a flatbuffer, has the field `compression`."""
    message = struct.unpack_from("<i", metadata)[0]
    kind = _field(metadata, message, 1)
    header = _field(metadata, message, 2)
    if kind is None or header is None or metadata[kind] != _RECORD_BATCH:
        return False
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, _COMPRESSION) is not None


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Return where the field of a flatbuffer's table is; None: it is not there."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    size: int = struct.unpack_from("<H", metadata, vtable)[0]
    entry = 4 + 2 * number
    offset: int = struct.unpack_from("<H", metadata, vtable + entry)[0] if entry < size else 0
    return table + offset if offset else None


def _check_type(name: str, type_: pa.DataType, *, nested: bool = False) -> None:
    """Refuse a type in which few bytes can stand for many, or that JSON cannot say. UsageError."""
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    if is_list or pa.types.is_fixed_size_list(type_):
        return _check_type(name, type_.value_type, nested=True)
    if pa.types.is_map(type_):
        _check_type(name, type_.key_type, nested=True)
        return _check_type(name, type_.item_type, nested=True)
    if pa.types.is_struct(type_):
        if type_.num_fields == 0:
            raise _refused_type(f"column {name}: {type_}")
        for field in type_:
            _check_type(name, field.type, nested=True)
        return None
    if pa.types.is_null(type_) and not nested:
        return None
    known = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_timestamp,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    if not any(check(type_) for check in known):
        raise _refused_type(f"column {name}: {type_}")
    return None


def _refused_type(what: str) -> UsageError:
    return UsageError(
        f"{what} is not read here. Nothing was appended; cast it to a plain type, such as string "
        f"or a list of them."
    )


def _records(table: pa.Table) -> pa.RecordBatch:
    """Return what the log takes; every value is an object of JSON, or null."""
    value = table.schema.field("value").type
    texts = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string)
    if not any(check(value) for check in (*texts, pa.types.is_large_string)):
        raise UsageError(
            f"the column value is {value}, and it is what the log stores: text or bytes of one "
            f"JSON object. Nothing was appended; to send rows, name no column `value`."
        )
    columns = [
        table.column(name) if name in table.column_names else pa.nulls(table.num_rows, field.type)
        for name, field in zip(APPENDS.names, APPENDS, strict=True)
    ]
    try:
        # Binary before string, which would be checked for UTF-8 here and again below.
        cast = pa.table(columns, names=APPENDS.names).cast(APPENDS).combine_chunks()
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(
            f"the columns are not key, value and headers as the log takes them: "
            f"{str(error)[:200]}. Nothing was appended; key and value are binary, headers a list "
            f"of structs of name and value."
        ) from error
    batches = cast.to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=APPENDS)
    for number, text in enumerate(batches[0].column("value").to_pylist(), 1):
        if text is not None:
            _check_object(text, number)
    return batches[0]


def _check_object(text: bytes, number: int) -> None:
    try:
        decoded = text.decode()
        value, end = scan(decoded, skip(decoded, 0))
    except UnicodeDecodeError as error:
        raise refused(f"record {number}", f"not UTF-8 at byte {error.start}") from None
    except Unread as problem:
        raise refused(f"record {number}", problem) from None
    if not isinstance(value, dict) or skip(decoded, end) < len(decoded):
        raise refused(f"record {number}", "not one JSON object")


def _objects(table: pa.Table) -> list[bytes]:
    found: list[bytes] = []
    size = 0
    names = table.column_names
    for rows in _slices(table):
        if rows.num_rows == 1 and _count_values(rows.columns) > _MAX_ROW_VALUES:
            raise too_large(f"record {len(found) + 1}", f"more than {MAX_RECORD_BYTES}")
        columns = [_values(*each) for each in zip(names, rows.columns, strict=True)]
        for row in zip(*columns, strict=True):
            members = dict(zip(names, row, strict=True))
            text = json.dumps(members, ensure_ascii=False).encode(errors="surrogatepass")
            if len(text) > MAX_RECORD_BYTES:
                raise too_large(f"record {len(found) + 1}", len(text))
            size += len(text)
            if size > MAX_TEXT_BYTES:
                raise RecordTooLarge(
                    f"the rows have more than {MAX_TEXT_BYTES >> 20} MB as JSON objects, which "
                    f"repeat the names of the columns. Nothing was appended; send fewer at once."
                )
            found.append(text)
    return found


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table in order, few enough to be Python's objects at once."""
    if table.num_rows <= 1 or _count_values(table.columns) <= _SLICE_VALUES:
        yield table
        return
    half = table.num_rows // 2
    yield from _slices(table.slice(0, half))
    yield from _slices(table.slice(half))


def _count_values(columns: Sequence[pa.Array | pa.ChunkedArray]) -> int:
    """Return how many values there are, those in lists, maps and structs included."""
    count = 0
    for column in columns:
        count += len(column)
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            count += _count_values(_parts(chunk))
    return count


def _parts(array: pa.Array) -> list[pa.Array]:
    """Return the values within the values of an array."""
    if pa.types.is_struct(array.type):
        return list(array.flatten())
    if pa.types.is_map(array.type):
        # Its keys and items are those of the array that it is a slice of.
        first, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [each.slice(first, end - first) for each in (array.keys, array.items)]
    return [array.flatten()] if pa.types.is_nested(array.type) else []


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    try:
        return [plain(value) for value in column.to_pylist(maps_as_pydicts="strict")]
    except (OverflowError, ValueError, KeyError) as error:
        # A year that Python's datetime does not know, or a map that has a key twice.
        raise UsageError(
            f"column {name}: a value cannot be said in JSON: {str(error)[:200]}. Nothing was "
            f"appended; send it as text."
        ) from error
