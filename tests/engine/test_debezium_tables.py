"""Tables of change events: those that other engines test with, and random ones of every kind.

Method: each event of the corpus is a turn of its own, so that the changes are those that its
authors expect of it; random events of few keys (moves of keys, truncations, values that were not
sent, tombstones) are cut at random, in both gears, and compared with the reference.
The corpus is not ours to ship: its tests are skipped where it is not there.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import any_split, assert_agrees_with_the_reference
from hypothesis import given
from hypothesis import strategies as st
from soaking import SOAKING

from headrace.log import TopicSettings, records
from headrace.schema.codec import TRUNCATE_HEADER
from headrace.schema.debezium_values import UNSENT_TEXT
from headrace.testing import Harness, harness
from headrace.testing.strategies import TURN_POINTS, Append, Crash, Script, Step, Turn, play

SHARED = Path(__file__).parents[3] / "shared"
CORPUS = SHARED / "corpus" / "cdc-envelopes"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
with_corpus = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project")

PRODUCTS = """
CREATE TABLE products (id INT PRIMARY KEY, name STRING NOT NULL, description STRING, weight FLOAT)
WITH (format = 'debezium');
"""
CUSTOMERS = """
CREATE TABLE customers (
  id INT, first_name STRING NOT NULL, last_name STRING NOT NULL, email STRING, PRIMARY KEY (id)
) WITH (format = 'debezium');
"""
ORDERS = """
CREATE TABLE orders (
  id INT PRIMARY KEY, name STRING NOT NULL, amount DECIMAL(10,2), tags ARRAY<STRING>, js STRING,
  at TIMESTAMP
) WITH (format = 'debezium', decimal_format = 'text', source_table = 'public.orders');
"""
FLINK = (
    "debezium-data-schema-exclude.txt",
    "debezium-data-schema-include.txt",
    "debezium-postgres-data-schema-exclude.txt",
    "debezium-postgres-data-schema-include.txt",
    # An update without `before` is an error to Flink, which retracts from there. The row is known
    # here, so it is the same changelog as with whole rows.
    "debezium-postgres-data-replica-identity.txt",
)
#: Events of other shapes: each of them is dead. These formats are not read yet.
OTHER_SHAPES = {
    "flink/canal-data.txt": "no op",
    "flink/maxwell-data.txt": "no op",
    "flink/ogg-data.txt": "no op",
    "risingwave/canal_json_double_field.1": "no op",
    "risingwave/maxwell_json.1": "no op",
    # Rows as texts, of a database of documents.
    "risingwave/debezium_mongo_json_customers.1": "after is not an object",
    "risingwave/debezium_mongo_json_customers_no_schema_field.1": "after is not an object",
}


def lines_of(file: str) -> list[str]:
    return [line for line in (CORPUS / file).read_text().split("\n") if line]


@with_corpus
@pytest.mark.parametrize("file", FLINK)
def test_flinks_files_give_the_changelog_that_it_expects(file: str) -> None:
    known = "debezium-postgres-data-schema-exclude.txt" if "identity" in file else file
    expected = json.loads((CORPUS / "flink" / "expected_changelog.json").read_text())[known]
    found = []
    with harness(PRODUCTS, partitions=1) as h:
        assert h.changes("products") == []
        for line in lines_of(f"flink/{file}"):
            # The files lack the keys of their records; the last row is the one that is deleted.
            h.append("products", [line], keys=[b'{"id":111}'], partition=0)
            h.turn()
            made = h.changes("products")
            for change in made:
                word = "U" if len(made) == 2 else "I" if change["_sign"] > 0 else "D"
                row = [str(change[name]) for name in ("id", "name", "description")]
                row.append(str(np.float32(change["weight"])))
                found.append(f"{'+' if change['_sign'] > 0 else '-'}{word}({','.join(row)})")
        assert h.dead("products") == []
        assert found == expected
        h.audit()


@with_corpus
@pytest.mark.parametrize("file", ["debezium_log.1", "debezium_log_no_schema_field.1"])
def test_risingwaves_customers(file: str) -> None:
    with harness(CUSTOMERS, partitions=1) as h:
        h.append("customers", lines_of(f"risingwave/{file}"), partition=0)
        h.turn()
        names = {row["id"]: (row["first_name"], row["last_name"]) for row in h.rows("customers")}
        assert names == {
            1001: ("Sally", "Thomas"),
            1002: ("George", "Bailey"),
            1003: ("Edward", "Walker"),
            1004: ("Anne1", "Kretchmar"),
            1005: ("add", "add2"),
        }
        assert_agrees_with_the_reference(h)


@with_corpus
def test_keys_that_cannot_be_read_are_not_needed() -> None:
    orders = """
    CREATE TABLE orders (order_id INT PRIMARY KEY, order_date TIMESTAMP, customer_name STRING)
    WITH (format = 'debezium', timestamp_format = 'millis');
    """
    pairs = [line.split("^") for line in lines_of("risingwave/debezium_mess_key.1")]
    with harness(orders, partitions=1) as h:
        h.append("orders", [v for _, v in pairs], keys=[k.encode() for k, _ in pairs], partition=0)
        h.turn()
        assert {row["order_id"]: row["customer_name"] for row in h.rows("orders")} == {
            1: "Bob",
            2: "Alice",
            3: "Alice",
        }
        assert h.counters("orders")["dead"] == 0


@with_corpus
def test_a_payload_without_a_schema() -> None:
    items = """
    CREATE TABLE items (
      L_ORDERKEY BIGINT, L_LINENUMBER INT, L_QUANTITY DECIMAL(15,2), L_SHIPDATE DATE,
      PRIMARY KEY (L_ORDERKEY, L_LINENUMBER)
    ) WITH (format = 'debezium');
    """
    with harness(items, partitions=1) as h:
        h.append("items", lines_of("risingwave/debezium_ignore_case_json.1"), partition=0)
        h.turn()
        found = sorted((row["L_ORDERKEY"], str(row["L_SHIPDATE"])) for row in h.rows("items"))
        assert found == [(56165, "1992-06-22"), (56166, "1993-09-15"), (56166, "1993-11-07")]


@with_corpus
def test_risingwaves_upserts() -> None:
    people = """
    CREATE TABLE people (ID INT PRIMARY KEY, firstName STRING, lastName STRING, age INT);
    """
    with harness(people, partitions=1) as h:
        pairs = [line.split("^") for line in lines_of("risingwave/upsert_json.1")]
        h.append(
            "people",
            [value or None for _, value in pairs],
            keys=[key.encode() for key, _ in pairs],
            partition=0,
        )
        h.turn()
        newest = {json.loads(key)["ID"]: value for key, value in pairs}
        expected = {key: json.loads(value)["age"] for key, value in newest.items() if value}
        assert {row["ID"]: row["age"] for row in h.rows("people")} == expected
        assert len(expected) < len(newest)


@with_corpus
def test_events_of_another_shape_are_dead_with_a_reason() -> None:
    with harness(PRODUCTS, partitions=1) as h:
        expected = []
        for file, reason in OTHER_SHAPES.items():
            lines = lines_of(file)
            h.append("products", lines, partition=0)
            expected += [reason] * len(lines)
        h.turn()
        assert h.rows("products") == []
        reasons = [each["reason"] for each in h.dead("products")]
        assert [r.startswith(e) for r, e in zip(reasons, expected, strict=True)] == [True] * len(
            expected
        ), reasons


@pytest.mark.skipif(not SHARED.exists(), reason="the events are not beside the project")
@pytest.mark.parametrize("gear", ["short", "long"])
@pytest.mark.parametrize("identity", ["full", "default"])
def test_real_events_of_postgres(identity: str, gear: str) -> None:
    path = SHARED / "recipes" / f"debezium-envelopes-{identity}-identity.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    told = []
    with harness(ORDERS, partitions=1) as h:
        h.changes("orders")
        for event in events:
            key, value = (
                None if event[part] is None else json.dumps(event[part])
                for part in ("key", "value")
            )
            h.append("orders", [value], keys=[key and key.encode()], partition=0)
            h.turn(gear=gear)
            told.append([(c["_sign"], c["id"], str(c["amount"])) for c in h.changes("orders")])
        expected = [
            [(1, 1, "1.50")],
            [(1, 2, "2.50")],
            [(1, 3, "3.00")],
            [(-1, 3, "3.00"), (1, 3, "9.99")],
            [(-1, 3, "9.99")],
            [],  # the tombstone behind it
        ]
        if identity == "default":
            expected.append([(-1, 1, "1.50"), (-1, 2, "2.50")])  # the table is truncated
        assert told == expected
        assert_agrees_with_the_reference(h)
        h.audit()


def test_a_truncation_counts_where_it_is_in_all_partitions() -> None:
    with harness(PRODUCTS, partitions=2) as h:
        for partition in (0, 1):
            h.append("products", [created(partition, "a")], partition=partition)
        h.append("products", [event("t")], partition=0)
        h.turn()
        [dead] = h.dead("products")
        assert dead["reason"].startswith("it truncates the table in one of 2 partitions")
        assert sorted(row["id"] for row in h.rows("products")) == [0, 1]
        for partition in (0, 1):
            truncate = records(
                [json.dumps(event("t")).encode()],
                headers=[{TRUNCATE_HEADER: b"all"}],
            )
            h.log.append("products", truncate, partition=partition)
        h.append("products", [created(3, "new")], partition=1)
        h.turn()
        assert [row["id"] for row in h.rows("products")] == [3]
        assert h.counters("products")["truncates"] == 2
        h.append("products", [created(0, "again")], partition=0)
        h.turn()
        assert sorted(row["id"] for row in h.rows("products")) == [0, 3]
        assert_agrees_with_the_reference(h)
        h.audit()


def test_a_value_that_was_not_sent_stays_but_not_on_a_compacted_topic() -> None:
    with harness(PRODUCTS, partitions=1) as h:
        unsent = event("u", None, {"id": 1, "name": "new", "description": UNSENT_TEXT})
        h.append("products", [created(1, "old", "long text"), unsent], partition=0)
        h.turn()
        [row] = h.rows("products")
        assert (row["name"], row["description"]) == ("new", "long text")
        h.append("products", [event("d", {"id": 1})], partition=0)
        h.append("products", [created(1, "back")], partition=0)
        h.turn()
        [row] = h.rows("products")
        assert (row["name"], row["description"]) == ("back", None)
        assert_agrees_with_the_reference(h)
        h.log.change_topic("products", settings=TopicSettings(compact=True))
        h.append("products", [unsent], partition=0, keys=[b"1"])
        h.turn()
        [dead] = h.dead("products")
        assert dead["reason"].startswith("it leaves description as it was, and the topic is comp")
        assert dead["reason"].endswith("ALTER TABLE ... REPLICA IDENTITY FULL")


def test_a_stream_of_events_sees_their_envelopes() -> None:
    events = """
    CREATE STREAM events (
      op STRING NOT NULL, before STRUCT<id: INT, name: STRING>, after STRUCT<id: INT, name: STRING>,
      at TIMESTAMP NOT NULL FROM 'ts_ms' FORMAT 'millis',
      WATERMARK FOR at AS at - INTERVAL 0 SECONDS
    ) WITH (topic = 'products', format = 'debezium', unique = 'op', unique_within = '1 second');
    CREATE MATERIALIZED VIEW done AS
    SELECT window.start AS start, op, count(*) AS n, max(coalesce(after.id, before.id)) AS most
    FROM events GROUP BY window(at, '1 minute'), op;
    """
    with harness(events, partitions=1) as h:
        for gear in ("short", "long"):
            for number, op in enumerate("cuud"):
                value = event(op, {"id": number}, {"id": number + 1} if op != "d" else None)
                h.append("events", [{**value, "ts_ms": 1_000 * number}], partition=0)
            h.append("events", [None, "{}"], partition=0)
            h.turn(gear=gear)
            assert_agrees_with_the_reference(h)
        assert h.counters("events")["ignored"] == 2
        h.audit()


def event(op: str, before: object = None, after: object = None) -> dict[str, object]:
    return {"before": before, "after": after, "op": op}


def created(id: int, name: str, description: str | None = None) -> dict[str, object]:
    return event("c", None, {"id": id, "name": name, "description": description})


@st.composite
def scripts_of_events(draw: st.DrawFn) -> Script:
    """Draw events of few rows in one partition, with turns and crashes between them."""
    script: list[Step] = []
    for number in range(draw(st.integers(10, 24 if not SOAKING else 60))):
        arrival = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        row, old = draw(rows_of_events), draw(st.one_of(st.none(), rows_of_events))
        op = draw(st.sampled_from(["c", "u", "u", "u", "d", "d", "t", "m", "r"]))
        value: Any = event(op, row, None) if op == "d" else event(op, old, row)
        if draw(st.integers(0, 9)) == 0:
            value = draw(st.sampled_from([None, "{}", event("c")]))
        script.append(Append("products", 0, value, arrival))
        step = draw(st.integers(0, 11))
        if step == 0:
            script.append(Crash(draw(st.sampled_from(TURN_POINTS))))
        if step <= 2:
            gear = draw(st.sampled_from(["short", "short", "long"]))
            script.append(Turn(draw(st.sampled_from([None, 1, 3])), gear))
    return script


rows_of_events = st.fixed_dictionaries(
    {"id": st.integers(1, 3), "name": st.sampled_from(["a", "b", "c"])},
    optional={"description": st.sampled_from([None, "x", UNSENT_TEXT]), "weight": st.just(1.5)},
)


@any_split(3, soaked=20)
@given(script=scripts_of_events())
def test_the_cut_into_turns_never_shows(script: Script) -> None:
    with harness(PRODUCTS, partitions=1) as h:
        h.changes("products")
        play(h, script)
        assert_agrees_with_the_reference(h)
        assert folded(h) == sorted(map(repr, h.rows("products")))
        h.audit()


def folded(h: Harness) -> list[str]:
    """Return the rows that all changes make."""
    found: dict[str, str] = {}
    for change in h.changes("products"):
        row = {name: each for name, each in change.items() if not name.startswith("_")}
        if change["_sign"] < 0:
            assert found.pop(repr(change["_key"])) == repr(row)
        else:
            found[repr(change["_key"])] = repr(row)
    return sorted(found.values())
