"""The units of time that durations and intervals are written in, by their names in the singular."""

__all__ = ["MICROSECONDS", "MONTHS", "singular"]

#: Units of a fixed length.
MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
#: Units whose length depends on the date they are counted from.
MONTHS = {"month": 1, "quarter": 3, "year": 12}


def singular(unit: str) -> str:
    """Return the name of a unit as the tables have it: `Hours` is `hour`."""
    return unit.lower().removesuffix("s")
