"""The strict path: one record at a time, in plain Python. It defines what decoding means.

The fast path (json.py) may only ever be quicker; where it cannot prove that it agrees with this
one, the record comes here.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from headrace.schema.json_places import show_place, steps_of
from headrace.schema.json_text import Dead, parse_object, show
from headrace.schema.json_values import TIMESTAMP_UNITS, Convert, make_converter, unit_of
from headrace.schema.types import Column, Step

__all__ = ["Dead", "decode_members", "decode_strict"]


def decode_strict(
    columns: Sequence[Column], value: bytes | None, timestamp_format: str | None = None
) -> dict[str, object]:
    """Return the value of every column, None where the field is missing or null.

    A TIMESTAMP is a datetime in UTC, a MAP a list of pairs, a STRUCT a dict. Dead: why not.
    """
    return decode_members(columns, parse_object(value), timestamp_format)


def decode_members(
    columns: Sequence[Column], members: dict[str, object], timestamp_format: str | None = None
) -> dict[str, object]:
    """Return the same of the members of an object. Dead: why not."""
    row: dict[str, object] = {}
    for name, label, steps, nullable, convert in _plan(tuple(columns), timestamp_format):
        if len(steps) == 1:
            part, missing = members.get(steps[0]), steps[0] not in members
        else:
            part, missing = _follow(members, steps, label)
        if part is None:
            if not nullable:
                problem = "is missing" if missing else "is null"
                raise Dead(f"{problem}, and the column is NOT NULL", label)
            row[name] = None
            continue
        try:
            row[name] = convert(part)
        except Dead as dead:
            raise dead.within(label) from None
    return row


def _follow(record: dict[str, object], steps: tuple[Step, ...], label: str) -> tuple[object, bool]:
    """Return the value that steps lead to, or None, and whether it is missing."""
    value: object = record
    for at, step in enumerate(steps):
        missing = value is None
        if isinstance(value, list) and isinstance(step, int):
            missing = step >= len(value)
            value = None if missing else value[step]
        elif isinstance(value, dict) and isinstance(step, str):
            missing = step not in value
            value = value.get(step)
        elif not missing:
            wanted = "an array" if isinstance(step, int) else "an object"
            raise Dead(f"{show(value)} at {show_place(steps[:at])} is not {wanted}", label)
    return value, missing


@lru_cache(maxsize=64)
def _plan(
    columns: tuple[Column, ...], timestamp_format: str | None
) -> list[tuple[str, str, tuple[Any, ...], bool, Convert]]:
    if timestamp_format is not None and timestamp_format not in TIMESTAMP_UNITS:
        raise ValueError(
            f"timestamp_format is {timestamp_format!r}; write one of {', '.join(TIMESTAMP_UNITS)}"
        )
    return [
        (
            column.name,
            f"{column.name} (FROM '{show_place(column.path)}')" if column.path else column.name,
            steps_of(column),
            column.nullable,
            make_converter(column.type, unit_of(column, timestamp_format)),
        )
        for column in columns
    ]
