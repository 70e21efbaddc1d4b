"""The strict path: one record at a time, in plain Python. It defines what decoding means.

The fast path (json.py) may only ever be quicker; where it cannot prove that it agrees with this
one, the record comes here.
"""

from collections.abc import Sequence
from functools import lru_cache

from headrace.schema.json_text import Dead, parse_object
from headrace.schema.json_values import TIMESTAMP_UNITS, Convert, make_converter
from headrace.schema.types import Column

__all__ = ["Dead", "decode_strict"]


def decode_strict(
    columns: Sequence[Column], value: bytes | None, timestamp_format: str | None = None
) -> dict[str, object]:
    """Return the value of every column, None where the field is missing or null.

    A TIMESTAMP is a datetime in UTC, a MAP a list of pairs, a STRUCT a dict. Dead: why not.
    """
    members = parse_object(value)
    row: dict[str, object] = {}
    for name, nullable, convert in _plan(tuple(columns), timestamp_format):
        part = members.get(name)
        if part is None:
            if not nullable:
                problem = "is null" if name in members else "is missing"
                raise Dead(f"{problem}, and the column is NOT NULL", name)
            row[name] = None
            continue
        try:
            row[name] = convert(part)
        except Dead as dead:
            raise dead.within(name) from None
    return row


@lru_cache(maxsize=64)
def _plan(
    columns: tuple[Column, ...], timestamp_format: str | None
) -> list[tuple[str, bool, Convert]]:
    if timestamp_format is not None and timestamp_format not in TIMESTAMP_UNITS:
        raise ValueError(
            f"timestamp_format is {timestamp_format!r}; write one of {', '.join(TIMESTAMP_UNITS)}"
        )
    return [
        (column.name, column.nullable, make_converter(column.type, timestamp_format))
        for column in columns
    ]
