r"""Shapes of records: regular expressions that prove a record easy.

A shape is learnt from one record: the order of its keys, and for every key the texts that are
beyond doubt for its column. It promises, for any valid UTF-8 text that it matches:
- the text is a JSON object as RFC 8259 writes it, and no key of ours stands in it twice;
- no NOT NULL column is missing or null;
- DuckDB's `json_transform` to `plan_structures` and a cast to the columns' Arrow types give
  the very values of the strict path. What DuckDB would round, guess or ignore does not match.
Not promised: that every such record matches. What does not match is decoded strictly.

The expressions are RE2's: no backtracking, so hostile text cannot make matching slow. They have
one more freedom than the sample: keys after the first may be missing unless they are NOT NULL.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from headrace.schema.json_places import Keys
from headrace.schema.types import Column, DataType

__all__ = ["Structure", "learn_shape", "plan_structures"]

#: Keys of an object, each with its type as DuckDB writes it, or with what is within it.
Structure = dict[str, object]

# Where DuckDB reads a number through a DOUBLE, 15 digits survive it for certain.
DOUBLE_DIGITS = 15

# Any escape but \u0000 and halves of surrogate pairs.
_STRING = (
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?:[1-9a-cA-CefEF][0-9a-fA-F]{3}'
    r"|0(?:[1-9a-fA-F][0-9a-fA-F]{2}|0[1-9a-fA-F][0-9a-fA-F]|00[1-9a-fA-F])"
    r"|[dD][0-7][0-9a-fA-F]{2}"
    r'|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))*"'
)
_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])"
_MONTH_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))"
)
_FOURTH = r"(?:0[48]|[2468][048]|[13579][26])"  # divisible by four, and not 00
_DATE = rf"(?:{_YEAR}-{_MONTH_DAY}|(?:\d\d{_FOURTH}|{_FOURTH}00)-02-29)"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
# Only zones that mean UTC: DuckDB's TIMESTAMP reads past any other. Its TIMESTAMPTZ does not, but
# costs 120 ns more of a record's 770, so it is taken only where zones were seen.
_TIMESTAMP = rf'"{_DATE}[T ]{_CLOCK}(?:Z|[+-]00:?00)?"'
# Years that no zone can carry out of 0001 to 9999.
_INNER_DATE = rf"[1-8](?:\d{{3}}-{_MONTH_DAY}|\d{_FOURTH}-02-29)"
_ZONED_TIMESTAMP = rf'(?:{_TIMESTAMP}|"{_INNER_DATE}[T ]{_CLOCK}[+-](?:0\d|1\d|2[0-3]):?[0-5]\d")'
_EXPONENT = r"(?:[eE][+-]?\d{1,2})"
# Without -0: DuckDB reads it as the whole number 0, and the sign is lost.
_DOUBLE = (
    rf"(?:0|-?[1-9]\d{{0,14}}|-?(?:0|[1-9]\d{{0,14}})(?:\.\d{{1,17}}{_EXPONENT}?|{_EXPONENT}))"
)
_FLOAT = r"(?:0|-?[1-9]\d{0,14}|-?(?:0|[1-9]\d{0,14})\.\d{1,17})"
_INTEGERS = {  # as many digits as fit whatever they are
    "TINYINT": r"-?(?:0|[1-9]\d?|1[01]\d)",
    "SMALLINT": r"-?(?:0|[1-9]\d{0,3}|[12]\d{4})",
    "INT": r"-?(?:0|[1-9]\d{0,8}|1\d{9})",
    "BIGINT": r"-?(?:0|[1-9]\d{0,17}|[1-8]\d{18})",
}
_SINCE_1970 = {  # inside the years 0001 to 9999 whatever the digits are
    "seconds": r"(?:0|[1-9]\d{0,10}|-[1-9]\d{0,9})",
    "millis": r"(?:0|[1-9]\d{0,13}|-[1-9]\d{0,12})",
    "micros": r"(?:0|[1-9]\d{0,16}|-[1-9]\d{0,15})",
}
_TIMESTAMPS = {
    "utc": _TIMESTAMP,
    "zoned": _ZONED_TIMESTAMP,
    **{unit: f'(?:{number}|"{number}")' for unit, number in _SINCE_1970.items()},
}
_BOOLEAN = r'(?:true|false|"true"|"false")'
# A number's text is as written only while it is whole, within 64 bits and not -0.
_TEXT = rf"(?:{_STRING}|true|false|0|-?[1-9]\d{{0,17}})"
_COMMA = ", ?"
_COLON = ": ?"
_SPACE = r"[ \t\r\n]*"


def _list_of(element: str) -> str:
    return rf"\[(?:{element}(?:{_COMMA}{element})*)?\]"


def _any_around(value: str) -> str:
    member = f"{_STRING}{_COLON}{value}"
    return rf"(?:{value}|{_list_of(value)}|\{{(?:{member}(?:{_COMMA}{member})*)?\}})"


# What stands in unknown fields is ignored, but it has to be JSON, and DuckDB has to get past it.
_ANY_SCALAR = rf"(?:{_STRING}|-?(?:0|[1-9]\d{{0,17}})(?:\.\d{{1,30}})?{_EXPONENT}?|true|false|null)"
_ANY = _any_around(_any_around(_ANY_SCALAR))


def plan_structures(keys: Keys, wanted: Collection[str], timestamps: str) -> list[Structure]:
    """Return what `json_transform` is told of the wanted columns that may take the fast path.

    Columns that stand at one key are in one structure each. `timestamps` says how those are written
    that are texts: `utc` or `zoned`; those in `seconds`, `millis` or `micros` since 1970 are read
    as BIGINT. FLOAT is read as DOUBLE, as the strict path reads it, so that both round the same way
    twice.
    """
    structures: list[Structure] = []
    for key, found in keys.items():
        if not _is_plain(key) or found is None:
            continue
        if isinstance(found, dict):
            parts: Sequence[object] = plan_structures(found, wanted, timestamps)
        else:
            named = [_structure(each.type, _written(each, timestamps)) for each in found]
            parts = [
                None if each.name not in wanted else structure
                for each, structure in zip(found, named, strict=True)
            ]
        for number, part in enumerate(parts):
            if part:
                structures += [{}] * (number + 1 - len(structures))
                structures[number] = structures[number] | {key: part}
    return structures


def learn_shape(keys: Keys, members: Mapping[str, object], timestamps: str) -> str | None:
    """Return the shape of a record with these members, an anchored RE2 expression.

    None: no shape is safe for it.
    """
    pattern = _object_pattern(_fields_at(keys, timestamps), members)
    return None if pattern is None else rf"\A{_SPACE}{pattern}{_SPACE}\z"


def _written(column: Column, timestamps: str) -> str:
    return column.format if column.format is not None else timestamps


def _structure(type: DataType, timestamps: str) -> object | None:
    if type.kind in ("MAP", "BINARY"):
        return None
    if type.kind == "TIMESTAMP":
        return {"utc": "TIMESTAMP", "zoned": "TIMESTAMPTZ"}.get(timestamps, "BIGINT")
    if type.is_orderable:
        return "DOUBLE" if type.kind == "FLOAT" else type.duckdb
    if timestamps in _SINCE_1970 and type.holds_timestamp:
        return None  # numbers within lists and structs are not made timestamps
    parts = [_structure(part, timestamps) for part in type.parts]
    if None in parts:
        return None
    if type.kind == "ARRAY":
        return parts
    return dict(zip(type.names, parts, strict=True)) if all(map(_is_plain, type.names)) else None


class _Field(NamedTuple):
    """How the value of a key is written, given a sample, and whether it may be null or missing."""

    pattern: Callable[[object], str | None]
    required: bool


def _fields_at(keys: Keys, timestamps: str) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    for key, found in keys.items():
        if isinstance(found, dict):
            below = _fields_at(found, timestamps)
            required = any(each.required for each in below.values())
            fields[key] = _Field(partial(_below_pattern, below), required)
        elif found is None:
            fields[key] = _Field(lambda _: None, required=False)
        else:
            required = not all(each.nullable for each in found)
            fields[key] = _Field(partial(_columns_pattern, found, timestamps), required)
    return fields


def _below_pattern(fields: Mapping[str, _Field], sample: object) -> str | None:
    return _object_pattern(fields, sample if isinstance(sample, dict) else {})


def _columns_pattern(columns: Sequence[Column], timestamps: str, sample: object) -> str | None:
    """Return the texts that are beyond doubt for all columns that stand at one key."""
    patterns: dict[str | None, bool] = {}  # to whether it is ISO 8601
    for column in columns:
        written = _written(column, timestamps)
        known = _structure(column.type, written) is not None
        pattern = _value_pattern(column.type, sample, written) if known else None
        is_time = column.type.kind == "TIMESTAMP" and written not in _SINCE_1970
        patterns[pattern] = is_time or column.type.kind == "DATE"
    if len(patterns) == 1:
        return next(iter(patterns))
    patterns.pop(_TEXT, None)  # a STRING takes what is ISO 8601 as it is
    return next(iter(patterns)) if len(patterns) == 1 and all(patterns.values()) else None


def _object_pattern(fields: Mapping[str, _Field], members: Mapping[str, object]) -> str | None:
    if any(field.required and name not in members for name, field in fields.items()):
        return None
    pattern = ""
    for index, (name, sample) in enumerate(members.items()):
        if not _is_plain(name):
            return None
        field = fields.get(name)
        if field is not None:
            value = _part_pattern(field, sample)
            if value is None:
                return None
        else:
            value = _ANY if isinstance(sample, list | dict) else _ANY_SCALAR
        member = f'"{_escape(name)}"{_COLON}{value}'
        if index == 0:
            pattern = member
        else:
            required = field is not None and field.required
            pattern += f"{_COMMA}{member}" if required else f"(?:{_COMMA}{member})?"
    return rf"\{{{pattern}\}}"


def _part_pattern(field: _Field, sample: object) -> str | None:
    """Return the texts of a value that may be null, unless it is required."""
    value = field.pattern(sample)
    if field.required:
        return value
    if value is None:
        # A struct with a NOT NULL field shows by a sample only how it is written.
        return "null" if sample is None else None
    return f"(?:{value}|null)"


def _value_pattern(type: DataType, sample: object, timestamps: str) -> str | None:
    if not type.is_orderable:
        fields = [
            _Field(partial(_typed_pattern, part, timestamps), number in type.required)
            for number, part in enumerate(type.parts)
        ]
        if type.kind == "STRUCT":
            return _below_pattern(dict(zip(type.names, fields, strict=True)), sample)
        elements = sample if isinstance(sample, list) else []
        first = next((element for element in elements if element is not None), None)
        element = _part_pattern(fields[0], first)
        if element is None:
            return None if elements else r"\[\]"
        return _list_of(element)
    if type.kind == "TIMESTAMP":
        return _TIMESTAMPS[timestamps]
    if type.kind == "DECIMAL":
        return _decimal_pattern(type)
    if type.is_integer:
        return _quotable(_INTEGERS[type.kind])
    return {
        "BOOLEAN": _BOOLEAN,
        "DATE": f'"{_DATE}"',
        "DOUBLE": _quotable(_DOUBLE),
        "FLOAT": _quotable(_FLOAT),
        "STRING": _TEXT,
    }[type.kind]


def _typed_pattern(type: DataType, timestamps: str, sample: object) -> str | None:
    return _value_pattern(type, sample, timestamps)


def _decimal_pattern(type: DataType) -> str:
    whole_digits = type.precision - type.scale
    number_decimals = min(type.scale, DOUBLE_DIGITS // 2 + 1)
    number_digits = min(whole_digits, DOUBLE_DIGITS - number_decimals)
    text = _decimal_digits(whole_digits, type.scale)
    return f'(?:{_decimal_digits(number_digits, number_decimals)}|"{text}")'


def _decimal_digits(whole_digits: int, decimals: int) -> str:
    whole = rf"(?:0|[1-9]\d{{0,{whole_digits - 1}}})" if whole_digits else "0"
    return rf"-?{whole}(?:\.\d{{1,{decimals}}})?" if decimals else f"-?{whole}"


def _quotable(number: str) -> str:
    return f'(?:{number}|"{number}")'


def _is_plain(name: str) -> bool:
    """Whether a name stands in JSON text as it is."""
    return all(character >= " " and character not in '"\\' for character in name)


def _escape(name: str) -> str:
    return "".join(
        character if character.isalnum() or character > "\x7f" else f"\\x{ord(character):02x}"
        for character in name
    )
