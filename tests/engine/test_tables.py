"""Tables: the newest change of every key, whatever the cut into turns, the gear and the crashes.

Method: small logs whose answers are written out; random changes of few keys, deletes and
re-inserts among them, cut at random, with crashes, against the reference, which folds them record
by record; and changes that are followed, folded, against the rows.
"""

import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from agreement import any_split, assert_agrees_with_the_reference
from cards import CARDS, card, rows
from crashing import crash_at_every_point
from hypothesis import given
from hypothesis import strategies as st
from soaking import SOAKING, seeded

from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.strategies import TURN_POINTS, Append, Crash, Script, Step, Turn, play

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TABLES = (
    CARDS
    + """
CREATE TABLE places (
  shop INT, day DATE, tags ARRAY<STRING>, seats MAP<STRING, INT>, seen TIMESTAMP NOT NULL,
  PRIMARY KEY (shop, day), WATERMARK FOR seen AS seen - INTERVAL 5 SECONDS
) WITH (key_from = 'value', timestamp_format = 'millis');
CREATE TABLE members (id BIGINT PRIMARY KEY);
"""
)
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_newest_change_of_a_key_is_its_row() -> None:
    with harness(CARDS) as h:
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "basic")], partition=0)
        h.append("cards", [card("c", "Cy", "gold", spent="7.50")], partition=1)
        h.turn()
        h.append("cards", [card("a", "Anna", "gold", spent=1)], partition=0)
        h.delete("cards", [{"card": "b"}, {"card": "never"}], partition=0)
        h.turn()
        assert rows(h) == {
            "a": ("Anna", "gold", Decimal("1.00")),
            "c": ("Cy", "gold", Decimal("7.50")),
        }
        h.append("cards", [card("b", None, "basic")], partition=0)
        h.turn()
        assert rows(h)["b"] == (None, "basic", None)
        assert h.counters("cards") == {
            **dict.fromkeys(("dead", "duplicate", "unguarded", "ignored", "truncates"), 0),
            "read": 7,
            "accepted": 7,
            "upserts": 5,
            "deletes": 2,
        }
        assert_agrees_with_the_reference(h)
        h.audit()


def test_what_cannot_be_read_is_dead_and_never_a_wrong_row() -> None:
    cases: list[tuple[bytes | None, str | None, str]] = [
        (None, '{"tier": "gold"}', "the record has no key"),
        (None, None, "the record has no key"),
        (b"\xff", '{"tier": "gold"}', "key: not UTF-8 at byte 0"),
        (b'{"card": null}', '{"tier": "gold"}', "key.card: is null, and it is of the primary key"),
        (b'{"id": "a"}', '{"tier": "gold"}', 'key: {"id":"a"} has no card'),
        (b"a", "[]", "not a JSON object: []"),
        (b"a", "{", "not JSON: it ends at byte 1"),
        (b"a", "{}", "tier: is missing, and the column is NOT NULL"),
        (
            b"a",
            '{"tier": "gold", "spent": 1.999}',
            "spent: 1.999 has more than 2 decimals (DECIMAL(10,2))",
        ),
    ]
    with harness(CARDS) as h:
        for key, value, _ in cases:
            h.append("cards", [value], keys=[key], partition=0)
        h.append("cards", [card("a", "Ann", "gold")], partition=0)
        h.turn()
        assert [dead["reason"] for dead in h.dead("cards")] == [reason for *_, reason in cases]
        assert rows(h) == {"a": ("Ann", "gold", None)}
        assert_agrees_with_the_reference(h)
        h.audit()


def test_keys_are_objects_json_or_bare() -> None:
    keys = [b"a", b'"a"', b'{"card": "a"}', b'{"schema": {}, "payload": {"card": "a"}}',
            b'{"schema": {"type": "string"}, "payload": "a"}', b"{a", b'"a']  # fmt: skip
    with harness(CARDS) as h:
        for number, key in enumerate(keys):
            h.append("cards", [{"holder": str(number), "tier": "gold"}], keys=[key], partition=0)
        h.turn()
        assert {name: row[0] for name, row in rows(h).items()} == {"a": "4", "{a": "5", '"a': "6"}


