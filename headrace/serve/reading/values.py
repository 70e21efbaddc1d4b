"""Values that readers compare columns with: a text, as the type of the column.

Written as rows show them: times in ISO 8601, decimals in full, bytes in base64.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from headrace.errors import UsageError
from headrace.schema.relations import Named
from headrace.schema.types import DataType
from headrace.store.asking import Value

__all__ = ["read_value"]

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_LOST_PLUS = re.compile(r"(T.+) ([0-9]{2}:[0-9]{2})$")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")


def read_value(column: Named, text: str) -> Value:
    """Return the value that a text is for a column. UsageError: it is none of its type."""
    read = _READERS.get(column.type.kind)
    if read is None:
        raise UsageError(
            f"column {column.name} is {column.type.sql}, which can be compared with null only: "
            f"{column.name}=null"
        )
    try:
        return read(text, column.type)
    except (ValueError, InvalidOperation, binascii.Error) as error:
        wanted = _WANTED.get(column.type.kind, "")
        raise UsageError(
            f"{text[:100]!r} is no value of column {column.name}, which is {column.type.sql}"
            f"{wanted}"
        ) from error


def _whole(text: str, type: DataType) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    found, half = int(text), 1 << (_BITS[type.kind] - 1)
    if not -half <= found < half:
        raise ValueError(text)
    return found


def _real(text: str, type: DataType) -> float:
    found = float(text) if "_" not in text else math.nan
    if not math.isfinite(found):
        raise ValueError(text)
    if type.kind == "FLOAT" and abs(found) > 3.4028234663852886e38:
        raise ValueError(text)
    return found


def _decimal(text: str, type: DataType) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    whole, _, fraction = text.lstrip("+-").partition(".")
    if len(fraction.rstrip("0")) > type.scale:
        raise ValueError(text)
    if len(whole.lstrip("0")) > type.precision - type.scale:
        raise ValueError(text)
    sign = "-" if text.startswith("-") else ""
    return Decimal(f"{sign}{whole}.{fraction[: type.scale].ljust(type.scale, '0')}")


def _boolean(text: str, _: DataType) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _text(text: str, _: DataType) -> str:
    text.encode()  # a lone surrogate is no text
    return text


def _bytes(text: str, _: DataType) -> bytes:
    return base64.b64decode(text, validate=True)


def _date(text: str, _: DataType) -> date:
    return date.fromisoformat(text)


def _time(text: str, _: DataType) -> datetime:
    # In a URL a + that is not escaped becomes a space on its way.
    found = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text))
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    try:
        return found.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(text) from error


_READERS: Mapping[str, Callable[[str, DataType], Value]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(_BITS, _whole),
    "FLOAT": _real,
    "DOUBLE": _real,
    "DECIMAL": _decimal,
    "STRING": _text,
    "BINARY": _bytes,
    "DATE": _date,
    "TIMESTAMP": _time,
}
_WANTED = {
    "BOOLEAN": ": true or false",
    "BINARY": ": write bytes in base64",
    "DATE": ": write 2026-01-31",
    "TIMESTAMP": ": write 2026-01-31T12:00:00Z",
}
