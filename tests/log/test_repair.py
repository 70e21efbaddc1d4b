"""A repair gives up what its plan names, and nothing that came after the plan.

Method: a segment with a wrong byte, and records that are appended while somebody thinks it over.
"""

from contextlib import closing
from pathlib import Path

import pytest

from headrace.errors import LogError
from headrace.log import EmbeddedLog, Partition, records
from headrace.log.base import Range
from headrace.log.embedded.upkeep.repair import Repair, give_up, plan_repair

P0 = Partition("t", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a partition of five records, of which the second is damaged."""
    with closing(EmbeddedLog(tmp_path, sync=False)) as log:
        log.create_topic("t", partitions=1)
        for number in range(5):
            log.append("t", records([f"old {number}"]), partition=0)
    (segment,) = (tmp_path / "t" / "0").glob("*.log")
    segment.write_bytes(segment.read_bytes().replace(b"old 1", b"odd 1"))
    return tmp_path


def plan(path: Path) -> list[Repair]:
    with closing(EmbeddedLog(path)) as log:
        return plan_repair(list(log.verify("t")), path)


def test_records_that_came_after_the_plan_are_not_given_up(path: Path) -> None:
    (old,) = plan(path)
    assert (old.first, old.until) == (0, 5)
    with closing(EmbeddedLog(path)) as log:
        log.append("t", records(["new A", "new B"]), partition=0)
    with pytest.raises(LogError, match="records were appended after the plan was made"):
        give_up(old)
    (new,) = plan(path)
    assert (new.first, new.until) == (0, 7)
    for _ in range(2):  # a repair that died can be repeated
        give_up(new)
    with closing(EmbeddedLog(path)) as log:
        assert log.extents("t") == {P0: (7, 7)}
        log.append("t", records(["after"]), partition=0)
        (batch,) = log.read(Range(P0, 7, 8))
        assert batch["value"].to_pylist() == [b"after"]
