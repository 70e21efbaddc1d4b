"""How late a record is, is told in the two units that a reader wants."""

import pyarrow as pa
import pytest

from headrace.engine.gears.late_records import duration_text

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0 s"),
        (1, "0.000001 s"),
        (1_500_000, "1.5 s"),
        (59 * SECOND, "59 s"),
        (60 * SECOND, "1 min 0 s"),
        (3_599 * SECOND + 999_999, "59 min 59 s"),
        (3_600 * SECOND, "1 h 0 min"),
        (86_399 * SECOND, "23 h 59 min"),
        (90_000 * SECOND, "1 d 1 h"),
        (63_902_779_200 * SECOND, "739615 d 12 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(duration_us: int, text: str) -> None:
    found = duration_text(pa.chunked_array([pa.array([duration_us], pa.int64())]))
    assert found.to_pylist() == [text]
