"""Times and sizes as people write them."""

import re

from headrace.errors import UsageError

__all__ = ["duration_text", "parse_bytes", "parse_seconds"]

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1}
_BYTES |= {f"{unit}b": 1000**power for power, unit in enumerate("kmgt", 1)}
_BYTES |= {f"{unit}ib": 1024**power for power, unit in enumerate("kmgt", 1)}


def parse_seconds(option: str, text: str) -> float:
    """Return the seconds of a text such as 30s, 2m, 1h or 7d. UsageError names the option."""
    number = _parse(text, _SECONDS)
    if number is None:
        raise UsageError(f"{option} {text}: write a time such as 30s, 2m, 1h or 7d")
    return number


def parse_bytes(option: str, text: str) -> int:
    """Return the bytes of a text such as 500MB or 2GiB. UsageError names the option."""
    number = _parse(text, _BYTES)
    if number is None or number < 1:
        raise UsageError(f"{option} {text}: write a size such as 1000000, 500MB or 2GiB")
    return int(number)


def duration_text(microseconds: int) -> str:
    """Return a duration with two units at most: 250 ms, 1.5 s, 2 m 30 s, 3 h, 5 d 2 h."""
    if microseconds < 1_000:
        return f"{microseconds} us" if microseconds else "0 s"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.3g} ms"
    if microseconds < 60_000_000:
        return f"{microseconds / 1_000_000:.3g} s"
    seconds = round(microseconds / 1_000_000)
    units = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m")]
    found = [f"{number} {unit}" for number, unit in [*units, (seconds % 60, "s")] if number]
    return " ".join(found[:2])


def _parse(text: str, units: dict[str, int]) -> float | None:
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([a-zA-Z]*)", text.strip())
    if found is None or found[2].lower() not in units or float(found[1]) == 0:
        return None
    return float(found[1]) * units[found[2].lower()]
