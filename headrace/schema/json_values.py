"""One parsed JSON value to one value of a column's type: lossless or dead.

This is the decoding table of the design (section 3), type by type. A converter takes any parsed
value but null and returns the Python value that Arrow stores, or raises Dead.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from headrace.schema.json_text import Dead, Number, show, write_text
from headrace.schema.types import Column, DataType
from headrace.wording import counted

__all__ = ["TIMESTAMP_UNITS", "Convert", "is_number", "make_converter", "unit_of"]

Convert = Callable[[object], object]

# The power of ten that makes microseconds of each `timestamp_format`.
TIMESTAMP_UNITS = {"seconds": 6, "millis": 3, "micros": 0}
#: That of nanoseconds, which no definition names: envelopes with a schema do.
_NANOS = {"nanos": -3}

_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    _DATE.pattern + r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class Exact(NamedTuple):
    """A number as written: `sign + digits` times ten to the `exponent`, no zero at either end."""

    sign: str
    digits: str
    exponent: int

    @property
    def whole_digits(self) -> int:
        """How many digits stand before the point."""
        return max(0, len(self.digits) + self.exponent) if self.digits else 0

    @property
    def decimals(self) -> int:
        """How many digits stand after the point."""
        return max(0, -self.exponent)

    def times_ten_to(self, power: int) -> int:
        """Return the number times a power of ten that makes it whole."""
        assert self.exponent + power >= 0 or not self.digits
        return int(f"{self.sign}{self.digits or '0'}{'0' * (self.exponent + power)}")


def unit_of(column: Column, timestamp_format: str | None) -> str | None:
    """Return the unit of a column's timestamps; None: they are ISO 8601."""
    if column.format is None:
        return timestamp_format
    return None if column.format == "iso8601" else column.format


def make_converter(type: DataType, timestamp_format: str | None) -> Convert:
    """Return the converter of a type; `timestamp_format` is None or one of TIMESTAMP_UNITS."""
    if type.kind == "DECIMAL":
        return lambda value: _to_decimal(value, type)
    if type.is_integer:
        bits = _INTEGER_BITS[type.kind]
        return lambda value: _to_integer(value, type.kind, bits)
    if type.kind == "TIMESTAMP" and timestamp_format is not None:
        unit = (TIMESTAMP_UNITS | _NANOS)[timestamp_format]
        return lambda value: _to_timestamp_since_1970(value, timestamp_format, unit)
    if type.kind == "ARRAY":
        return _make_array_converter(type, timestamp_format)
    if type.kind == "MAP":
        return _make_map_converter(type, timestamp_format)
    if type.kind == "STRUCT":
        return _make_struct_converter(type, timestamp_format)
    return _SCALARS[type.kind]


def is_number(value: object) -> bool:
    """Whether a parsed value is a number, or a text that reads as one."""
    return type(value) is Number or (type(value) is str and _NUMBER.fullmatch(value) is not None)


def _read_number(value: object, wanted: str) -> str:
    # Numeric text follows the grammar of JSON numbers too: what a number may not look like, text
    # may not either.
    if is_number(value):
        return str(value)
    raise Dead(f"{show(value)} is not {wanted}")


def _read_exact(value: object, wanted: str) -> Exact:
    match = _NUMBER.fullmatch(_read_number(value, wanted))
    assert match is not None
    sign, whole, fraction, exponent_text = match.groups(default="")
    written = whole + fraction
    digits = written.strip("0")
    if not digits:
        return Exact("", "", 0)
    trailing_zeros = len(written) - len(written.rstrip("0"))
    # Beyond nine digits an exponent is out of every range, and too costly to compute with.
    exponent = int(exponent_text or 0) if len(exponent_text.lstrip("+-0")) <= 9 else 10**10
    if exponent == 10**10 and exponent_text.startswith("-"):
        exponent = -exponent
    return Exact(sign, digits, exponent - len(fraction) + trailing_zeros)


def _to_integer(value: object, kind: str, bits: int) -> int:
    number = _read_exact(value, "a whole number")
    if number.decimals:
        raise Dead(f"{show(value)} is not a whole number")
    if number.whole_digits <= 19:
        whole = number.times_ten_to(0)
        if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
            return whole
    raise Dead(f"{show(value)} is out of range ({kind})")


def _to_decimal(value: object, type: DataType) -> Decimal:
    number = _read_exact(value, "a number")
    if number.decimals > type.scale:
        raise Dead(f"{show(value)} has more than {counted(type.scale, 'decimal')} ({type.sql})")
    whole_digits = type.precision - type.scale
    if number.whole_digits > whole_digits:
        raise Dead(
            f"{show(value)} has more than {counted(whole_digits, 'digit')} before the point "
            f"({type.sql})"
        )
    return Decimal(f"{number.sign}{number.digits or '0'}e{number.exponent}")


def _to_double(value: object) -> float:
    number = float(_read_number(value, "a number"))
    if abs(number) == float("inf"):
        raise Dead(f"{show(value)} is out of range (DOUBLE)")
    return number


