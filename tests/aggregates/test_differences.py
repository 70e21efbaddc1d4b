"""When two states of the same records count as different: the audit's rule for rounded ones.

Method: rows of moments and of sums that differ by what rounding leaves, and by what it cannot
leave. That no way to merge the same records makes a difference is a law of test_aggregate_laws.py.
"""

import pyarrow as pa
import pytest

from headrace.aggregates import AGGREGATES, Arguments
from headrace.plan.tables import Table, TableColumn
from headrace.schema.types import parse_type
from headrace.store.duckdb.tables.comparing import compare_states
from headrace.time.placement import Forever

NAN, INFINITE = float("nan"), float("inf")


def table_of(function: str) -> Table:
    state = AGGREGATES[function](Arguments(parse_type("DOUBLE"))).states[0]
    column = TableColumn("a0_0", state.type, state.merge)
    return Table("v", "v1", (TableColumn("k", parse_type("INT")), column), Forever())


TABLE = table_of("var_pop")


def row(table: Table, state: object) -> pa.Table:
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    return pa.Table.from_pylist([{"k": 1, "a0_0": state}], schema=schema)


def moments(n: int | None, mean: float | None, m2: float | None) -> pa.Table:
    return row(TABLE, None if n is None else {"n": n, "mean": mean, "m2": m2})


@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [
        ((3, 1e9, 2.0), (3, 1e9 + 1e-7, 2.0 + 1e-6)),  # close together and far from zero
        ((2, 1e-9, 2e30), (2, -3e-9, 2e30)),  # a mean that all but cancels out
        ((5, 0.1, 0.0), (5, 0.1, 1e-18)),
        ((1, None, NAN), (1, None, NAN)),
        ((1, None, INFINITE), (1, None, INFINITE)),
        ((None, None, None), (None, None, None)),
    ],
)
def test_what_rounding_leaves_is_no_difference(
    recorded: tuple[int | None, float | None, float | None],
    replayed: tuple[int | None, float | None, float | None],
) -> None:
    assert compare_states(TABLE, moments(*recorded), moments(*replayed)) == []


@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [
        ((3, 1.0, 2.0), (4, 1.0, 2.0)),
        ((3, 1.0, 2.0), (3, 1.0, 2.001)),
        ((3, 1.0, 2.0), (3, 1.001, 2.0)),
        ((3, 1.0, 2.0), (None, None, None)),
        ((3, 1.0, 2.0), (3, None, NAN)),
        ((3, None, INFINITE), (3, None, NAN)),
        ((3, None, INFINITE), (3, 1.0, 2.0)),
    ],
)
def test_anything_else_is_one(
    recorded: tuple[int | None, float | None, float | None],
    replayed: tuple[int | None, float | None, float | None],
) -> None:
    for one, other in ((recorded, replayed), (replayed, recorded)):
        found = compare_states(TABLE, moments(*one), moments(*other))
        assert len(found) == 1
        assert found[0].startswith("view v: the table has k=1")


@pytest.mark.parametrize(
    ("recorded", "replayed", "same"),
    [
        ((2.0, 2e16), (0.0, 2e16 + 2), True),  # 1e16, 1, 1 and -1e16, in two orders
        ((2.0, 2.0), (2.0 + 1e-15, 2.0), True),
        ((INFINITE, INFINITE), (1e308, INFINITE), True),  # 1e308 twice and -1e308, in two orders
        ((NAN, NAN), (NAN, NAN), True),
        ((None, None), (None, None), True),
        ((2.0, 4.0), (2.001, 4.0), False),
        ((1e-12, 1e-12), (2e-12, 2e-12), False),  # small, and yet twice as much
        ((2.0, 4.0), (2.0, 4.001), False),
        ((2.0, 4.0), (None, None), False),
        ((2.0, 4.0), (NAN, NAN), False),
        ((INFINITE, INFINITE), (2.0, 4.0), False),
    ],
)
def test_a_sum_is_judged_by_the_size_of_what_was_added(
    recorded: tuple[float | None, float | None],
    replayed: tuple[float | None, float | None],
    same: bool,
) -> None:
    table = table_of("sum")
    rows = [row(table, {"total": total, "size": size}) for total, size in (recorded, replayed)]
    for one, other in (rows, rows[::-1]):
        assert (compare_states(table, one, other) == []) is same


@pytest.mark.parametrize(
    ("recorded", "replayed", "same"),
    [
        ((3, 1e9, 2.0, 2.0, 8.0, 4.0), (3, 1e9 + 1e-7, 2.0, 2.0 + 1e-6, 8.0, 4.0 + 1e-6), True),
        ((3, None, None, NAN, NAN, NAN), (3, None, None, NAN, NAN, NAN), True),
        ((3, 0.0, 2.0, 0.0, 8.0, 0.0), (3, 0.0, 2.0, 0.0, 8.0, 0.0), True),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), (3, 1.0, 2.0, 2.0, 8.0, 4.001), False),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), (3, 1.0, 2.001, 2.0, 8.0, 4.0), False),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), (3, 1.0, 2.0, 2.001, 8.0, 4.0), False),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), (4, 1.0, 2.0, 2.0, 8.0, 4.0), False),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), (3, None, None, NAN, NAN, NAN), False),
        ((3, 1.0, 2.0, 2.0, 8.0, 4.0), None, False),
    ],
)
def test_pairs_are_judged_by_the_size_of_both(
    recorded: tuple[float | None, ...], replayed: tuple[float | None, ...] | None, same: bool
) -> None:
    state = AGGREGATES["corr"](Arguments(parse_type("DOUBLE"), parse_type("DOUBLE"))).states[0]
    columns = (TableColumn("k", parse_type("INT")), TableColumn("a0_0", state.type, state.merge))
    table = Table("v", "v1", columns, Forever())
    rows = [
        row(table, None if each is None else dict(zip(state.type.names, each, strict=True)))
        for each in (recorded, replayed)
    ]
    for one, other in (rows, rows[::-1]):
        assert (compare_states(table, one, other) == []) is same


@pytest.mark.parametrize("function", ["min", "max"])
def test_an_extreme_is_one_of_the_values_to_the_last_digit(function: str) -> None:
    table = table_of(function)
    for one, other, same in ((1e-12, 2e-12, False), (0.0, -0.0, True), (NAN, NAN, True)):
        assert (compare_states(table, row(table, one), row(table, other)) == []) is same
