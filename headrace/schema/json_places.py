"""Where columns stand in a record: a key, or a path of keys and of indexes of arrays.

A path begins with `$.` or `$[`: `$.meta.ts`, `$['a key'].b`, `$.items[0].price`. Anything else is
one key, whatever its characters: `@timestamp`, `a.b`. The first step is a key, since a record is an
object. What is missing on the way, or null, is null; a step into a value of another kind makes the
record dead, as a STRUCT or an ARRAY in its place would.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Union

from headrace.schema.types import Column, Step

__all__ = ["Keys", "keys_of", "parse_place", "show_place", "steps_of"]

_STEP = re.compile(r"""\.([^.\[\]'"*?\s]+)|\[(\d{1,9})\]|\['([^']+)'\]|\["([^"]+)"\]""", re.ASCII)
_HOW = "write a key, or a path such as '$.meta.ts' or '$.items[0].price'"

#: The keys of an object that columns stand at, each with its columns or with further keys; None: a
#: key that is decoded strictly.
Keys = dict[str, Union[tuple[Column, ...], "Keys", None]]


def parse_place(text: str) -> tuple[Step, ...]:
    """Return the steps of what a user wrote after FROM.

    ValueError: it is no place; the message says what to write, not where it stood.
    """
    if not text or text == "$":
        raise ValueError(f"{text!r} names no part of a record; {_HOW}")
    if not text.startswith(("$.", "$[")):
        return (text,)
    steps: list[Step] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(f"{text!r} is not a path: unexpected {text[at:]!r}; {_HOW}")
        name, index, *quoted = match.groups()
        steps.append(int(index) if index else name or quoted[0] or quoted[1])
        at = match.end()
    if not isinstance(steps[0], str):
        raise ValueError(  # noqa: TRY004 - a text of the user's, not a type of ours
            f"{text!r} is not a path: a record is an object; begin with a key"
        )
    return tuple(steps)


def show_place(steps: Sequence[Step]) -> str:
    """Return steps as a user writes them."""
    if len(steps) == 1 and not str(steps[0]).startswith(("$.", "$[")):
        return str(steps[0])
    shown = "$"
    for step in steps:
        if isinstance(step, int):
            shown += f"[{step}]"
        elif _STEP.fullmatch(f".{step}"):
            shown += f".{step}"
        else:
            quote = '"' if "'" in step else "'"
            shown += f"[{quote}{step}{quote}]"
    return shown


def steps_of(column: Column) -> tuple[Step, ...]:
    """Return the steps to a column: its own name, unless it says where it stands."""
    return column.path or (column.name,)


def keys_of(columns: Iterable[Column]) -> Keys:
    """Return the columns by the keys that lead to them.

    A key is None where two columns want different parts of its value, or an element of an array.
    Empty: two keys of one object differ only in case, and DuckDB does not tell them apart.
    """
    keys: Keys = {}
    for column in columns:
        here = keys
        steps = steps_of(column)
        for step, following in zip(steps, (*steps[1:], ""), strict=True):
            assert isinstance(step, str)
            found: tuple[Column, ...] | Keys | None
            if isinstance(following, int):
                here[step] = None
            found = here.setdefault(step, {} if following else ())
            if not following and isinstance(found, tuple):
                here[step] = (*found, column)
            elif following and isinstance(found, dict):
                here = found
                continue
            else:
                here[step] = None
            break
    return {} if _differ_in_case(keys) else keys


def _differ_in_case(keys: Keys) -> bool:
    return len({key.lower() for key in keys}) < len(keys) or any(
        _differ_in_case(below) for below in keys.values() if isinstance(below, dict)
    )
