"""What a table asks of its topic: compacted, without records that go, with the partitions it had.

Method: topics are changed below a table, by hand and at random; its rows are those that a plain
dictionary of the same changes has.
"""

import time
from typing import Any

import pyarrow as pa
import pytest
from agreement import any_split
from cards import CARDS, card, rows
from hypothesis import given
from hypothesis import strategies as st
from soaking import SOAKING

from headrace.errors import AuditFailed, DefinitionError
from headrace.log import TopicSettings
from headrace.observe.status import Status, take_status
from headrace.plan.tables import Table
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore as TurnStore
from headrace.testing import Harness, harness

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_compacted_topic_gives_the_same_rows() -> None:
    with harness(CARDS, partitions=1) as h:
        h.log.change_topic("cards", settings=TopicSettings(compact=True))
        for number in range(30):
            h.append("cards", [card("abc"[number % 3], f"Ann {number}", "gold")], partition=0)
            if number % 7 == 0:
                h.delete("cards", [{"card": "b"}], partition=0)
                h.turn()
        h.turn()
        before = rows(h)
        assert set(before) == {"a", "c"}
        h.audit()
        h.log.compact("cards")
        assert len(h.topic("cards")) < 30
        assert rows(h) == before
        [note] = h.audit().notes
        assert note.startswith("table cards: its topic is compacted, so the rows that are shown")
        h.append("cards", [card("a", "last", "gold")], partition=0)
        h.turn()
        before = rows(h)
        h.audit()
        h.lose_store()
        h.restart()
        h.turn()
        assert rows(h) == before


@st.composite
def changes_of_one_table(draw: st.DrawFn) -> list[Any]:
    """Draw changes of a table, with turns, compactions and lost stores between them."""
    return [
        draw(
            st.one_of(
                st.tuples(st.sampled_from("abc"), st.sampled_from(["gold", "basic", None])),
                st.tuples(st.sampled_from("abc"), st.sampled_from(["gold", "basic", None])),
                st.sampled_from(["short", "short", "long", "compact", "compact", "lose"]),
            )
        )
        for _ in range(draw(st.integers(16, 24 if not SOAKING else 60)))
    ]


@any_split(2, soaked=15)
@given(steps=changes_of_one_table())
def test_compaction_in_between_never_shows(steps: list[Any]) -> None:
    expected: dict[str, tuple[Any, ...]] = {}
    with harness(CARDS, partitions=1) as h:
        h.log.change_topic("cards", settings=TopicSettings(compact=True))
        for number, step in enumerate(steps):
            match step:
                case (key, None):
                    h.delete("cards", [{"card": key}], partition=0)
                    expected.pop(key, None)
                case (key, tier):
                    h.append("cards", [card(key, str(number), tier)], partition=0)
                    expected[key] = (str(number), tier, None)
                case "compact":
                    h.log.compact("cards")
                case "lose":
                    h.lose_store()
                    h.restart()
                case gear:
                    h.turn(gear=gear)
                    assert rows(h) == dict(sorted(expected.items()))
        h.turn()
        assert rows(h) == dict(sorted(expected.items()))
        h.audit()


def test_an_audit_of_a_compacted_topic_finds_a_wrong_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(CARDS, partitions=1) as h:
        h.log.change_topic("cards", settings=TopicSettings(compact=True))
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "gold")], partition=0)
        honest = TurnStore.stage

        def wrong(self: TurnStore, table: Table, delta: pa.Table) -> pa.Table:
            return honest(self, table, delta.slice(0, 0))

        with monkeypatch.context() as patch:
            patch.setattr(TurnStore, "stage", wrong)
            h.turn()
        with pytest.raises(AuditFailed, match="table cards: the table lacks a row"):
            h.audit()


