"""The types of columns: one value, four spellings (ours, Spark DDL, Arrow, DuckDB).

Promises:
- `parse_type(t.ddl) == t` for every type. Spark reads `t.sql` as the same type, but for NOT NULL
  within it, which only decoding knows; where there is none, `t.sql == t.ddl`.
- `t.arrow` and `t.duckdb` hold every value of the type without loss. TIMESTAMP is an instant:
  microseconds since 1970 in UTC.
- What is refused is refused with the type to write instead.
Not kept: the length of VARCHAR(n) and CHAR(n), and the precision of TIMESTAMP(p). They say how
other systems store a value; here a text has any length, a time has microseconds, and no value is
cut, padded or rounded to fit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import pyarrow as pa

__all__ = [
    "TIMESTAMP_FORMATS",
    "Column",
    "DataType",
    "Kind",
    "Step",
    "parse_type",
]

#: A step on the way to a value within a record: a key, or an index of an array.
Step = str | int
#: How timestamps are written: as text, or as numbers since 1970.
TIMESTAMP_FORMATS = ("iso8601", "seconds", "millis", "micros")

Kind = Literal[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "ARRAY",
    "MAP",
    "STRUCT",
]

MAX_PRECISION = 38  # of a DECIMAL; the same in Spark, Arrow (128 bits) and DuckDB
MAX_DEPTH = 32  # of types within types

_NESTED = ("ARRAY", "MAP", "STRUCT")
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
_DUCKDB = {"INT": "INTEGER", "STRING": "VARCHAR", "BINARY": "BLOB", "TIMESTAMP": "TIMESTAMPTZ"}
_ALIASES = {
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "CHARACTER": "STRING",
    "TEXT": "STRING",
    "BYTES": "BINARY",
    "VARBINARY": "BINARY",
    "ROW": "STRUCT",
}
# Types that other systems give a length or a precision, and the largest that they know.
_LENGTHS = {
    "VARCHAR": 2**31 - 1,
    "CHAR": 2**31 - 1,
    "CHARACTER": 2**31 - 1,
    "VARBINARY": 2**31 - 1,
    "BINARY": 2**31 - 1,
    "TIMESTAMP": 9,
    "TIMESTAMP_LTZ": 9,
}
# Words that may follow the first word of a type, and say nothing more.
_SECOND_WORDS = {"CHARACTER": ("VARYING",), "DOUBLE": ("PRECISION",)}
_ADVICE = {
    "JSON": "write STRING, which takes any JSON value as its text",
    "VARIANT": "write STRING, which takes any JSON value as its text",
    "TIMESTAMP_NTZ": "write TIMESTAMP; a time without a zone is read as UTC",
    "DATETIME": "write TIMESTAMP; a time without a zone is read as UTC",
    "TIMESTAMPTZ": "write TIMESTAMP, which is an instant in UTC",
    "TIME": "write STRING, or TIMESTAMP for an instant",
    "INTERVAL": "write BIGINT, and say the unit in the column's name",
    "UUID": "write STRING",
}
_TOKEN = re.compile(r"\s*(\w+|`(?:[^`]|``)+`|[<>(),:])")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class DataType:
    """A type. `parts` are an ARRAY's element, a MAP's key and value, or a STRUCT's field types.

    `required` are the numbers of the parts that are NOT NULL; a MAP's key never is null.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    parts: tuple["DataType", ...] = ()
    names: tuple[str, ...] = ()
    required: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"there is no type {self.kind}")
        if self.kind == "DECIMAL":
            if not 1 <= self.precision <= MAX_PRECISION:
                raise ValueError(
                    f"DECIMAL({self.precision},{self.scale}) has {self.precision} digits; "
                    f"write 1 to {MAX_PRECISION}"
                )
            if not 0 <= self.scale <= self.precision:
                raise ValueError(
                    f"DECIMAL({self.precision},{self.scale}) has {self.scale} decimals; "
                    f"write 0 to {self.precision}"
                )
        elif self.precision or self.scale:
            raise ValueError(f"{self.kind} takes no precision")
        wanted = {"ARRAY": 1, "MAP": 2, "STRUCT": len(self.names)}.get(self.kind, 0)
        if len(self.parts) != wanted or (self.kind == "STRUCT" and not self.names):
            raise ValueError(f"{self.kind} has the wrong number of types within it")
        if not self.required <= set(range(self.kind == "MAP", len(self.parts))):
            raise ValueError(f"{self.kind} has no such part to be NOT NULL")
        if self.kind == "MAP" and not self.parts[0].is_orderable:
            raise ValueError(
                f"a MAP's key is a single value, not {self.parts[0].sql}; write MAP<STRING, ...>"
            )
        # Spark and DuckDB do not tell such names apart, so a value could land in the other field.
        if len({name.lower() for name in self.names}) < len(self.names):
            raise ValueError(f"two fields of {self.sql} have the same name (case does not count)")

    @property
    def is_integer(self) -> bool:
        """Whether its values are whole numbers."""
        return self.kind in _INTEGERS

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.is_integer or self.kind in ("FLOAT", "DOUBLE", "DECIMAL")

    @property
    def is_orderable(self) -> bool:
        """Whether its values have an order: every type without types within it."""
        return self.kind not in _NESTED

    @property
    def holds_timestamp(self) -> bool:
        """Whether it is a TIMESTAMP, or has one within it."""
        return self.kind == "TIMESTAMP" or any(part.holds_timestamp for part in self.parts)

    @property
    def is_comparable(self) -> bool:
        """Whether its values can be told apart and be keys: all but a MAP and what holds one."""
        return self.kind != "MAP" and all(part.is_comparable for part in self.parts)

    @property
    def has_two_zeros(self) -> bool:
        """Whether equal values may look different: 0.0 and -0.0, also within others."""
        return self.kind in ("FLOAT", "DOUBLE") or any(part.has_two_zeros for part in self.parts)

    @cached_property
    def sql(self) -> str:
        """The type as Spark's DDL writes it, in upper case, without NOT NULL within it."""
        return self._spelled([part.sql for part in self.parts])

    @cached_property
    def ddl(self) -> str:
        """The type as CREATE STREAM writes it, with NOT NULL within it."""
        parts = [
            f"{part.ddl} NOT NULL" if number in self.required else part.ddl
            for number, part in enumerate(self.parts)
        ]
        return self._spelled(parts)

    def _spelled(self, parts: Sequence[str]) -> str:
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind == "STRUCT":
            fields = zip(self.names, parts, strict=True)
            return f"STRUCT<{', '.join(f'{_quote(name)}: {part}' for name, part in fields)}>"
        return f"{self.kind}<{', '.join(parts)}>" if parts else self.kind

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of its columns."""
        if self.kind == "DECIMAL":
            return pa.decimal128(self.precision, self.scale)
        if self.kind == "ARRAY":
            return pa.list_(self.parts[0].arrow)
        if self.kind == "MAP":
            return pa.map_(self.parts[0].arrow, self.parts[1].arrow)
        if self.kind == "STRUCT":
            fields = zip(self.names, self.parts, strict=True)
            return pa.struct([pa.field(name, part.arrow) for name, part in fields])
        return _ARROW[self.kind]

    @cached_property
    def duckdb(self) -> str:
        """The type as DuckDB writes it."""
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind == "ARRAY":
            return f"{self.parts[0].duckdb}[]"
        if self.kind == "MAP":
            return f"MAP({self.parts[0].duckdb}, {self.parts[1].duckdb})"
        if self.kind == "STRUCT":
            fields = zip(self.names, self.parts, strict=True)
            quoted = (
                f'"{name.replace(chr(34), chr(34) * 2)}" {part.duckdb}' for name, part in fields
            )
            return f"STRUCT({', '.join(quoted)})"
        return _DUCKDB.get(self.kind, self.kind)

    def __str__(self) -> str:
        return self.ddl


@dataclass(frozen=True)
class Column:
    """A column's name, its type, and whether it may be null.

    It stands in the record at `path`, else under its name; case counts. `format` says how its
    timestamps are written; None: as the stream says.
    """

    name: str
    type: DataType
    nullable: bool = True
    path: tuple[Step, ...] = ()
    format: str | None = None  # one of TIMESTAMP_FORMATS


def parse_type(text: str) -> DataType:
    """Return the type that a user's SQL or Spark's simpleString names.

    ValueError: not a type, or one we refuse; the message says what to write, not where it stood.
    """
    # Not sqlglot's parser: it reads `int int` as INT and drops what it does not know of a field.
    tokens: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise ValueError(f"{text!r} is not a type: unexpected {stripped[at:].lstrip()[:20]!r}")
        tokens.append(match.group(1))
        at = match.end()
    reader = _TypeReader(text, tokens)
    result = reader.read_type()
    if reader.peek():
        raise ValueError(f"{text!r} is not a type: unexpected {reader.peek()!r} after {result.sql}")
    return result


class _TypeReader:
    """Reads one type from a list of tokens, front to back."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            wanted = " or ".join(map(repr, expected)) or "a type"
            found = repr(token) if token else "its end"
            raise ValueError(f"{self.text!r} is not a type: {wanted} is missing before {found}")
        self.at += 1
        return token

    def read_type(self) -> DataType:
        word = self.take().upper()
        kind = _ALIASES.get(word, word)
        if word in _ADVICE:
            raise ValueError(f"{word} is not a type of Headrace: {_ADVICE[word]}")
        if kind == "DECIMAL":
            return self.read_decimal()
        if kind in _NESTED:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ValueError(f"types are nested more than {MAX_DEPTH} deep")
            # Flink writes a ROW in either way.
            opening = self.take("<", "(") if word == "ROW" else self.take("<")
            nested = self.read_nested(kind)
            self.take(">" if opening == "<" else ")")
            self.depth -= 1
            return nested
        if kind not in _ARROW:
            known = ", ".join(get_args(Kind))
            raise ValueError(f"there is no type {word}; the types are {known}")
        if self.peek().upper() in _SECOND_WORDS.get(word, ()):
            self.take()
        self.read_length(word, kind)
        if kind == "TIMESTAMP" and self.peek().upper() == "WITH":
            for expected in ("WITH", "LOCAL", "TIME", "ZONE"):
                if self.take().upper() != expected:
                    raise ValueError(f"{self.text!r} is not a type: write TIMESTAMP")
        return DataType(kind)  # type: ignore[arg-type]  # _ARROW's keys are kinds

    def read_length(self, word: str, kind: str) -> None:
        """Pass over the length of a text or the precision of a time: values keep their own."""
        if self.peek() != "(":
            return
        if word not in _LENGTHS:
            raise ValueError(f"{word} takes no parameters; write {kind}")
        self.take("(")
        token, least = self.take(), int(kind != "TIMESTAMP")
        is_number = token.isascii() and token.isdigit() and len(token) < 11
        if not (is_number and least <= int(token) <= _LENGTHS[word]):
            raise ValueError(
                f"{word}({token}) is not a type; write {least} to {_LENGTHS[word]}, or {kind}"
            )
        self.take(")")

    def accept_not_null(self) -> bool:
        """Pass over NOT NULL, or NULL, behind a type; return whether it is NOT NULL."""
        if self.peek().upper() == "NOT":
            self.take()
            if self.take().upper() != "NULL":
                raise ValueError(f"{self.text!r} is not a type: NULL is missing after NOT")
            return True
        if self.peek().upper() == "NULL":
            self.take()
        return False

    def read_decimal(self) -> DataType:
        if self.peek() != "(":
            return DataType("DECIMAL", 10, 0)  # as Spark reads it
        self.take("(")
        precision, scale = self.read_number(), 0
        if self.take(",", ")") == ",":
            scale = self.read_number()
            self.take(")")
        return DataType("DECIMAL", precision, scale)

    def read_number(self) -> int:
        token = self.take()
        if not (token.isascii() and token.isdigit() and len(token) < 4):
            raise ValueError(f"{self.text!r} is not a type: {token!r} is not a number of digits")
        return int(token)

    def read_nested(self, kind: str) -> DataType:
        required: list[int] = []

        def read_part(number: int) -> DataType:
            part = self.read_type()
            if self.accept_not_null():
                required.append(number)
            return part

        if kind == "ARRAY":
            return DataType("ARRAY", parts=(read_part(0),), required=frozenset(required))
        if kind == "MAP":
            key = read_part(0)
            self.take(",")
            value = read_part(1)
            return DataType("MAP", parts=(key, value), required=frozenset(required) - {0})
        names: list[str] = []
        parts: list[DataType] = []
        while True:
            name = self.take()
            if not (name[0] == "`" or name[0].isalnum() or name[0] == "_"):
                raise ValueError(f"{self.text!r} is not a type: a field's name is missing")
            names.append(name[1:-1].replace("``", "`") if name[0] == "`" else name)
            if self.peek() == ":":
                self.take(":")
            parts.append(read_part(len(parts)))
            if self.peek() != ",":
                return DataType(
                    "STRUCT", parts=tuple(parts), names=tuple(names), required=frozenset(required)
                )
            self.take(",")


def _quote(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
