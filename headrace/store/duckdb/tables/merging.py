"""How states merge in DuckDB: every `Merge` as SQL over two states, and over any number of them."""

from dataclasses import dataclass

from headrace.aggregates.words import Merge
from headrace.plan.tables import TableColumn

__all__ = ["combine", "differs", "is_rounded", "merge"]

# Either state may be NULL: nothing was added.
_ADD = "coalesce({old} + {new}, {old}, {new})"


def _squares(side: str) -> str:
    """Return the sum of squares of one side of pairs: what rounding is measured by."""
    return f"({{old}}.m2_{side} + {{old}}.n * {{old}}.mean_{side} ** 2)"


def _apart(side: str) -> str:
    """Return whether one side of pairs has other moments."""
    return (
        f"abs({{old}}.m2_{side} - {{new}}.m2_{side}) > 1e-9 * {_squares(side)} "
        f"OR {{old}}.n * ({{old}}.mean_{side} - {{new}}.mean_{side}) ** 2 "
        f"> 1e-18 * {_squares(side)}"
    )


def _merged_powers() -> str:
    """Return Pébay's formulas for two states of POWERS; `d` is how far apart the means are."""
    shared = "CAST({old}.n AS DOUBLE) * {new}.n / ({old}.n + {new}.n)"
    old = "(CAST({old}.n AS DOUBLE) / ({old}.n + {new}.n))"
    new = "(CAST({new}.n AS DOUBLE) / ({old}.n + {new}.n))"
    d = "({new}.mean - {old}.mean)"
    m2 = f"{{old}}.m2 + {{new}}.m2 + {d} * ({d} * ({shared}))"
    m3 = (
        f"{{old}}.m3 + {{new}}.m3 + {d} * {d} * {d} * ({shared}) * ({old} - {new}) "
        f"+ 3 * {d} * ({old} * {{new}}.m2 - {new} * {{old}}.m2)"
    )
    m4 = (
        f"{{old}}.m4 + {{new}}.m4 + {d} * {d} * {d} * {d} * ({shared}) "
        f"* ({old} * {old} - {old} * {new} + {new} * {new}) "
        f"+ 6 * {d} * {d} * ({old} * {old} * {{new}}.m2 + {new} * {new} * {{old}}.m2) "
        f"+ 4 * {d} * ({old} * {{new}}.m3 - {new} * {{old}}.m3)"
    )
    is_finite = "isfinite({old}.m2) AND isfinite({new}.m2)"
    powers = ", ".join(
        f"m{power} := CASE WHEN {is_finite} THEN {text} ELSE CAST('NaN' AS DOUBLE) END"
        for power, text in ((2, m2), (3, m3), (4, m4))
    )
    return (
        "CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL THEN {old} ELSE struct_pack("
        f"n := {{old}}.n + {{new}}.n, "
        f"mean := CASE WHEN {is_finite} THEN {{old}}.mean + {d} * {new} END, {powers}) END"
    )


#: The mean square of the values of a state of POWERS: what rounding is measured by.
_SQUARE = "({old}.m2 / {old}.n + {old}.mean ** 2)"


@dataclass(frozen=True)
class _Merging:
    """SQL over `{old}` and `{new}`, and as an aggregate over `{x}`.

    `{order}` stands where the order of additions shows in the last digits. `differs` tells two
    states apart by more than what merging the same records in another way may leave.
    """

    two: str
    many: str
    differs: str = "{old} IS DISTINCT FROM {new}"


