"""Intervals that are written out: how many months, or how many microseconds."""

import re

from sqlglot import exp

from headrace.model.units import MICROSECONDS, MONTHS, singular

__all__ = ["parse_interval"]

_PAIR = re.compile(r"\s*([+-]?\s*\d{1,12})\s+([a-z]+)", re.IGNORECASE)
_HOW = "write whole numbers and units, such as INTERVAL 90 SECONDS or INTERVAL '1 hour 30 minutes'"


def parse_interval(interval: exp.Interval) -> tuple[int, int]:
    """Return the months and the microseconds of an interval, one of which is 0. ValueError."""
    value, unit = interval.this, interval.args.get("unit")
    is_literal = isinstance(value, exp.Literal) and isinstance(unit, exp.Var | None)
    if not is_literal:
        raise ValueError(f"this interval is not a literal of one unit; {_HOW}")
    text = value.name if unit is None else f"{value.name.strip()} {unit.name}"
    months = microseconds = at = 0
    while at < len(text.rstrip()):
        found = _PAIR.match(text, at)
        word = singular(found[2]) if found else ""
        if found is None or word not in (*MONTHS, *MICROSECONDS):
            raise ValueError(f"INTERVAL '{text}' cannot be read over aggregates; {_HOW}")
        number = int("".join(found[1].split()))
        months += number * MONTHS.get(word, 0)
        microseconds += number * MICROSECONDS.get(word, 0)
        at = found.end()
    if months and microseconds:
        raise ValueError("months and days do not mix in an interval; add them one after the other")
    return months, microseconds
