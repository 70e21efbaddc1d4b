"""How windows cut time, as SQL of DuckDB: the formulas of time/windows.py over columns."""

from headrace.model.windows import DAY_US
from headrace.time.windows import Cut

__all__ = ["day_start", "edge_time", "floor", "last_window", "window_end", "window_start"]


def floor(value: str, step: int) -> str:
    """Return a whole number divided and rounded down; right below zero too."""
    return value if step == 1 else f"(({value} - ({value} % {step} + {step}) % {step}) // {step})"


def edge_time(cut: Cut, edge: str) -> str:
    """Return the timestamp of an edge."""
    return f"make_timestamptz({edge})" if cut.zone is None else day_start(cut.zone, edge)


def day_start(zone: str, day: str) -> str:
    """Return when a day of a time zone begins; days are counted from 1970-01-01."""
    midnight = f"make_timestamp({day} * {DAY_US})"
    # Of a midnight that comes twice DuckDB takes the later one, and Spark the earlier.
    earlier = (
        f"((make_timestamp(({day} - 1) * {DAY_US}) AT TIME ZONE '{zone}') "
        f"+ to_microseconds({DAY_US}))"
    )
    return (
        f"(CASE WHEN ({earlier} AT TIME ZONE '{zone}') = {midnight} THEN {earlier} "
        f"ELSE {midnight} AT TIME ZONE '{zone}' END)"
    )


def window_start(cut: Cut, number: str) -> str:
    """Return the edge where a window begins."""
    if cut.cumulative:
        steps = cut.size // cut.hop
        return _plus(f"{floor(f'({number} - 1)', steps)} * {cut.size}", cut.offset)
    return _plus(f"{number} * {cut.hop}", cut.offset)


def window_end(cut: Cut, number: str) -> str:
    """Return the edge where a window ends."""
    shift = cut.offset if cut.cumulative else cut.offset + cut.size
    return _plus(f"{number} * {cut.hop}", shift)


def last_window(cut: Cut, pane: str) -> str:
    """Return the number of the last window that holds a pane."""
    if cut.cumulative:
        steps = cut.size // cut.hop
        return f"(({floor(pane, steps)} + 1) * {steps})"
    return floor(pane, cut.hop // cut.pane)


def _plus(value: str, shift: int) -> str:
    return value if shift == 0 else f"({value} {'+' if shift > 0 else '-'} {abs(shift)})"