_MERGES = {
    # DuckDB would make a HUGEINT of the sum.
    Merge.COUNT: _Merging("{old} + {new}", "CAST(sum({x}){over} AS BIGINT)"),
    Merge.ADD: _Merging(_ADD, "sum({x}){over}"),
    Merge.ADD_SIZED: _Merging(
        f"struct_pack(total := {_ADD.format(old='({old}).total', new='({new}).total')}, "
        f"size := {_ADD.format(old='({old}).size', new='({new}).size')})",
        "struct_pack(total := sum(({x}).total{order}){over}, size := sum(({x}).size){over})",
        # Where the size is no finite number, the total may be any, and nothing is promised of it.
        "CASE WHEN isfinite({old}.size) AND isfinite({new}.size) "
        "THEN abs({old}.total - {new}.total) > 1e-9 * {old}.size "
        "OR abs({old}.size - {new}.size) > 1e-9 * {old}.size "
        "ELSE {old}.size IS DISTINCT FROM {new}.size END",
    ),
    Merge.LEAST: _Merging("least({old}, {new})", "min({x}){over}"),
    Merge.GREATEST: _Merging("greatest({old}, {new})", "max({x}){over}"),
    Merge.ALL: _Merging("coalesce({old} AND {new}, {old}, {new})", "bool_and({x}){over}"),
    Merge.ANY: _Merging("coalesce({old} OR {new}, {old}, {new})", "bool_or({x}){over}"),
    Merge.BIT_AND: _Merging("coalesce({old} & {new}, {old}, {new})", "bit_and({x}){over}"),
    Merge.BIT_OR: _Merging("coalesce({old} | {new}, {old}, {new})", "bit_or({x}){over}"),
    Merge.BIT_XOR: _Merging("coalesce(xor({old}, {new}), {old}, {new})", "bit_xor({x}){over}"),
    Merge.MOMENTS: _Merging(
        "headrace.merge_moments({old}, {new})",
        "list_reduce(list({x}{order}) FILTER (WHERE {x} IS NOT NULL){over}, "
        "lambda a, b: headrace.merge_moments(a, b))",
        # What rounding leaves is of the size of the values, however close together they lie.
        "{old} IS DISTINCT FROM {new} AND ({old}.n <> {new}.n "
        "OR abs({old}.m2 - {new}.m2) > 1e-9 * ({old}.m2 + {old}.n * {old}.mean ** 2) "
        "OR ({old}.mean - {new}.mean) ** 2 > 1e-18 * ({old}.m2 / {old}.n + {old}.mean ** 2)"
        ") IS NOT FALSE",
    ),
    Merge.POWERS: _Merging(
        _merged_powers(),
        "list_reduce(list({x}{order}) FILTER (WHERE {x} IS NOT NULL){over}, "
        f"lambda a, b: {_merged_powers().format(old='a', new='b')})",
        "{old} IS DISTINCT FROM {new} AND ({old}.n <> {new}.n "
        f"OR ({{old}}.mean - {{new}}.mean) ** 2 > 1e-18 * {_SQUARE} "
        f"OR abs({{old}}.m2 - {{new}}.m2) > 1e-9 * {{old}}.n * {_SQUARE} "
        f"OR abs({{old}}.m3 - {{new}}.m3) > 1e-9 * {{old}}.n * {_SQUARE} ** 1.5 "
        f"OR abs({{old}}.m4 - {{new}}.m4) > 1e-9 * {{old}}.n * {_SQUARE} ** 2"
        ") IS NOT FALSE",
    ),
    Merge.CO_MOMENTS: _Merging(
        "headrace.merge_pairs({old}, {new})",
        "list_reduce(list({x}{order}) FILTER (WHERE {x} IS NOT NULL){over}, "
        "lambda a, b: headrace.merge_pairs(a, b))",
        "{old} IS DISTINCT FROM {new} AND ({old}.n <> {new}.n "
        f"OR {_apart('a')} OR {_apart('b')} OR abs({{old}}.c2 - {{new}}.c2) > "
        f"1e-9 * sqrt({_squares('a')}) * sqrt({_squares('b')})) IS NOT FALSE",
    ),
    Merge.LEAST_N: _Merging(
        "list_sort(list_concat({old}, {new}))[1:{most}]",
        "list_sort(flatten(list({x}){over}))[1:{most}]",
    ),
    Merge.GREATEST_N: _Merging(
        "list_sort(list_concat({old}, {new}), 'DESC')[1:{most}]",
        "list_sort(flatten(list({x}){over}), 'DESC')[1:{most}]",
    ),
}


def merge(column: TableColumn, old: str, new: str) -> str:
    """Return SQL for two states of a column as one."""
    return _of(column).two.format(old=old, new=new, most=column.most)


def combine(column: TableColumn, states: str, *, order: str = "", over: str = "") -> str:
    """Return SQL for any number of states of a column as one, an aggregate.

    With `over`, a window, it is a running one. Doubles add up to the same, digit by digit, only in
    the same order: that of the window, or `order`, the terms of an ORDER BY.
    """
    ordered = f" ORDER BY {order}" if order else ""
    window = f" OVER ({over})" if over else ""
    return _of(column).many.format(x=states, most=column.most, order=ordered, over=window)


def differs(column: TableColumn, old: str, new: str) -> str:
    """Return SQL for whether two values of a column are not the same."""
    if column.merge is None:
        return _Merging.differs.format(old=old, new=new)
    return _of(column).differs.format(old=old, new=new)


def is_rounded(column: TableColumn) -> bool:
    """Whether the cut into turns may show in a state, within what rounding leaves."""
    return column.merge is not None and _of(column).differs != _Merging.differs


def _of(column: TableColumn) -> _Merging:
    assert column.merge is not None, column.name
    return _MERGES[column.merge]
