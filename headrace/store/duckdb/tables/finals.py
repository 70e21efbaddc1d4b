"""What readers see of merged states in DuckDB: every `Final` as SQL."""

from collections.abc import Sequence

from headrace.aggregates.hyperloglog import REGISTERS
from headrace.aggregates.percentile import INFINITE, LARGEST_EXPONENT, MIDDLE, SHIFT, WIDTH
from headrace.aggregates.words import Final
from headrace.plan.tables import Answer, Table
from headrace.schema.types import DataType
from headrace.store.duckdb.tables.merging import combine
from headrace.store.duckdb.tables.names import GROUP, physical, quote

__all__ = ["final_fails", "final_text", "items_fail", "items_text"]

_N, _M2 = "struct_extract({0}, 'n')", "struct_extract({0}, 'm2')"
_M2_A, _M2_B = "struct_extract({0}, 'm2_a')", "struct_extract({0}, 'm2_b')"
_C2 = "struct_extract({0}, 'c2')"
_CORR = f"({_C2} / nullif(sqrt({_M2_A}) * sqrt({_M2_B}), 0))"
_SLOPE = f"({_C2} / nullif({_M2_B}, 0))"
_FINALS = {
    Final.VALUE: "{0}",
    Final.SUM: "TRY_CAST({0} AS {type})",
    Final.TRY_SUM: "TRY_CAST({0} AS {type})",
    Final.TOTAL: "({0}).total",
    Final.PICKED: "struct_extract({0}, 'value')",
    Final.PICKED_EACH: "list_transform({0}, lambda each: struct_extract(each, 'value'))",
    Final.PICKED_BACKWARDS: (
        "list_transform(list_reverse({0}), lambda each: struct_extract(each, 'value'))"
    ),
    Final.VAR_POP: f"{_M2} / {_N}",
    Final.VAR_SAMP: f"CASE WHEN {_N} > 1 THEN {_M2} / ({_N} - 1) END",
    Final.STDDEV_POP: f"sqrt({_M2} / {_N})",
    Final.STDDEV_SAMP: f"CASE WHEN {_N} > 1 THEN sqrt({_M2} / ({_N} - 1)) END",
    # One factor at a time: the powers of a small variance are 0 as a DOUBLE.
    Final.SKEWNESS: (
        f"CASE WHEN {_M2} <> 0 THEN struct_extract({{0}}, 'm3') / {_M2} / sqrt({_M2} / {_N}) END"
    ),
    Final.KURTOSIS: (
        f"CASE WHEN {_M2} <> 0 THEN struct_extract({{0}}, 'm4') / {_M2} / ({_M2} / {_N}) - 3 END"
    ),
    Final.COVAR_POP: f"{_C2} / {_N}",
    Final.COVAR_SAMP: f"CASE WHEN {_N} > 1 THEN {_C2} / ({_N} - 1) END",
    Final.CORR: f"CASE WHEN {_N} > 1 THEN {_CORR} END",
    # The second of a pair is x, what the first depends on.
    Final.REGR_SLOPE: _SLOPE,
    Final.REGR_INTERCEPT: (
        f"CASE WHEN isfinite({_C2}) THEN struct_extract({{0}}, 'mean_a') "
        f"- {_SLOPE} * struct_extract({{0}}, 'mean_b') ELSE {_C2} END"
    ),
    Final.REGR_R2: (
        f"CASE WHEN {_M2_B} = 0 THEN NULL WHEN {_M2_A} = 0 THEN 1.0::DOUBLE ELSE {_CORR} ** 2 END"
    ),
    Final.REGR_SXX: _M2_B,
    Final.REGR_SXY: _C2,
    Final.REGR_SYY: _M2_A,
    # Over the rows of a group's items; `item` is a column besides the states.
    Final.COUNT_ITEMS: "count(*)",
    Final.FIRST_ITEMS: "coalesce(list(item ORDER BY {0})[1:{parameter}], [])",
    Final.FIRST_VALUES: (
        "coalesce(list(struct_extract(item, 'value') ORDER BY {0})[1:{parameter}], [])"
    ),
    Final.LAST_ITEMS: "coalesce(list(item ORDER BY {0} DESC)[1:{parameter}], [])",
    Final.HISTOGRAM: (
        "CAST(map(coalesce(list(item ORDER BY item), []), coalesce(list({0} ORDER BY item), [])) "
        "AS {type})"
    ),
    Final.MODE: "list(item ORDER BY {0} DESC, item)[1]",
    Final.TOP_ITEMS: (
        "coalesce(list(struct_pack(item := struct_extract(item, 'value'), count := {0}) "
        "ORDER BY {0} DESC, struct_extract(item, 'value') ASC NULLS FIRST)[1:{parameter}], [])"
    ),
    Final.ESTIMATE_DISTINCT: (
        f"headrace.estimate_distinct({REGISTERS}, count(*), sum(2.0 ** -{{0}}))"
    ),
}
_RANKED = "sum({0}) OVER (ORDER BY item) AS upto, sum({0}) OVER () AS total"


