"""Durations: `'10 minutes'`, `'1 hour 30 minutes'`, `INTERVAL 30 SECONDS`, as microseconds."""

import re

__all__ = ["MAX_DURATION_US", "parse_duration"]

_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
#: 100 years: keeps every time plus a duration within 64 bits of microseconds.
MAX_DURATION_US = 36_500 * _UNITS_US["day"]

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
        singular = unit.lower().removesuffix("s")
        if singular in ("month", "year", "quarter"):
            raise ValueError(
                f"{text!r}: a {singular} has no fixed length; write days, such as '30 days'"
            )
        if singular not in _UNITS_US:
            raise ValueError(f"{text!r}: {unit} is not a unit; {_HOW}")
        if sign == "-" and not signed:
            raise ValueError(f"{text!r} is negative; write 0 or more")
        total_us += int(sign + number) * _UNITS_US[singular]
        at = match.end()
    if abs(total_us) > MAX_DURATION_US:
        raise ValueError(f"{text!r} is too long; at most 36500 days are allowed")
    return total_us