def _to_float(value: object) -> float:
    with np.errstate(over="ignore", under="ignore"):
        number = float(np.float32(float(_read_number(value, "a number"))))
    if abs(number) == float("inf"):
        raise Dead(f"{show(value)} is out of range (FLOAT)")
    return number


def _to_string(value: object) -> str:
    return value if type(value) is str else write_text(value)


def _to_boolean(value: object) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in ("true", "false"):
        return value == "true"
    raise Dead(f"{show(value)} is not true or false")


def _to_binary(value: object) -> bytes:
    if type(value) is str:
        try:
            decoded = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            decoded = None
        # Encoding again finds what Python lets pass: bits of the last letter that would be lost.
        if decoded is not None and base64.b64encode(decoded).decode() == value:
            return decoded
    raise Dead(f"{show(value)} is not base64")


def _to_date(value: object) -> date:
    match = _DATE.fullmatch(value) if type(value) is str else None
    if match is not None:
        try:
            return date(*map(int, match.groups()))
        except ValueError:
            pass
    raise Dead(f"{show(value)} is not an ISO 8601 date")


def _to_timestamp(value: object) -> datetime:
    match = _TIMESTAMP.fullmatch(value) if type(value) is str else None
    if match is None:
        raise Dead(f"{show(value)} is not an ISO 8601 timestamp")
    *fields, fraction, sign, zone_hours, zone_minutes = match.groups(default="0")
    if fraction[6:].strip("0"):
        raise Dead(f"{show(value)} has more than 6 decimals of a second")
    micros = int(fraction[:6].ljust(6, "0"))
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
    if int(zone_hours) > 23 or int(zone_minutes) > 59:
        raise Dead(f"{show(value)} is not an ISO 8601 timestamp")
    try:
        local = datetime(*map(int, fields), micros, tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        raise Dead(f"{show(value)} is not an ISO 8601 timestamp") from None
    try:
        return local + offset if sign == "-" else local - offset
    except OverflowError:
        raise Dead(f"{show(value)} is outside the years 0001 to 9999") from None


def _to_timestamp_since_1970(value: object, unit_name: str, unit: int) -> datetime:
    number = _read_exact(value, f"a number of {unit_name} since 1970")
    if number.digits and -number.exponent > unit:
        raise Dead(f"{show(value)} {unit_name} is not a whole number of microseconds")
    if number.whole_digits + unit <= 18:
        micros = number.times_ten_to(unit)
        if _FIRST_US <= micros <= _LAST_US:
            return _EPOCH + timedelta(microseconds=micros)
    raise Dead(f"{show(value)} {unit_name} since 1970 is outside the years 0001 to 9999")


def _make_array_converter(type: DataType, timestamp_format: str | None) -> Convert:
    convert = make_converter(type.parts[0], timestamp_format)
    required = 0 in type.required

    def to_array(value: object) -> list[object]:
        if not isinstance(value, list):
            raise Dead(f"{show(value)} is not an array")
        elements: list[object] = []
        for index, element in enumerate(value):
            if element is None and required:
                raise Dead("is null, and the elements are NOT NULL", f"[{index}]")
            try:
                elements.append(None if element is None else convert(element))
            except Dead as dead:
                raise dead.within(f"[{index}]") from None
        return elements

    return to_array


def _make_map_converter(type: DataType, timestamp_format: str | None) -> Convert:
    convert_key, convert_value = (make_converter(part, timestamp_format) for part in type.parts)
    required = 1 in type.required

    def to_map(value: object) -> list[tuple[object, object]]:
        if not isinstance(value, dict):
            raise Dead(f"{show(value)} is not an object")
        entries: dict[object, object] = {}
        for key, part in value.items():
            if part is None and required:
                raise Dead("is null, and the values are NOT NULL", f"[{show(key)}]")
            try:
                # Two keys may be one value ("1" and "1.0"): the last counts here too.
                entries[convert_key(key)] = None if part is None else convert_value(part)
            except Dead as dead:
                raise dead.within(f"[{show(key)}]") from None
        return list(entries.items())

    return to_map


def _make_struct_converter(type: DataType, timestamp_format: str | None) -> Convert:
    converters = [
        (name, make_converter(part, timestamp_format), number in type.required)
        for number, (name, part) in enumerate(zip(type.names, type.parts, strict=True))
    ]

    def to_struct(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise Dead(f"{show(value)} is not an object")
        fields: dict[str, object] = {}
        for name, convert, required in converters:
            part = value.get(name)
            if part is None and required:
                problem = "is null" if name in value else "is missing"
                raise Dead(f"{problem}, and the field is NOT NULL", name)
            try:
                fields[name] = None if part is None else convert(part)
            except Dead as dead:
                raise dead.within(name) from None
        return fields

    return to_struct


_SCALARS: dict[str, Convert] = {
    "BOOLEAN": _to_boolean,
    "FLOAT": _to_float,
    "DOUBLE": _to_double,
    "STRING": _to_string,
    "BINARY": _to_binary,
    "DATE": _to_date,
    "TIMESTAMP": _to_timestamp,
}
