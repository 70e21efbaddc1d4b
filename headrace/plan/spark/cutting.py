"""How windows cut time, as Spark SQL: the formulas of time/windows.py over columns.

`unit` is the name of a column, or cheap to say twice.
"""

from headrace.model.windows import DAY_US
from headrace.time.windows import Cut

__all__ = [
    "day_start",
    "edge_time",
    "first_window",
    "floor",
    "last_window",
    "pane_of",
    "tumbling_start",
    "unit_of",
    "window_end",
    "window_start",
]


def floor(value: str, step: int) -> str:
    """Return a whole number divided and rounded down; right below zero too."""
    return value if step == 1 else f"(({value} - pmod({value}, {step}L)) DIV {step}L)"


def unit_of(cut: Cut, time: str) -> str:
    """Return the unit that a timestamp falls into."""
    if cut.zone is None:
        return f"unix_micros({time})"
    day = f"unix_date(CAST(from_utc_timestamp({time}, '{cut.zone}') AS DATE))"
    # Clocks that are set back over midnight show a date twice.
    return (
        f"CAST(CASE WHEN {time} >= {edge_time(cut, f'({day} + 1)')} THEN {day} + 1 "
        f"WHEN {time} < {edge_time(cut, day)} THEN {day} - 1 ELSE {day} END AS BIGINT)"
    )


def edge_time(cut: Cut, edge: str) -> str:
    """Return the timestamp of an edge, which is a unit."""
    return f"timestamp_micros({edge})" if cut.zone is None else day_start(cut.zone, edge)


def day_start(zone: str, day: str) -> str:
    """Return when a day of a time zone begins; days are counted from 1970-01-01."""
    return f"to_utc_timestamp(timestamp_micros({day} * {DAY_US}L), '{zone}')"


def tumbling_start(cut: Cut, unit: str) -> str:
    """Return the edge where the only window around a unit begins."""
    return f"({unit} - pmod({_plus(unit, -cut.offset)}, {cut.size}L))"


def first_window(cut: Cut, unit: str) -> str:
    """Return the number of the first window around a unit, or of the first that ends later."""
    shift = -cut.offset if cut.cumulative else -cut.offset - cut.size
    return f"({floor(_plus(unit, shift), cut.hop)} + 1)"


def last_window(cut: Cut, unit: str) -> str:
    """Return the number of the last window around a unit."""
    if cut.cumulative:
        steps = cut.size // cut.hop
        return f"(({floor(_plus(unit, -cut.offset), cut.size)} + 1) * {steps}L)"
    return floor(_plus(unit, -cut.offset), cut.hop)


def pane_of(cut: Cut, unit: str) -> str:
    """Return the number of the pane around a unit."""
    return floor(_plus(unit, -cut.offset), cut.pane)


def window_start(cut: Cut, number: str) -> str:
    """Return the edge where a window begins."""
    if cut.cumulative:
        steps = cut.size // cut.hop
        return _plus(f"{floor(f'({number} - 1)', steps)} * {cut.size}L", cut.offset)
    return _plus(f"{number} * {cut.hop}L", cut.offset)


def window_end(cut: Cut, number: str) -> str:
    """Return the edge where a window ends."""
    shift = cut.offset if cut.cumulative else cut.offset + cut.size
    return _plus(f"{number} * {cut.hop}L", shift)


def _plus(value: str, shift: int) -> str:
    return value if shift == 0 else f"({value} {'+' if shift > 0 else '-'} {abs(shift)})"
