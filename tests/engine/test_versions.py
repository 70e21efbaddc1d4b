"""Promise 4, change without fear: an edited definition replays beside the old one.

Method: records are turned, definitions edited, and readers ask all the while; at the end tables
equal the reference's for the new definitions.
"""

import threading

import pytest
from agreement import assert_agrees_with_the_reference
from shop import PER_MINUTE, RATIOS, SHOP, STREAM, payments

from headrace import faults
from headrace.engine import engine
from headrace.engine.gears import short
from headrace.engine.running import run_engine
from headrace.errors import DefinitionError, ViewFailed
from headrace.ledger.entries import HoldingState
from headrace.log import MAX_RECORD_BYTES
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.harness import to_json

pytestmark = pytest.mark.spark

TWO_MINUTES = STREAM + PER_MINUTE.replace("'1 minute'", "'2 minutes'") + RATIOS


def settle(h: Harness) -> None:
    while h.turn():
        pass


def test_an_edited_view_takes_over_the_name_when_it_is_level() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 150), partition=0)
        settle(h)
        before = h.rows("per_minute")
        h.restart(TWO_MINUTES)
        assert h.rows("per_minute") == before, "the old version serves until the new one is level"
        h.append("payments", payments(150, 30), partition=1)
        settle(h)
        assert list(h.engine.units) == ["main"]
        assert_agrees_with_the_reference(h)
        h.audit()


def test_the_old_version_goes_on_while_the_new_one_is_built() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        h.restart(TWO_MINUTES)
        h.append("payments", payments(60, 60), partition=0)
        h.engine.turn_unit(h.engine.units["main"])
        minutes = {row["minute"].minute for row in h.rows("per_minute")}
        assert minutes == {0, 1}, "one-minute windows still, and up to date"


def test_a_crash_before_the_swap_leaves_the_old_version_and_the_swap_follows() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        before = h.rows("per_minute")
        h.restart(TWO_MINUTES)
        h.crash("before_swap")
        h.turn()
        assert h.crashed
        assert h.rows("per_minute") == before
        h.restart()
        settle(h)
        assert_agrees_with_the_reference(h)


def test_an_edited_stream_takes_its_views_along() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        h.restart(SHOP.replace("10 SECONDS", "10 MINUTES"))
        h.append("payments", payments(60, 10), partition=1)
        settle(h)
        assert list(h.engine.units) == ["main"]
        assert h.counters("per_minute")["late"] == 0, "the longer delay makes nothing late"
        assert_agrees_with_the_reference(h)
        h.audit()


def test_new_and_removed_definitions_come_and_go() -> None:
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        h.restart(STREAM + RATIOS)
        settle(h)
        assert_agrees_with_the_reference(h)
        with pytest.raises(Exception, match="per_minute"):
            h.rows("per_minute")
        more = "CREATE STREAM others (id STRING) WITH (topic = 'others');"
        h.restart(STREAM + RATIOS + more)
        h.append("others", [{"id": "1"}, "broken"])
        settle(h)
        counted = {"read": 2, "accepted": 1, "dead": 1, "duplicate": 0, "unguarded": 0}
        assert h.counters("others") == counted
        assert list(h.engine.units) == ["main"]


def test_an_edit_of_a_version_that_is_still_being_built_starts_over() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        h.restart(TWO_MINUTES)
        h.restart(TWO_MINUTES.replace("'2 minutes'", "'3 minutes'"))
        assert len(h.engine.units) == 2, "main, and the newest edit"
        settle(h)
        assert_agrees_with_the_reference(h)


def test_views_edited_while_their_stream_is_built_are_shown_when_they_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_NEARLY_LEVEL_RECORDS", 5)
    longer = STREAM.replace("10 SECONDS", "10 MINUTES")
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        before = h.rows("per_minute")
        h.restart(longer + PER_MINUTE + RATIOS)
        h.engine.turn_unit(h.engine.units["main"])
        edited = PER_MINUTE.replace("'1 minute'", "'2 minutes'") + RATIOS.replace("100", "200")
        h.restart(longer + edited)
        stream = next(unit for name, unit in h.engine.units.items() if name.startswith("stream:"))
        assert stream.folds == []
        while h.engine.turn_unit(stream):
            pass
        assert not h.engine.join_main(stream)
        assert h.rows("per_minute") == before, "nobody sees half of a view"
        h.append("payments", payments(60, 10), partition=1)
        settle(h)
        assert list(h.engine.units) == ["main"]
        assert_agrees_with_the_reference(h)
        h.audit()


def test_a_failing_view_is_set_aside_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = short.fold_rows

    def fail_ratios(fold: object, *arguments: object, **options: object) -> object:
        if fold.name == "ratios":  # type: ignore[attr-defined]
            raise ViewFailed("view ratios: out of memory", view="ratios")
        return honest(fold, *arguments, **options)  # type: ignore[arg-type]

    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 20), partition=0)
        h.turn()
        kept = h.rows("ratios")
        with monkeypatch.context() as patch:
            patch.setattr(short, "can_prepare", lambda _: False)
            patch.setattr(short, "fold_rows", fail_ratios)
            h.append("payments", payments(20, 20), partition=0)
            settle(h)
        aside = next(unit for unit in h.engine.units.values() if unit.name != "main")
        assert aside.state is HoldingState.FAILED
        assert "out of memory" in aside.reason
        assert h.rows("ratios") == kept
        assert h.counters("per_minute")["seen"] > h.counters("ratios")["seen"]
        h.audit()
        h.restart()  # unchanged: it goes on from where it stopped
        h.append("payments", payments(40, 20), partition=1)
        settle(h)
        assert list(h.engine.units) == ["main"]
        assert_agrees_with_the_reference(h)


