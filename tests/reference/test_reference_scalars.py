"""The reference's expressions: a row that fails is found among many, and fails alone."""

from functools import partial

import pyarrow as pa
import pytest

from headrace.model.scalars import Scalar
from headrace.reference.scalars import Failed, Scalars

RATIO = Scalar("100 / {0}", ("x",))
X = Scalar("{0}", ("x",))


@pytest.mark.parametrize("failing", [[], [0], [499], [3, 4, 250], [*range(500)]])
def test_rows_fail_alone(failing: list[int]) -> None:
    numbers = [0 if at in failing else at + 1 for at in range(500)]
    ratios, same = Scalars().evaluate([RATIO, X], pa.table({"x": numbers}))
    for at, number in enumerate(numbers):
        if number:
            assert ratios.values[at] == pytest.approx(100 / number)
            assert same.values[at] == number
        else:
            assert isinstance(ratios.values[at], Failed)
            assert "division by zero" in ratios.values[at].reason
            assert isinstance(same.values[at], Failed), "all fail where one does"
    wanted = (pa.null(), pa.null()) if len(failing) == 500 else (pa.float64(), pa.int64())
    assert (ratios.type, same.type) == wanted


def test_one_row_that_fails_is_found_in_a_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    scalars, asked = Scalars(), []
    honest = scalars._select
    monkeypatch.setattr(
        scalars, "_select", lambda query, rows: asked.append(rows.num_rows) or honest(query, rows)
    )
    evaluate = partial(scalars.evaluate, [RATIO])
    evaluate(pa.table({"x": [1] * 512}))
    assert asked == [512]
    asked.clear()
    evaluate(pa.table({"x": [1] * 300 + [0] + [1] * 211}))
    assert len(asked) == 1 + 2 * 9  # halves, nine times
    asked.clear()
    assert evaluate(pa.table({"x": pa.array([], pa.int64())}))[0].values == []
