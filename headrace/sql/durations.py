"""Durations: `'10 minutes'`, `'1 hour 30 minutes'`, `INTERVAL 30 SECONDS`, as microseconds."""

import re

from headrace.model.units import MICROSECONDS, MONTHS, singular

__all__ = ["MAX_DURATION_US", "parse_duration"]

#: 100 years: keeps every time plus a duration within 64 bits of microseconds.
MAX_DURATION_US = 36_500 * MICROSECONDS["day"]

_PART = re.compile(r"([+-]?)\s*(\d{1,18})\s+([a-z]+)\s*", re.IGNORECASE)
_HOW = "write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'"


def parse_duration(text: str, *, signed: bool = False) -> int:
    """Return a duration in microseconds.

    ValueError: not a duration, negative (unless `signed`), too long, or in months or years; says
    what to write.
    """
    at = 0
    total_us = 0
    stripped = text.strip()
    if not stripped:
        raise ValueError(f"{text!r} is not a duration; {_HOW}")
    while at < len(stripped):
        match = _PART.match(stripped, at)
        if match is None:
            raise ValueError(f"{text!r} is not a duration; {_HOW}")
        sign, number, unit = match.groups()
        name = singular(unit)
        if name in MONTHS:
            raise ValueError(
                f"{text!r}: a {name} has no fixed length; write days, such as '30 days'"
            )
        if name not in MICROSECONDS:
            raise ValueError(f"{text!r}: {unit} is not a unit; {_HOW}")
        if sign == "-" and not signed:
            raise ValueError(f"{text!r} is negative; write 0 or more")
        total_us += int(sign + number) * MICROSECONDS[name]
        at = match.end()
    if abs(total_us) > MAX_DURATION_US:
        raise ValueError(f"{text!r} is too long; at most 36500 days are allowed")
    return total_us
