"""When two states of the same records count as different: the audit's rule for rounded ones.

Method: rows of moments that differ by what rounding leaves, and by what it cannot leave.
"""

import pyarrow as pa
import pytest

from headrace.aggregates import AGGREGATES, Arguments
from headrace.observe.compare import compare_states
from headrace.plan.tables import Table, TableColumn
from headrace.schema.types import parse_type

STATE = AGGREGATES["var_pop"](Arguments(parse_type("DOUBLE"))).states[0]
TABLE = Table(
    "v",
    "v1",
    (
        TableColumn("k", parse_type("INT")),
        TableColumn("a0_0", STATE.type, STATE.merge, STATE.combine, STATE.differs),
    ),
    (),
)
NAN, INFINITE = float("nan"), float("inf")


def moments(n: int | None, mean: float | None, m2: float | None) -> pa.Table:
    schema = pa.schema([(column.name, column.type.arrow) for column in TABLE.columns])
    state = None if n is None else {"n": n, "mean": mean, "m2": m2}
    return pa.Table.from_pylist([{"k": 1, "a0_0": state}], schema=schema)


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