def final_text(answer: Answer, table: Table) -> str:
    """Return SQL for what a call answers, over the columns of a row of its table."""
    types = {column.name: column.type for column in table.columns}
    if answer.final is Final.MEAN:
        return _mean(answer, sums_are_doubles=types[answer.states[0]].kind == "STRUCT")
    if answer.final is Final.EXTREME:
        # 0.0 and -0.0 are equal, so either may be in the state; adding nothing makes them one.
        is_floating = answer.type.kind in ("FLOAT", "DOUBLE")
        return f"{answer.states[0]} + CAST(0 AS {answer.type.kind})" if is_floating else (
            answer.states[0]
        )  # fmt: skip
    return _fill(answer)


def final_fails(answer: Answer) -> str | None:
    """Return the test whether a call has no answer because its sum does not fit; None: it fits."""
    if answer.final is not Final.SUM:
        return None
    state, type = answer.states[0], answer.type
    least, most = "-9223372036854775808", "9223372036854775807"
    if type.kind == "DECIMAL":
        most = f"{'9' * (type.precision - type.scale)}.{'9' * type.scale}"
        least = f"-{most}"
    return f"coalesce({state} NOT BETWEEN {least} AND {most}, false)"


def items_fail(
    answer: Answer, table: Table, matches: Sequence[str], *, combines: bool
) -> str | None:
    """Return the same test of a call over the items of the row called `GROUP`."""
    exact = table.item.type.is_integer or table.item.type.kind == "DECIMAL"
    if answer.final is not Final.SUM_ITEMS or not exact:
        return None
    total = f"TRY_CAST(sum(item) AS {answer.type.duckdb})"
    rows = _item_rows(answer, table, matches, combines=combines)
    return f"(SELECT sum(item) IS NOT NULL AND {total} IS NULL FROM ({rows}))"


def items_text(answer: Answer, table: Table, matches: Sequence[str], *, combines: bool) -> str:
    """Return SQL for what a call answers, over the items of the row called `GROUP`.

    `matches` are the tests for its items, `i`, besides equal groups. Where a group may have an item
    in several rows, it `combines` them first.
    """
    rows = _item_rows(answer, table, matches, combines=combines)
    if answer.final is Final.QUANTILE:
        ranked = _RANKED.format(*answer.states)
        return f"SELECT {_quantile(answer)} FROM (SELECT *, {ranked} FROM ({rows}))"
    if answer.final in (Final.SUM_ITEMS, Final.MEAN_ITEMS):
        return f"SELECT {_over_numbers(answer, table.item.type)} FROM ({rows})"
    return f"SELECT {_fill(answer)} FROM ({rows})"


def _item_rows(answer: Answer, table: Table, matches: Sequence[str], *, combines: bool) -> str:
    """Return the query for the items of the row called `GROUP`, with their states."""
    same = [
        f"i.{quote(key.name)} IS NOT DISTINCT FROM {GROUP}.{quote(key.name)}"
        for key in table.groups
    ]
    item = table.item.name
    selected, group_by = [f"{item} AS item", *answer.states], ""
    if combines:
        combined = (
            f"{combine(column, f'i.{column.name}')} AS {column.name}" for column in table.values
        )
        selected, group_by = [f"i.{item} AS item", *combined], f" GROUP BY i.{item}"
    tests = [*same, *matches]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"SELECT {', '.join(selected)} FROM {physical(table.name)} AS i{where}{group_by}"


def _fill(answer: Answer) -> str:
    return _FINALS[answer.final].format(
        *answer.states, type=answer.type.duckdb, parameter=answer.parameter
    )


def _mean(answer: Answer, *, sums_are_doubles: bool) -> str:
    total, count = answer.states
    if answer.type.kind == "DECIMAL":
        exact = f"headrace.exact_average({total}, {count}, {answer.type.scale})"
        return f"CAST({exact} AS {answer.type.duckdb})"
    total = f"({total}).total" if sums_are_doubles else f"CAST({total} AS DOUBLE)"
    return f"CASE WHEN {count} > 0 THEN {total} / {count} END"


def _over_numbers(answer: Answer, item: DataType) -> str:
    """Return the sum or the mean of items that are numbers."""
    total = "sum(item)"
    if item.kind in ("FLOAT", "DOUBLE"):
        # In the order of the items: doubles then always add up to the same.
        total = "sum(CAST(item AS DOUBLE) ORDER BY item)"
    if answer.final is Final.SUM_ITEMS:
        return f"TRY_CAST({total} AS {answer.type.duckdb})"
    if answer.type.kind == "DECIMAL":
        exact = f"headrace.exact_average({total}, count(*), {answer.type.scale})"
        return f"CAST({exact} AS {answer.type.duckdb})"
    return f"CAST({total} AS DOUBLE) / count(*)"


def _quantile(answer: Answer) -> str:
    rank = f"greatest(1, ceil(CAST(total AS BIGINT) * {answer.parameter}))"
    found = f"min(item) FILTER (WHERE upto >= {rank})"
    middle = f"exp(least((abs({found}) - {SHIFT}) * {WIDTH!r} + {MIDDLE!r}, {LARGEST_EXPONENT}))"
    return (
        f"CASE WHEN {found} > {INFINITE} THEN CAST('NaN' AS DOUBLE) "
        f"WHEN abs({found}) = {INFINITE} THEN sign({found}) * CAST('Infinity' AS DOUBLE) "
        f"ELSE sign({found}) * {middle} END"
    )
