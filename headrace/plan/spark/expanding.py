"""Make several rows of a record: the columns that the expansions of a shape add to its input.

For the expansion with the number 0 these are
- `__out0`: why a row is left out before it, 0 if it is not (see below);
- `__x0`: its argument, NULL for a row that is left out; of windows, the numbers of those around
  the record's time;
- `__n0`: the number of the element, from 0; NULL where there is none, and then there is one row;
- `__e0_0`, `__e0_1`, ...: the element.
A last level has `__out`. A row that is left out stays one row to the end, so that it is counted.
"""

from dataclasses import dataclass

from headrace.model.definitions import Stream
from headrace.model.nodes import Window
from headrace.plan.linear import ordinal_column
from headrace.plan.shape import Expansion, Shape
from headrace.plan.spark.cutting import (
    edge_time,
    first_window,
    last_window,
    unit_of,
    window_end,
    window_start,
)
from headrace.plan.spark.names import event_time_of
from headrace.time.windows import Cut

__all__ = [
    "EMPTY", "ENDED", "LEFT_OUT", "SKIPPED", "Expand", "Level", "expansion_levels", "is_first",
]  # fmt: skip

#: A condition before its first expansion leaves the record out; or it is a side row.
LEFT_OUT = 1
#: The first expansion makes no row of the record.
EMPTY = 2
#: The next expansion makes no row of a row, or a condition before it leaves it out.
ENDED = 3
#: A condition leaves a row of the last expansion out.
SKIPPED = 4

_NO_TIME = "its windows would reach outside of the years 1 to 9999"


@dataclass(frozen=True)
class Expand:
    """A level that makes several rows of one."""

    text: str  # a generator and its columns


#: Columns as (name, text), or a generator.
Level = tuple[tuple[str, str], ...] | Expand


def expansion_levels(shape: Shape, stream: Stream) -> tuple[Level, ...]:
    """Return the levels of all expansions of a shape, none if it has none."""
    levels: list[Level] = []
    out = f"CASE WHEN __side IS NOT NULL THEN {LEFT_OUT} ELSE 0 END"
    for number, expansion in enumerate(shape.expansions):
        out = _unless(out, expansion.where, LEFT_OUT if number == 0 else ENDED)
        here = f"__out{number}"
        levels.append(((here, out),))
        levels += _expand(number, expansion, here, stream)
        ordinal = ordinal_column(number)
        made_none = "false" if expansion.outer else f"{ordinal} IS NULL"
        code = EMPTY if number == 0 else ENDED
        out = f"CASE WHEN {here} <> 0 THEN {here} WHEN {made_none} THEN {code} ELSE 0 END"
    if levels:
        levels.append((("__out", _unless(out, shape.where, SKIPPED)),))
    return tuple(levels)


def is_first(shape: Shape) -> str:
    """Return 1 for one row of each record, and 0 for its others."""
    ordinals = (ordinal_column(number) for number in range(len(shape.expansions)))
    zero = " AND ".join(f"coalesce({ordinal}, 0) = 0" for ordinal in ordinals)
    return f"CAST({zero} AS BIGINT)"


def _unless(out: str, where: str | None, code: int) -> str:
    if where is None:
        return out
    return (
        f"CASE WHEN ({out}) <> 0 THEN ({out}) WHEN coalesce({where}, false) THEN 0 ELSE {code} END"
    )


def _expand(number: int, expansion: Expansion, out: str, stream: Stream) -> list[Level]:
    given, ordinal = f"__x{number}", ordinal_column(number)
    if expansion.window is not None:
        return _expand_windows(number, expansion, expansion.window, out, stream)
    argument = f"CASE WHEN {out} = 0 THEN ({expansion.argument}) END"
    columns = ", ".join(expansion.columns)
    if expansion.function != "inline":
        explode = Expand(
            f"posexplode_outer({given}) AS ({', '.join([ordinal, *expansion.columns])})"
        )
        return [((given, argument),), explode]
    element = f"__s{number}"
    # One struct at a time, so that its fields go by their places, as those of inline do.
    single = f"CASE WHEN {ordinal} IS NOT NULL THEN array({element}) END"
    return [
        ((given, argument),),
        Expand(f"posexplode_outer({given}) AS ({ordinal}, {element})"),
        Expand(f"inline_outer({single}) AS ({columns})"),
    ]


def _expand_windows(
    number: int, expansion: Expansion, window: Window, out: str, stream: Stream
) -> list[Level]:
    cut = Cut.of(window)
    given, ordinal, unit = f"__x{number}", ordinal_column(number), f"__u{number}"
    time = f"({expansion.argument})" if expansion.argument else event_time_of(stream)
    lowest, end_unit = cut.times
    numbers = (
        f"CASE WHEN {out} <> 0 THEN NULL "
        f"WHEN {unit} BETWEEN {lowest} AND {end_unit - 1} "
        f"THEN sequence({first_window(cut, unit)}, {last_window(cut, unit)}) "
        f"ELSE raise_error('{_NO_TIME}') END"
    )
    which = f"__w{number}"
    start, end = window_start(cut, which), window_end(cut, which)
    last_instant = f"timestamp_micros(unix_micros({edge_time(cut, end)}) - 1)"
    edges = (edge_time(cut, start), edge_time(cut, end), last_instant)
    return [
        ((unit, unit_of(cut, f"CASE WHEN {out} = 0 THEN {time} END")),),
        ((given, numbers),),
        Expand(f"posexplode_outer({given}) AS ({ordinal}, {which})"),
        tuple(zip(expansion.columns, edges, strict=True)),
    ]
