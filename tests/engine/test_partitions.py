"""Topics that change under an engine: partitions are added, old records removed."""

import pytest
from agreement import assert_agrees_with_the_reference
from shop import SHOP, payments

from headrace.errors import PositionLost
from headrace.ledger.entries import MAIN, watermark_of_stream
from headrace.log import EmbeddedLog, Partition, TopicSettings
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("restarts", [False, True])
def test_partitions_that_are_added_are_read(restarts: bool) -> None:
    with harness(SHOP, partitions=2) as h:
        for partition in (0, 1):
            h.append("payments", payments(partition * 1000, 20), partition=partition)
        while h.turn():
            pass
        assert h.log.topic("payments").partitions == 2
        h.log.change_topic("payments", partitions=4)
        if restarts:
            h.restart()
        for partition in (1, 3):
            h.append("payments", payments(5000 + partition * 1000, 20), partition=partition)
        while h.turn():
            pass
        assert h.counters("payments")["read"] == 80
        assert_agrees_with_the_reference(h)
        h.audit()


CLICKS = """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);
CREATE MATERIALIZED VIEW clicked AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""


def test_a_partition_that_is_added_counts_for_the_watermark_of_a_view_that_is_built() -> None:
    with harness(SHOP, partitions=1) as h:
        h.restart(SHOP + CLICKS)
        [unit] = [each for each in h.engine.units.values() if each.name != MAIN]
        times = [
            f"2026-01-01T12:{second // 60:02}:{second % 60:02}Z" for second in range(0, 600, 30)
        ]
        h.append("clicks", [{"ts": time} for time in times])
        h.engine.turn_unit(unit, max_records=10)
        h.log.change_topic("clicks", partitions=2)
        h.engine.turn_unit(unit, max_records=5)
        with h.engine.tools.store.open() as snapshot:
            progress = snapshot.progress(unit.name)
            owner = next(each for each in snapshot.watermarks() if each.name == "clicked")
            assert snapshot.watermarks()[owner] == watermark_of_stream(progress, "clicks")
        h.audit()
        while h.turn():
            pass
        assert list(h.engine.units) == [MAIN]
        h.audit()


def remove_all(h: Harness) -> None:
    """Let retention remove all records that the log has."""
    h.log.change_topic("payments", settings=TopicSettings(retention_ms=1))
    later = EmbeddedLog(h.folder / "log", clock=lambda: 1 << 60)
    later.maintain()
    later.close()


def test_tables_outlive_their_records_but_cannot_be_audited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 20), partition=0)
        while h.turn():
            pass
        before = h.rows("per_minute")
        remove_all(h)
        assert h.log.extents("payments")[Partition("payments", 0)] == (20, 20)
        h.restart()
        assert not h.turn()
        assert h.rows("per_minute") == before
        with pytest.raises(PositionLost, match="payments: the log no longer has 20 records"):
            h.audit()
        assert "the log no longer has" not in caplog.text
        h.restart(SHOP.replace("count(*) AS n", "count(*) + 0 AS n"))
        assert "payments: the log no longer has 20 offsets at its beginning" in caplog.text


@pytest.mark.parametrize("ahead", ["main", "other"])
def test_partitions_added_while_a_view_is_rebuilt_are_read_once_by_all(ahead: str) -> None:
    with harness(SHOP, partitions=1) as h:
        h.append("payments", payments(0, 20), partition=0)
        while h.turn():
            pass
        edited = SHOP.replace("count(*) AS n", "count(*) + 0 AS n")
        assert edited != SHOP
        h.restart(edited)
        main, other = (
            h.engine.units["main"],
            next(unit for name, unit in h.engine.units.items() if name != "main"),
        )
        while h.engine.turn_unit(other):
            pass
        h.log.change_topic("payments", partitions=2)
        h.append("payments", payments(1000, 20), partition=1)
        # Whoever notices the new partition first, the two must not be taken for level.
        h.engine.turn_unit(main if ahead == "main" else other)
        if ahead == "other":
            assert not h.engine.join_main(other)  # the main unit has to enter it, with its marker
            h.engine.turn_unit(main)
        assert h.engine.join_main(other)
        while h.turn():
            pass
        assert h.counters("payments")["read"] == 40
        assert_agrees_with_the_reference(h)
        h.audit()


def compacted(h: Harness) -> EmbeddedLog:
    """Return the log, its payments compacted: of 40 records of three cards 3 are left."""
    assert isinstance(h.log, EmbeddedLog)
    h.log.change_topic("payments", settings=TopicSettings(compact=True))
    keys = [f"c{number % 3}".encode() for number in range(40)]
    h.append("payments", payments(100, 40), partition=0, keys=keys)
    return h.log


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_compacted_topic_is_read_as_it_is(gear: str) -> None:
    with harness(SHOP, partitions=2) as h:
        compacted(h).compact("payments")
        h.append("payments", payments(200, 2), partition=0, keys=[b"c0", b"c1"])
        while h.turn(gear=gear):
            pass
        assert h.counters("payments")["read"] == 5
        assert h.log.extents("payments")[Partition("payments", 0)].end_offset == 42
        assert_agrees_with_the_reference(h)
        assert h.audit().records == 5


def test_what_compaction_took_after_it_was_read_cannot_be_audited() -> None:
    with harness(SHOP, partitions=2) as h:
        log = compacted(h)
        while h.turn():
            pass
        h.audit()
        log.compact("payments")
        with pytest.raises(
            PositionLost, match=r"payments: .* 37 records .* Compaction is the reason"
        ):
            h.audit()