def test_a_view_that_fails_on_very_many_records_holds_nobody_up() -> None:
    poison = STREAM + PER_MINUTE + RATIOS.replace("100 / n", "100 / (n - n)")
    with harness(poison, partitions=2, settings=Settings(probe_jobs=5)) as h:
        h.append("payments", payments(0, 20), partition=0)
        h.turn()
        assert h.counters("per_minute")["seen"] == h.counters("payments")["accepted"]
        settle(h)
        assert_agrees_with_the_reference(h)


def test_definitions_that_spark_refuses_are_reported_all_at_once_and_change_nothing() -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", payments(0, 20), partition=0)
        settle(h)
        before = h.rows("per_minute")
        wrong = SHOP.replace("sum(amount)", "sum(card)").replace("100 / n", "map_keys(n)")
        with pytest.raises(DefinitionError) as refused:
            h.restart(wrong)
        assert len(refused.value.problems) == 2
        assert "sum needs a number" in str(refused.value)
        assert "map_keys" in str(refused.value)
        faults.disarm()
        h.restart(SHOP)
        assert h.rows("per_minute") == before


def test_a_renamed_stream_is_read_anew_and_nothing_counts_twice() -> None:
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", payments(0, 60), partition=0)
        settle(h)
        renamed = (STREAM + PER_MINUTE).replace("STREAM payments", "STREAM paid")
        h.restart(renamed.replace("FROM payments", "FROM paid"))
        settle(h)
        assert_agrees_with_the_reference(h)
        h.audit()


def test_the_only_view_of_a_stream_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fold: object, *arguments: object, **options: object) -> object:
        raise ViewFailed("view per_minute: out of memory", view="per_minute")

    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        with monkeypatch.context() as patch:
            patch.setattr(short, "can_prepare", lambda _: False)
            patch.setattr(short, "fold_rows", fail)
            h.append("payments", payments(0, 20), partition=0)
            settle(h)
        assert len(h.engine.units) == 2
        h.append("payments", payments(20, 20), partition=0)
        settle(h)
        assert h.counters("payments")["read"] == 40, "the stream goes on without its view"
        h.restart()
        settle(h)
        assert_agrees_with_the_reference(h)


def test_an_edit_of_a_view_that_was_set_aside_leaves_its_table_to_readers() -> None:
    poison = STREAM + RATIOS.replace("100 / n", "100 / (n % 2)")
    with harness(poison, partitions=2, settings=Settings(probe_jobs=5)) as h:
        h.append("payments", payments(0, 20), partition=0)
        settle(h)
        assert len(h.engine.units) == 2
        before = h.rows("ratios")
        h.restart(STREAM + RATIOS.replace("100 / n", "try_divide(100, n % 2)"))
        assert h.rows("ratios") == before
        settle(h)
        assert list(h.engine.units) == ["main"]
        assert len(h.rows("ratios")) == h.counters("payments")["accepted"]
        h.audit()


def test_a_new_stream_is_swapped_in_while_records_arrive() -> None:
    others = "CREATE STREAM others (id STRING) WITH (topic = 'others');"
    copy = "CREATE MATERIALIZED VIEW ids AS SELECT id FROM others;"
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", payments(0, 10), partition=0)
        settle(h)
        h.restart(STREAM + PER_MINUTE + others + copy)
        h.append("others", [{"id": "1"}] * 5, partition=0)

        def more() -> None:
            h.append("others", [{"id": "2"}], partition=0)

        for _ in range(3):
            faults.arm("after_commit", more)  # there is always one record more
            h.turn()
        assert list(h.engine.units) == ["main"]
        faults.disarm()
        settle(h)
        assert_agrees_with_the_reference(h)


def test_a_stream_that_moved_to_another_topic_is_read_to_its_end() -> None:
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", payments(0, 10), partition=0)
        settle(h)
        h.restart((STREAM + PER_MINUTE).replace("topic = 'payments'", "topic = 'moved'"))
        h.append("moved", [to_json(value) for value in payments(0, 60)], partition=0)
        run_engine(h.engine, threading.Event(), once=True)
        assert h.counters("payments")["read"] == 60
        assert list(h.engine.units) == ["main"]
        assert_agrees_with_the_reference(h)


def test_old_and_new_version_can_both_be_set_apart_and_the_new_one_wins() -> None:
    poison = STREAM + PER_MINUTE + RATIOS.replace("100 / n", "100 / (n % 2)")
    with harness(poison, partitions=2, settings=Settings(probe_jobs=5)) as h:
        h.append("payments", payments(0, 20), partition=0)
        settle(h)
        h.restart(poison.replace("n % 2", "n % 3"))
        h.append("payments", payments(20, 20), partition=0)
        run_engine(h.engine, threading.Event(), once=True)
        h.restart(STREAM + PER_MINUTE + RATIOS.replace("100 / n", "n"))
        run_engine(h.engine, threading.Event(), once=True)
        assert list(h.engine.units) == ["main"]
        assert_agrees_with_the_reference(h)


def test_a_dead_record_of_the_largest_size_is_kept_whole() -> None:
    value = b"x" * (MAX_RECORD_BYTES - 10)
    with harness(STREAM + PER_MINUTE, partitions=2) as h:
        h.append("payments", [value, *[b"y" * 600_000] * 60], partition=0)
        settle(h)
        dead = h.dead("payments")
        assert len(dead) == 61
        assert dead[0]["value"] == value
