"""How many records a turn may read: no more than views make a bounded number of bytes of.

Method: a pace that is told what turns made; and an engine whose bound a few records pass.
"""

import logging

import pytest
from agreement import assert_agrees_with_the_reference
from shop import SHOP, payments

from headrace.engine.turn.pace import Pace, TurnTooLarge
from headrace.project.settings import Settings
from headrace.testing import harness

FAR_BEHIND = 10_000_000


def test_a_turn_reads_what_the_last_one_lets_fit() -> None:
    pace = Pace(Settings(max_delta_bytes=1_000_000))
    assert pace.limit(FAR_BEHIND) == 4_000_000
    pace.note_deltas(100_000, 500_000, smallest=False)
    assert pace.limit(FAR_BEHIND) == 200_000
    # Larger turns make less of each record: groups are met again.
    pace.note_deltas(200_000, 20_000, smallest=False)
    assert pace.limit(FAR_BEHIND) == 4_000_000
    pace.note_deltas(0, 0, smallest=True)
    assert pace.limit(FAR_BEHIND) == 4_000_000


def test_a_turn_that_makes_too_much_is_given_up_unless_none_is_smaller() -> None:
    pace = Pace(Settings(max_delta_bytes=1_000))
    with pytest.raises(TurnTooLarge):
        pace.note_deltas(10, 2_000, smallest=False)
    assert pace.limit(FAR_BEHIND) == 5
    pace.note_deltas(1, 2_000, smallest=True)
    assert pace.limit(FAR_BEHIND) == 1


@pytest.mark.spark
@pytest.mark.parametrize("gear", ["short", "long"])
def test_what_is_too_much_for_one_turn_is_read_in_several(
    gear: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.engine")
    with harness(SHOP, partitions=2, settings=Settings(max_delta_bytes=2_000)) as h:
        for partition in (0, 1):
            h.append("payments", payments(partition * 1000, 30), partition=partition)
        sizes = []
        while reports := h.turn(gear=gear):
            sizes += [report.records for report in reports]
        assert sum(sizes) == 60
        assert max(sizes) < 60
        assert "one turn cannot take 60 records" in caplog.text
        assert_agrees_with_the_reference(h)