def test_a_topic_that_removes_records_is_refused_unless_rows_may_be_lost() -> None:
    with harness(CARDS) as h:
        h.log.change_topic("cards", settings=TopicSettings(retention_ms=86_400_000))
        with pytest.raises(DefinitionError) as refused:
            h.restart()
        [problem] = refused.value.problems
        assert "which removes records after 1 day, 0:00:00: a row that did not" in problem.message
        h.restart(CARDS.replace("'upsert'", "'upsert', removed_records = 'lose rows'"))
        h.append("cards", [card("a", "Ann", "gold")], partition=0)
        h.turn()
        assert rows(h) == {"a": ("Ann", "gold", None)}
    with pytest.raises(DefinitionError, match="removed_records 'yes' is not known"):
        parse_project({"t.sql": CARDS.replace("'upsert'", "'upsert', removed_records = 'yes'")})


def test_a_table_stands_still_when_its_topic_has_more_partitions() -> None:
    other = "CREATE STREAM ids (id STRING); CREATE MATERIALIZED VIEW v AS SELECT id FROM ids;"
    with harness(CARDS + other, partitions=1) as h:
        h.append("cards", [card("a", "Ann", "gold")], partition=0)
        h.turn()
        h.log.change_topic("cards", partitions=2)
        h.append("cards", [card("a", "Bob", "gold")], partition=1)
        h.append("ids", [{"id": "1"}], partition=0)
        h.turn()
        h.turn()
        assert rows(h) == {"a": ("Ann", "gold", None)}
        assert h.rows("v") == [{"id": "1"}]
        views = {each.name: each for each in status_of(h).views}
        assert (views["cards"].state, views["v"].state) == ("failed", "live")
        assert views["cards"].reason.startswith("the topic cards had 1 partition when the table")
        assert h.turn() == []
        h.restart()
        h.turn()
        assert rows(h) == {"a": ("Ann", "gold", None)}


def test_a_table_that_may_have_missed_a_tombstone_is_built_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with harness(CARDS, partitions=1) as h:
        h.log.change_topic("cards", settings=TopicSettings(compact=True, tombstone_ms=3_600_000))
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "gold")], partition=0)
        h.turn()
        store = h.counters("cards")
        h.append("cards", [card("a", "Anna", "gold")], partition=0)
        now = time.time()
        monkeypatch.setattr("headrace.engine.tables.levels._now", lambda: now + 3_500)
        h.restart()  # not longer than tombstones stay: it goes on
        assert h.counters("cards") == store
        h.turn()
        assert h.counters("cards")["read"] == 3
        monkeypatch.setattr("headrace.engine.tables.levels._now", lambda: now + 9_000)
        h.restart()  # longer, but there is nothing to read
        assert h.counters("cards")["read"] == 3
        h.append("cards", [card("c", "Cy", "gold")], partition=0)
        # Both records of b are gone, as if they were compacted when nobody looked.
        monkeypatch.setattr("headrace.engine.tables.levels._now", lambda: now + 18_000)
        h.restart()
        assert h.counters("cards") == {}
        h.turn()
        assert set(rows(h)) == {"a", "b", "c"}
        assert h.counters("cards")["read"] == 4
        h.audit()


def test_a_table_that_is_no_longer_defined_goes_though_its_topic_is_gone() -> None:
    other = "CREATE STREAM ids (id STRING); CREATE MATERIALIZED VIEW v AS SELECT id FROM ids;"
    with harness(CARDS + other, partitions=1) as h:
        h.append("cards", [card("a", "Ann", "gold")], partition=0)
        h.turn()
        h.log.delete_topic("cards")
        h.restart(other)
        h.append("ids", [{"id": "1"}], partition=0)
        h.turn()
        assert h.rows("v") == [{"id": "1"}]
        h.audit()


def test_keys_in_two_partitions_are_counted_and_told() -> None:
    with harness(CARDS, partitions=2) as h:
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "gold")], partition=0)
        h.turn()
        assert status_of(h).warnings == ()
        h.append("cards", [card("a", "Anna", "gold")], partition=1)
        h.turn()
        found = status_of(h)
        [view] = found.views
        assert (view.kind, view.scattered_keys) == ("table", 1)
        [warning] = found.warnings
        assert warning.startswith("table cards: 1 key has changes in several partitions of cards")


def status_of(h: Harness) -> Status:
    with h.engine.tools.store.open() as snapshot:
        return take_status("shop", snapshot, h.log, Settings())