@pytest.mark.parametrize("gear", ["short", "long"])
def test_changes_are_followed(gear: str) -> None:
    with harness(CARDS) as h:
        assert h.changes("cards") == []
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "basic")], partition=0)
        h.turn(gear=gear)
        assert signs(h) == [(1, "Ann"), (1, "Bob")]
        h.append("cards", [card("a", "Anna", "gold"), card("a", "Ann", "gold")], partition=0)
        h.append("cards", [card("a", "Ann", "gold")], partition=0)
        h.delete("cards", [{"card": "b"}], partition=0)
        h.turn(gear=gear)
        assert signs(h) == [(-1, "Bob")]  # the row of a is as it was
        h.append("cards", [card("b", "Bea", "gold")], partition=0)
        h.append("cards", [card("a", "Al", "gold")], partition=0)
        h.turn(gear=gear)
        assert signs(h) == [(-1, "Ann"), (1, "Al"), (1, "Bea")]


@st.composite
def changes_of_tables(draw: st.DrawFn) -> Script:
    """Draw changes of few keys, each key in one partition, with turns and crashes between them."""
    script: list[Step] = []
    for number in range(draw(st.integers(12, 30 if not SOAKING else 80))):
        arrival = START + timedelta(seconds=number)
        name, key, value = draw(st.one_of(card_changes, place_changes, member_changes))
        partition = zlib.crc32(key) % 2
        script.append(Append(name, partition, value, arrival, key))
        step = draw(st.integers(0, 14))
        if step == 0:
            script.append(Crash(draw(st.sampled_from(TURN_POINTS))))
        if step <= 2:
            gear = draw(st.sampled_from(["short", "short", "short", "long"]))
            script.append(Turn(draw(st.sampled_from([None, 1, 3, 7])), gear))
    return script


Change = tuple[str, bytes, Any]


def _changes(name: str, keys: st.SearchStrategy[bytes], values: st.SearchStrategy[Any]) -> Any:
    gone = st.sampled_from([False, False, True])
    return st.tuples(keys, values, gone).map(
        lambda drawn: (name, drawn[0], None if drawn[2] else drawn[1](drawn[0]))
    )


card_changes = _changes(
    "cards",
    st.sampled_from([b'{"card":"a"}', b'{"card":"b"}', b"c", b'{"card":"d"}']),
    st.tuples(st.sampled_from(["gold", "basic", None]), st.sampled_from([1, "2.50", 1.999])).map(
        lambda drawn: lambda _: {"holder": "x", "tier": drawn[0], "spent": drawn[1]}
    ),
)
place_changes = _changes(
    "places",
    st.sampled_from([b'{"shop":1,"day":"2026-01-01"}', b'{"shop":2,"day":"2026-01-01"}']),
    st.tuples(st.lists(st.sampled_from("ab"), max_size=2), st.integers(0, 10**6)).map(
        lambda drawn: (
            lambda key: {
                **json.loads(key),
                "tags": drawn[0],
                "seats": {"in": len(drawn[0])},
                "seen": int(START.timestamp() * 1000) + drawn[1],
            }
        )
    ),
)
member_changes = _changes(
    "members", st.sampled_from([b"1", b"2", b"3", b"x"]), st.just(lambda _: {"any": "thing"})
)


@any_split(3, soaked=20)
@given(script=changes_of_tables())
def test_the_cut_into_turns_never_shows(script: Script) -> None:
    with harness(TABLES, partitions=2, settings=Settings(split_folds=2)) as h:
        folded = Folded(h)
        for step in script:
            play_one(h, step)
            folded.check()
        play(h, [])
        folded.check()
        assert_agrees_with_the_reference(h)
        h.audit()


def play_one(h: Harness, step: Step) -> None:
    if not isinstance(step, Turn):
        if isinstance(step, Crash):
            h.crash(step.point)
        else:
            assert isinstance(step, Append)
            h.append(
                step.stream,
                [step.value],
                partition=step.partition,
                arrival=step.arrival,
                keys=[step.key],
            )
        return
    h.turn(max_records=step.max_records, gear=step.gear)
    if h.crashed:
        h.restart()


