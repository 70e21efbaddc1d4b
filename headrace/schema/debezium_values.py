"""How Debezium writes values, where it differs from JSON's own way: times, dates, decimals.

With the schema part of an envelope each field says how it is written. Without one a date is a
number of days or ISO 8601; a timestamp is ISO 8601 or, where the definition says a unit, a number
too; a decimal is a number, `{"scale": ..., "value": base64}`, or a text. Of texts the definition
has to say what they are, digits or the base64 of an unscaled number, since some could be either.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from headrace.schema.json_text import Dead, Number, show
from headrace.schema.json_values import Convert, is_number, make_converter, unit_of
from headrace.schema.types import Column, DataType, parse_type

__all__ = ["DECIMAL_FORMATS", "UNSENT_TEXT", "Way", "is_unsent", "make_convert", "way_of"]

#: What `decimal_format` may say of texts.
DECIMAL_FORMATS = ("text", "base64")
#: What stands in place of a value that did not change and was not read.
UNSENT_TEXT = "__debezium_unavailable_value"

_UNSENT_BASE64 = base64.b64encode(UNSENT_TEXT.encode()).decode()
_EPOCH = date(1970, 1, 1)
_ISO_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_INT = make_converter(parse_type("INT"), None)
_TIMES = {
    "io.debezium.time.Timestamp": "millis",
    "org.apache.kafka.connect.data.Timestamp": "millis",
    "io.debezium.time.MicroTimestamp": "micros",
    "io.debezium.time.NanoTimestamp": "nanos",
}
_DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


class Way(NamedTuple):
    """How the values of a column are written: `plain` ones as in any JSON.

    - of a timestamp: seconds, millis, micros, nanos
    - of a date: days, or `date`, which may be days or ISO 8601
    - of a decimal: unscaled, base64 with a `scale`; `number`, which is no text
    """

    name: str = "plain"
    scale: int = 0


def way_of(
    column: Column,
    field: Mapping[str, Any] | None,
    timestamp_format: str | None,
    decimal_format: str | None,
) -> Way:
    """Return how a column is written; `field` is its part of the schema, None: there is none."""
    name = None if field is None else field.get("name")
    if column.type.kind == "TIMESTAMP":
        return Way(_TIMES.get(str(name)) or unit_of(column, timestamp_format) or "plain")
    if column.type.kind == "DATE":
        return Way("days" if name in _DAYS else "date")
    if column.type.kind == "DECIMAL":
        if name == _DECIMAL:
            return Way("unscaled", _scale_of(field))
        if field is not None and name is None:
            return Way()  # the field is a string or a number
        if decimal_format == "base64":
            return Way("unscaled", column.type.scale)
        return Way() if decimal_format == "text" else Way("number")
    return Way()


def _scale_of(field: Mapping[str, Any] | None) -> int:
    parameters = {} if field is None else field.get("parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    if not isinstance(scale, str) or not re.fullmatch(r"-?[0-9]{1,3}", scale):
        raise Dead(f"the schema has a decimal without a scale: {show(field)}")
    return int(scale)


def make_convert(type: DataType, way: Way) -> Convert:
    """Return what converts one parsed value, that is not null, to a type. It raises Dead."""
    plain = make_converter(type, None)
    if type.kind == "TIMESTAMP" and way.name != "plain":
        counted = make_converter(type, way.name)
        return lambda value: (counted if is_number(value) else plain)(value)
    if type.kind == "TIMESTAMP":
        return lambda value: _to_timestamp(value, plain)
    if type.kind == "DATE":
        return lambda value: _to_date(value, plain)
    if type.kind == "DECIMAL":
        return lambda value: _to_decimal(value, type, way, plain)
    return plain


def is_unsent(value: object, type_: DataType) -> bool:
    """Whether a value of a type stands for one that was not sent."""
    if type(value) is str:
        return value == (_UNSENT_BASE64 if type_.kind == "BINARY" else UNSENT_TEXT)
    if isinstance(value, list):
        return len(value) == 1 and type(value[0]) is str and value[0] == UNSENT_TEXT
    if isinstance(value, dict):
        return list(value) == [UNSENT_TEXT]
    return False


def _to_timestamp(value: object, plain: Convert) -> object:
    if type(value) is Number:
        raise Dead(
            f"{show(value)} is a number, and the envelope has no schema that says its unit; write "
            "FORMAT 'millis' or 'micros' behind the column's type"
        )
    return plain(value)


def _to_date(value: object, plain: Convert) -> object:
    if is_number(value):
        days = _INT(value)
        assert isinstance(days, int)
        try:
            return _EPOCH + timedelta(days=days)
        except OverflowError:
            raise Dead(f"{show(value)} days are outside the years 0001 to 9999") from None
    found = _ISO_DATE.fullmatch(value) if type(value) is str else None
    return plain(value if found is None else found[1])


def _to_decimal(value: object, type_: DataType, way: Way, plain: Convert) -> object:
    if isinstance(value, dict):  # io.debezium.data.VariableScaleDecimal
        scale, text = value.get("scale"), value.get("value")
        if type(scale) is not Number or not re.fullmatch(r"-?[0-9]{1,3}", scale):
            raise Dead(f"{show(value)} is no decimal: its scale is not a number")
        return _exact(_unscaled(text, value), int(scale), type_, value)
    if type(value) is not str:
        return plain(value)
    if way.name == "unscaled":
        return _exact(_unscaled(value, value), way.scale, type_, value)
    if way.name == "number":
        raise Dead(
            f"{show(value)} is a text, and the envelope has no schema that says what it is; write "
            "decimal_format = 'text' or 'base64' in WITH (...)"
        )
    return plain(value)


def _unscaled(text: object, shown: object) -> int:
    if type(text) is str:
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if data and base64.b64encode(data).decode() == text:
            return int.from_bytes(data, "big", signed=True)
    raise Dead(f"{show(shown)} is not the base64 of a decimal")


def _exact(unscaled: int, scale: int, type: DataType, shown: object) -> object:
    number = Decimal(unscaled).scaleb(-scale) if abs(unscaled) < 10**38 else None
    digits = "" if number is None else f"{number:f}"
    whole, _, fraction = digits.lstrip("-").partition(".")
    too_long = len(whole.lstrip("0")) > type.precision - type.scale
    if number is None or too_long or len(fraction.rstrip("0")) > type.scale:
        raise Dead(f"{show(shown)} does not fit {type.sql}: it is {digits or unscaled}")
    return number
