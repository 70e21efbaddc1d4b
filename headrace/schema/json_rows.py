"""Rows as JSON text, as SQL of DuckDB: the same JSON that `headrace sql --json` prints.

A decimal with decimals is text; bytes are base64; times are ISO 8601 in UTC; a MAP is an object
with the text of its keys. All of it can be appended again and is decoded to the same value, with
one exception: what is no number in JSON is the text "nan", "inf" or "-inf", and a column of numbers
takes no such text.
"""

from collections.abc import Sequence

from headrace.schema.types import DataType

__all__ = ["json_object", "key_bytes"]

_SECOND = "'%Y-%m-%dT%H:%M:%SZ'"
_FRACTION = "'%Y-%m-%dT%H:%M:%S.%fZ'"


def json_object(members: Sequence[tuple[str, str, DataType]]) -> str:
    """Return SQL for a JSON object as text, from names, SQL of the values and their types."""
    if not members:
        return "'{}'"
    parts = [f"{_text(name)}, {_plain(value, type)}" for name, value, type in members]
    return f"CAST(json_object({', '.join(parts)}) AS VARCHAR)"


def key_bytes(value: str, type: DataType) -> str:
    """Return SQL for a value as the key of a record: a text as it is, others as their JSON."""
    if type.kind == "BINARY":
        return value
    plain = _plain(value, type)
    if type.kind in ("ARRAY", "MAP", "STRUCT"):
        plain = f"CASE WHEN {value} IS NOT NULL THEN to_json({plain}) END"
    return f"encode(CAST({plain} AS VARCHAR))"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _plain(value: str, type: DataType, depth: int = 0) -> str:
    """Return SQL for a value that DuckDB writes as JSON the way we want it."""
    if type.kind == "TIMESTAMP":
        local = f"({value}) AT TIME ZONE 'UTC'"
        whole = f"epoch_us({value}) % 1000000 = 0"
        return (
            f"CASE WHEN {whole} THEN strftime({local}, {_SECOND}) "
            f"ELSE strftime({local}, {_FRACTION}) END"
        )
    if type.kind == "DECIMAL":
        return f"CAST({value} AS {'HUGEINT' if type.scale == 0 else 'VARCHAR'})"
    if type.kind in ("DOUBLE", "FLOAT"):
        # One type for both branches: a number is JSON as it is, the rest is text.
        return (
            f"CASE WHEN isfinite({value}) THEN to_json({value}) "
            f"ELSE to_json(CAST({value} AS VARCHAR)) END"
        )
    if type.kind == "DATE":
        return f"CAST({value} AS VARCHAR)"
    if type.kind == "BINARY":
        return f"base64({value})"
    if type.kind == "ARRAY":
        name = f"v{depth}"
        return f"list_transform({value}, lambda {name}: {_plain(name, type.parts[0], depth + 1)})"
    if type.kind == "MAP":
        key, item = (f"{part}{depth}" for part in "kv")
        # As JSON a number that is none would be text in quotation marks.
        number = type.parts[0].kind in ("DOUBLE", "FLOAT")
        name = key if number else _plain(key, type.parts[0], depth + 1)
        keys = f"lambda {key}: CAST({name} AS VARCHAR)"
        items = f"lambda {item}: {_plain(item, type.parts[1], depth + 1)}"
        return (
            f"map(list_transform(map_keys({value}), {keys}), "
            f"list_transform(map_values({value}), {items}))"
        )
    if type.kind == "STRUCT":
        fields = ", ".join(
            f"{_quote(name)} := {_plain(f'({value}).{_quote(name)}', part, depth)}"
            for name, part in zip(type.names, type.parts, strict=True)
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"
    return value