class Folded:
    """The rows of the tables, made of their changes alone."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}

    def check(self) -> None:
        """Take the changes since the last time; what they make is what is there."""
        for table in ("cards", "places", "members"):
            found = self.rows.setdefault(table, {})
            for change in self.h.changes(table):
                key = repr(change["_key"])
                row = {name: each for name, each in change.items() if not name.startswith("_")}
                if change["_sign"] < 0:
                    assert found.pop(key) == row, "what leaves is what was there"
                else:
                    assert key not in found
                    found[key] = row
            assert by_text(found.values()) == by_text(self.h.rows(table))


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_crash_at_every_point_changes_nothing(gear: str) -> None:
    with harness(CARDS, partitions=2) as h:

        def append(number: int) -> None:
            h.append("cards", [card("a", f"Ann {number}", "gold")], partition=0)
            h.append(
                "cards", [card("b", f"Bob {number}", "gold" if number % 3 else "no")], partition=1
            )
            h.append("cards", [{"holder": "none"}], keys=[b"dead"], partition=1)
            if number % 2:
                h.delete("cards", [{"card": "a"}], partition=0)

        points = [point for point in TURN_POINTS if not point.startswith("during")]
        crash_at_every_point(h, points, append, gear=gear)
        h.audit()


@pytest.mark.parametrize("mode", ["upsert", "debezium"])
def test_a_sink_that_is_read_back_as_a_table_equals_its_view(mode: str) -> None:
    project = f"""
    CREATE STREAM clicks (page STRING, user INT, ts TIMESTAMP NOT NULL,
      WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS);
    CREATE MATERIALIZED VIEW hits WITH (retention = '30 seconds') AS
    SELECT window.start AS start, page, count(*) AS n, max(user) AS top FROM clicks
    GROUP BY window(ts, '10 seconds'), page;
    CREATE SINK told FROM hits WITH (mode = '{mode}');
    CREATE TABLE again (start TIMESTAMP, page STRING, n BIGINT, top INT, PRIMARY KEY (start, page))
    WITH (topic = 'told', format = '{mode}');
    """
    random = seeded(29)
    with harness(project, partitions=2) as h:
        for number in range(50 if not SOAKING else 200):
            second = number + random.randrange(-5, 3)
            click = {"page": random.choice("abc"), "user": random.randrange(9)}
            click["ts"] = (START + timedelta(seconds=second)).isoformat()
            h.append("clicks", [click], partition=random.randrange(2))
            if random.random() < 0.1:
                h.crash(random.choice(TURN_POINTS))
            h.turn(gear="long" if random.random() < 0.1 else None)
            if h.crashed:
                h.restart()
        while h.turn():
            if h.crashed:
                h.restart()
        while h.turn():  # what a crash left to publish
            pass
        assert by_text(h.rows("again")) == by_text(h.rows("hits"))
        assert h.counters("again")["dead"] == 0
        h.audit()


def test_an_edited_table_is_built_beside_the_old_one_and_swapped_in() -> None:
    with harness(CARDS, partitions=1) as h:
        h.append("cards", [card("a", "Ann", "gold"), card("b", "Bob", "basic")], partition=0)
        h.delete("cards", [{"card": "b"}], partition=0)
        h.turn()
        assert len(h.changes("cards")) == 1
        h.restart(CARDS.replace("spent DECIMAL(10,2)", "spent DECIMAL(10,2), more STRING"))
        assert rows(h) == {"a": ("Ann", "gold", None)}
        h.append("cards", [{**card("a", "Ann", "gold"), "more": "x"}], partition=0)
        while h.turn():
            pass
        assert rows(h) == {"a": ("Ann", "gold", None, "x")}
        # Another key is another table.
        by_holder = CARDS.replace("PRIMARY KEY, holder STRING", ", holder STRING PRIMARY KEY")
        h.restart(by_holder.replace("'upsert'", "'upsert', key_from = 'value'"))
        while h.turn():
            pass
        assert [row["holder"] for row in h.rows("cards")] == ["Ann", "Bob"]
        h.audit()


def signs(h: Harness) -> list[tuple[int, str]]:
    found = sorted(h.changes("cards"), key=lambda row: (str(row["card"]), row["_sign"]))
    return [(row["_sign"], row["holder"]) for row in found]


def by_text(found: Iterator[dict[str, Any]] | Any) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in found)
