r"""Shapes of records: regular expressions that prove a record easy.

A shape is learnt from one record: the order of its keys, and for every key the texts that are
beyond doubt for its column. It promises, for any valid UTF-8 text that it matches:
- the text is a JSON object as RFC 8259 writes it, and no key of ours stands in it twice;
- no NOT NULL column is missing or null;
- DuckDB's `json_transform` to `plan_structure` and a cast to the columns' Arrow types give
  the very values of the strict path. What DuckDB would round, guess or ignore does not match.
Not promised: that every such record matches. What does not match is decoded strictly.

The expressions are RE2's: no backtracking, so hostile text cannot make matching slow. They have
one more freedom than the sample: keys after the first may be missing unless they are NOT NULL.
"""

from collections.abc import Collection, Mapping, Sequence

from headrace.schema.types import Column, DataType

__all__ = ["learn_shape", "plan_structure"]

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


def plan_structure(columns: Sequence[Column], timestamps: str) -> dict[str, object]:
    """Return the columns that may take the fast path, as `json_transform` is told them.

    `timestamps` says how they are written: `utc`, `zoned`, or in `seconds`, `millis` or `micros`
    since 1970, which are read as BIGINT. FLOAT is read as DOUBLE, as the strict path reads it, so
    that both round the same way twice.
    """
    # DuckDB does not tell names apart that differ only in case.
    if len({column.name.lower() for column in columns}) < len(columns):
        return {}
    structures = {column.name: _structure(column.type, timestamps) for column in columns}
    return {
        name: structure
        for name, structure in structures.items()
        if structure is not None and _is_plain(name)
    }


def learn_shape(
    columns: Sequence[Column], members: Mapping[str, object], timestamps: str
) -> str | None:
    """Return the shape of a record with these members, an anchored RE2 expression.

    None: no shape is safe for it.
    """
    structure = plan_structure(columns, timestamps)
    if any(column.name in members and column.name not in structure for column in columns):
        return None
    types = {column.name: column.type for column in columns}
    required = {column.name for column in columns if not column.nullable}
    pattern = _object_pattern(types, required, members, timestamps)
    return None if pattern is None else rf"\A{_SPACE}{pattern}{_SPACE}\z"


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


def _object_pattern(
    types: Mapping[str, DataType],
    required: Collection[str],
    members: Mapping[str, object],
    timestamps: str,
) -> str | None:
    if not members.keys() >= set(required):
        return None
    pattern = ""
    for index, (name, sample) in enumerate(members.items()):
        if not _is_plain(name):
            return None
        if name in types:
            value = _part_pattern(types[name], sample, timestamps, required=name in required)
            if value is None:
                return None
        else:
            value = _ANY if isinstance(sample, list | dict) else _ANY_SCALAR
        member = f'"{_escape(name)}"{_COLON}{value}'
        if index == 0:
            pattern = member
        else:
            pattern += f"{_COMMA}{member}" if name in required else f"(?:{_COMMA}{member})?"
    return rf"\{{{pattern}\}}"


def _part_pattern(type: DataType, sample: object, timestamps: str, *, required: bool) -> str | None:
    """Return the texts of a value that may be null, unless it is required."""
    value = _value_pattern(type, sample, timestamps)
    if required:
        return value
    if value is None:
        # A struct with a NOT NULL field shows by a sample only how it is written.
        return "null" if sample is None else None
    return f"(?:{value}|null)"


def _value_pattern(type: DataType, sample: object, timestamps: str) -> str | None:
    if type.kind == "ARRAY":
        elements = sample if isinstance(sample, list) else []
        first = next((element for element in elements if element is not None), None)
        element = _part_pattern(type.parts[0], first, timestamps, required=0 in type.required)
        if element is None:
            return None if elements else r"\[\]"
        return _list_of(element)
    if type.kind == "STRUCT":
        members = sample if isinstance(sample, dict) else {}
        types = dict(zip(type.names, type.parts, strict=True))
        required = {type.names[number] for number in type.required}
        return _object_pattern(types, required, members, timestamps)
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
