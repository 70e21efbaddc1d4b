"""Rows of Arrow as JSON, the same on the wire and on the command line.

A decimal with decimals is text (`"12.50"`); bytes are base64; times are ISO 8601 in UTC; a MAP is
an object with the text of its keys; an interval is text (`"1 month 3 days 04:00:00"`). All of it
but intervals can be appended again and is decoded to the same value, with one exception: what is no
number in JSON is the text "nan", "inf" or "-inf", and a column of numbers takes no such text.
"""

import base64
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["ARROW", "answer_to_json", "arrow_bytes", "plain", "plain_column", "read_arrow"]

ARROW = "application/vnd.apache.arrow.stream"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)
# The calendar repeats itself after so long.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097


def answer_to_json(table: pa.Table) -> dict[str, Any]:
    """Return a query's answer: names and types of the columns, and the rows as lists."""
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    # Column by column: two columns may have the same name.
    values = [plain_column(column) for column in table.columns]
    return {"columns": columns, "rows": [list(row) for row in zip(*values, strict=True)]}


def arrow_bytes(table: pa.Table) -> bytes:
    """Return a table as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_arrow(content: bytes) -> pa.Table:
    """Return the table of a stream of Arrow. ValueError: it is none."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def plain_column(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as JSON takes them."""
    type = column.type
    if pa.types.is_integer(type) or pa.types.is_string(type) or pa.types.is_boolean(type):
        return list(column.to_pylist())  # they are plain: a third of the time
    try:
        return [plain(value) for value in column.to_pylist(maps_as_pydicts="strict")]
    except (OverflowError, ValueError):
        return [_plain_scalar(value) for value in column]


def _plain_scalar(value: pa.Scalar) -> Any:
    """Return a value as `plain` does, also where it holds a time that Python's have no year for.

    A window that begins in 9999 ends in such a year, and so may what an expression works out.
    """
    try:
        return plain(value.as_py(maps_as_pydicts="strict"))
    except (OverflowError, ValueError):
        return _far(value)


def _far(value: pa.Scalar) -> Any:
    type = value.type
    if pa.types.is_timestamp(type):
        seconds, fraction = divmod(value.value, _PER_SECOND[type.unit])
        days, second = divmod(seconds, 86_400)
        moment = _EPOCH + timedelta(0, second, fraction * 1_000_000 // _PER_SECOND[type.unit])
        return f"{_far_date(days)}{moment.isoformat()[10:]}Z"
    if pa.types.is_date(type):
        return _far_date(value.value if pa.types.is_date32(type) else value.value // 86_400_000)
    if pa.types.is_struct(type):
        return {field.name: _plain_scalar(value[place]) for place, field in enumerate(type)}
    if pa.types.is_map(type):
        return {_name(_plain_scalar(key)): _plain_scalar(item) for key, item in _entries(value)}
    if isinstance(value, pa.ListScalar):
        return [_plain_scalar(entry) for entry in value.values]
    return str(value)


def _entries(value: pa.MapScalar) -> Iterator[tuple[pa.Scalar, pa.Scalar]]:
    return ((entry[0], entry[1]) for entry in value.values)


def _far_date(days: int) -> str:
    """Return the date so many days after 1970-01-01, of any year, in ISO 8601."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    near = _EPOCH + timedelta(rest)
    year = near.year + cycles * _CYCLE_YEARS
    return f"{year:0{4 if year >= 0 else 5}}{near.isoformat()[4:10]}"


def plain(value: Any) -> Any:
    """Return a value as JSON takes it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        whole = value.as_tuple().exponent == 0
        return int(value) if whole else str(value)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return moment.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, pa.MonthDayNano):
        return _interval(value.months, value.days, value.nanoseconds // 1000)
    if isinstance(value, timedelta):
        return _interval(0, 0, value // timedelta(microseconds=1))
    if isinstance(value, dict):
        return {_name(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value)


def _name(key: Any) -> str:
    """Return the key of a MAP, or the name of a field, as the name of a member."""
    text = plain(key)
    return text if isinstance(text, str) else json.dumps(text)


def _interval(months: int, days: int, microseconds: int) -> str:
    """Return an interval as DuckDB writes it: 1 year 2 months 3 days 04:05:06.5."""
    years, months = int(months / 12), int(math.fmod(months, 12))
    parts = [
        f"{number} {unit}{'' if abs(number) == 1 else 's'}"
        for number, unit in ((years, "year"), (months, "month"), (days, "day"))
        if number
    ]
    if microseconds or not parts:
        sign = "-" if microseconds < 0 else ""
        seconds, fraction = divmod(abs(microseconds), 1_000_000)
        decimals = f".{fraction:06d}".rstrip("0") if fraction else ""
        hours, minutes = seconds // 3600, seconds // 60 % 60
        parts.append(f"{sign}{hours:02d}:{minutes:02d}:{seconds % 60:02d}{decimals}")
    return " ".join(parts)
