"""Records have the key that their stream declares, or are spread over the partitions.

Method: records are appended by the command line, and read from the log with their partitions.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.commands import Run
from headrace.consume import Sender
from headrace.errors import DefinitionError, RecordTooLarge, UsageError
from headrace.log import MAX_RECORD_BYTES, EmbeddedLog, Partition
from headrace.project.folder import read_definitions
from headrace.project.keys import declared_keys, field_key
from headrace.project.producing import open_sender
from headrace.testing.log.suite import rows

TIME = "ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 1 MINUTE"
VIEW = "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM {};"


def stream(name: str, columns: str, options: str) -> str:
    return f"CREATE STREAM {name} ({columns}, {TIME}) WITH (topic = 'orders', {options});\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Make a project without definitions."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "headrace.toml").write_text('[project]\nname = "shop"\n')
    return folder


def define(shop: Path, *streams: str) -> None:
    names = [text.split()[2] for text in streams]
    views = [VIEW.format(name).replace("counted", f"count_{name}") for name in names]
    (shop / "orders.sql").write_text("\n".join([*streams, *views]))


def append(headrace: Run, shop: Path, lines: list[str], *options: object) -> Any:
    file = shop / "lines"
    file.write_text("\n".join(lines))
    return headrace("append", "orders", file, "--json", "-p", shop, *options)


def stored(shop: Path) -> list[tuple[int, bytes | None, bytes]]:
    log = EmbeddedLog(shop / ".headrace" / "log")
    found = [
        (place.number, row["key"], row["value"])
        for place in log.extents("orders")
        for row in rows(log, place)
    ]
    log.close()
    return found


def test_the_same_record_appended_again_is_in_the_same_partition(shop: Path, headrace: Run) -> None:
    define(shop, stream("orders", "id STRING NOT NULL", "key = 'id', unique = 'id', "
                        "unique_within = '1 hour'"))  # fmt: skip
    for _ in range(4):
        answer = append(headrace, shop, ['{"id": "a-17", "ts": "2026-01-01"}'])
        assert answer.rows[0]["key"] == "id"
        assert answer.rows[0]["without_key"] == 0
    found = stored(shop)
    assert len(found) == 4
    assert {(partition, key) for partition, key, _ in found} == {(found[0][0], b"a-17")}


@pytest.mark.parametrize(
    ("columns", "options", "record", "key"),
    [
        ("id STRING FROM '$.meta.id'", "key = 'id'", {"meta": {"id": "x"}, "id": "no"}, b"x"),
        ("id STRING FROM '@id'", "key = 'id'", {"@id": "x"}, b"x"),
        ("Id BIGINT", "key = 'id'", {"Id": 12}, b"12"),
        ("id DECIMAL(9,2)", "key = 'id'", {"id": 12.5}, b"12.50"),
        ("id STRING", "key = 'id'", {"id": 12.5}, b"12.5"),
        ("id DOUBLE", "key = 'id'", {"id": 12.5}, b"12.5"),
        ("id BOOLEAN", "key = 'id'", {"id": True}, b"true"),
        # Duplicates are found within a partition, so the id is the key unless another is declared.
        ("id STRING NOT NULL", "unique = 'id', unique_within = '1 hour'", {"id": "x"}, b"x"),
        ("id STRING NOT NULL, c STRING", "key = 'c', unique = 'id', unique_within = '1 hour'",
         {"id": "x", "c": "y"}, b"y"),
        ("id STRING", "format = 'json'", {"id": "x"}, None),
    ],
)  # fmt: skip
def test_the_declared_key_is_read_where_its_column_stands(
    shop: Path, headrace: Run, columns: str, options: str, record: Any, key: bytes | None
) -> None:
    define(shop, stream("orders", columns, options))
    assert append(headrace, shop, [json.dumps(record)]).code == 0
    assert [found for _, found, _ in stored(shop)] == [key]


def test_equal_values_have_equal_keys_however_they_are_written(shop: Path, headrace: Run) -> None:
    define(shop, stream("orders", "id BIGINT", "key = 'id'"))
    lines = ['{"id": 12}', '{"id": "12"}', '{"id": 12.0}', '{"id":1.2e1}'] * 60
    append(headrace, shop, lines)  # more than 200, so that the vectorised path is taken too
    append(headrace, shop, lines[:4])
    assert {key for _, key, _ in stored(shop)} == {b"12"}


def test_a_key_that_records_lack_is_counted_and_told(shop: Path, headrace: Run) -> None:
    define(shop, stream("orders", "id BIGINT", "key = 'id'"))
    lines = ['{"id": 1}', "{}", '{"id": null}', '{"id": "no number"}', "no json"]
    answer = append(headrace, shop, lines)
    assert answer.rows[0]["without_key"] == 4
    told = headrace("append", "orders", shop / "lines", "-p", shop)
    assert "4 of 5 records have no field id, so they were stored without a key" in told.err
    named = headrace("append", "orders", shop / "lines", "--key-field", "$.a.b", "-p", shop)
    assert "5 of 5 records have no field $.a.b, so they were stored" in named.err


def test_records_without_the_declared_key_are_keyed_by_their_unique_id(
    shop: Path, headrace: Run
) -> None:
    """Else duplicates of them would be in several partitions, where they are not found."""
    unique = "key = 'card', unique = 'id', unique_within = '1 hour'"
    define(shop, stream("orders", "id BIGINT NOT NULL, card STRING", unique))
    lines = ['{"id": 1, "card": "c"}', '{"id": 2}', '{"id": "3", "card": null}', "{}"] * 60
    answer = append(headrace, shop, lines)  # more than 200: the vectorised path
    assert answer.rows[0]["without_key"] == 60
    for _ in range(4):
        append(headrace, shop, lines[:3])
    found = stored(shop)
    assert {key for _, key, _ in found} == {b"c", b"2", b"3", None}
    keyed = {(partition, key) for partition, key, _ in found if key is not None}
    assert len(keyed) == 3


def test_another_stream_with_the_same_key_and_no_id_does_not_matter(
    shop: Path, headrace: Run
) -> None:
    plain = stream("a", "card STRING", "key = 'card'")
    unique = "key = 'card', unique = 'id', unique_within = '1 hour'"
    define(shop, plain, stream("b", "id STRING NOT NULL, card STRING", unique))
    append(headrace, shop, ['{"id": "i"}', '{"id": "i", "card": "c"}'])
    assert sorted(key for _, key, _ in stored(shop) if key) == [b"c", b"i"]


def test_streams_with_different_keys_are_refused_until_one_is_chosen(
    shop: Path, headrace: Run
) -> None:
    columns = "id STRING, card STRING FROM '$.pay.card'"
    define(shop, stream("a", columns, "key = 'id'"), stream("b", columns, "key = 'card'"))
    lines = ['{"id": "i", "pay": {"card": "c"}}']
    refused = append(headrace, shop, lines)
    assert refused.code == 2
    assert "stream a has the key id and stream b the key card" in refused.err
    assert "--key-field 'id' or --key-field '$.pay.card'" in refused.err
    for options in (("--key-field", "$.pay.card"), ("--key", "k"), ("--no-key",)):
        assert append(headrace, shop, lines, *options).code == 0
    assert Counter(key for _, key, _ in stored(shop)) == {b"c": 1, b"k": 1, None: 1}
    both = append(headrace, shop, lines, "--key", "k", "--no-key")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_streams_with_the_same_key_agree(shop: Path, headrace: Run) -> None:
    define(shop, stream("a", "id STRING", "key = 'id'"),
           stream("b", "order STRING FROM 'id'", "key = 'order'"),
           stream("c", "id STRING", "format = 'json'"))  # fmt: skip
    assert append(headrace, shop, ['{"id": "i"}']).code == 0
    assert [key for _, key, _ in stored(shop)] == [b"i"]


def test_a_computed_key_cannot_be_read_and_is_refused(shop: Path, headrace: Run) -> None:
    define(shop, stream("orders", "id STRING, big STRING AS upper(id)", "key = 'big'"))
    refused = append(headrace, shop, ['{"id": "i"}'])
    assert refused.code == 2
    assert "the key of stream orders is its column big, which Spark computes" in refused.err
    assert append(headrace, shop, ['{"id": "i"}'], "--key-field", "id").code == 0


def test_records_without_a_key_are_dealt_out(shop: Path, headrace: Run) -> None:
    define(shop, stream("orders", "id STRING", "format = 'json'"))
    lines = [f'{{"id": "{n}"}}' for n in range(500)]
    append(headrace, shop, lines)
    found = stored(shop)
    assert Counter(partition for partition, _, _ in found) == dict.fromkeys(range(4), 125)
    for partition in range(4):  # in the order of the lines, the last without a newline with them
        own = [value.decode() for number, _, value in found if number == partition]
        assert own == lines[partition::4]
    for _ in range(4):
        append(headrace, shop, lines[:1])
    assert set(Counter(number for number, _, _ in stored(shop)).values()) == {126}


def test_a_log_without_definitions_can_be_appended_to(shop: Path, headrace: Run) -> None:
    assert append(headrace, shop, ["1", "2"], "--create").code == 0
    assert append(headrace, shop, ["3"]).code == 0
    assert len(stored(shop)) == 3


@pytest.mark.parametrize(
    "other",
    [
        "CREATE MATERIALIZED VIEW v AS SELECT nope FROM orders;",
        "CREATE MATERIALIZED VIEW v AS SELEC",
        "CREATE STREAM others (id STRIN) WITH (topic = 'others');",
        "CREATE STREAM others",
        "DROP VIEW x;",
        "CREATE VIEW v AS SELECT 'never closed",
    ],
)
def test_a_mistake_in_another_definition_does_not_matter(
    shop: Path, headrace: Run, other: str
) -> None:
    define(shop, stream("orders", "id STRING", "key = 'id'"))
    (shop / "other.sql").write_text(other)
    assert append(headrace, shop, ['{"id": "i"}']).code == 0
    assert [key for _, key, _ in stored(shop)] == [b"i"]


@pytest.mark.parametrize(
    "text",
    [
        stream("orders", "id STRIN", "key = 'id'"),
        stream("orders", "id STRING", "key = 'nope'"),
        "CREATE STREAM orders WITH (topic = 'orders');",
        "CREAT STREAM orders (id STRING) WITH (key = 'id');",
        "CREATE STREAM orders (id STRING) WITH (topic = 'orders",
    ],
)
def test_a_key_in_doubt_is_refused_until_it_is_named(shop: Path, headrace: Run, text: str) -> None:
    (shop / "orders.sql").write_text(text)
    refused = append(headrace, shop, ['{"id": "i"}'], "--create")
    assert refused.code == 2
    assert "orders: the key of its records is not known, because its streams cannot be read: " in (
        refused.err
    )
    assert ": orders.sql:1:" in refused.err
    assert "--key-field, pass --key, or append without keys with --no-key" in refused.err
    assert append(headrace, shop, ['{"id": "i"}'], "--key-field", "id", "--create").code == 0
    assert [key for _, key, _ in stored(shop)] == [b"i"]


# Programs.


def test_a_sender_uses_the_declared_keys(shop: Path) -> None:
    define(shop, stream("orders", "id BIGINT FROM '$.meta.id'", "key = 'id'"))
    log = EmbeddedLog(shop / ".headrace" / "log")
    log.create_topic("orders", partitions=4)
    log.create_topic("others", partitions=1)
    keys = declared_keys(read_definitions(shop).streams)
    assert list(keys) == ["orders"]
    with Sender(log, keys=keys) as sender:
        sent = [sender.send("orders", f'{{"meta": {{"id": {n % 7}}}}}') for n in range(300)]
        own = sender.send("orders", '{"meta": {"id": 1}}', key="mine")
        none = sender.send("orders", "{}")
        other = sender.send("others", '{"meta": {"id": 1}}')
    for n, future in enumerate(sent):
        partition, offset = future.result(0)
        assert partition is not None
        (row,) = [row for row in rows(log, partition) if row["offset"] == offset]
        assert (row["key"], row["value"]) == (b"%d" % (n % 7), b'{"meta": {"id": %d}}' % (n % 7))
    by_value = {row["value"]: row["key"] for place in log.extents("orders")
                for row in rows(log, place)}  # fmt: skip
    assert by_value[b"{}"] is None
    assert own.result(0).offset is not None
    assert none.result(0).partition is not None
    assert other.result(0) == (Partition("others", 0), 0)
    assert rows(log, Partition("others", 0))[0]["key"] is None
    log.close()


def test_a_sender_of_a_project_has_the_declared_keys_and_can_be_told_others(shop: Path) -> None:
    orders = stream("orders", "id BIGINT, card STRING", "key = 'id'")
    others = stream("others", "id BIGINT", "key = 'id'").replace(
        "topic = 'orders'", "topic = 'others'"
    )
    define(shop, orders, others)
    log = EmbeddedLog(shop / ".headrace" / "log")
    for topic in ("orders", "others"):
        log.create_topic(topic, partitions=1)
    value = '{"id": 7, "card": "c"}'
    with open_sender(shop, linger_ms=0, acks=1) as sender:
        sender.send("orders", value)
        sender.send("orders", value, key="mine")
    chosen = {"orders": field_key("card"), "others": None}
    with open_sender(str(shop), keys=chosen) as sender:
        sender.send("orders", value)
        sender.send("others", value)
    assert [row["key"] for row in rows(log, Partition("orders", 0))] == [b"7", b"mine", b"c"]
    assert [row["key"] for row in rows(log, Partition("others", 0))] == [None]
    log.close()
    with pytest.raises(UsageError, match="closed"):
        sender.send("orders", value)


def test_a_sender_of_a_project_is_refused_while_a_key_is_in_doubt(shop: Path) -> None:
    one, other = (
        stream(name, "id BIGINT, card STRING", f"key = '{key}'")
        for name, key in (("one", "id"), ("other", "card"))
    )
    define(shop, one, other)
    advice = r"In Python: pass keys=\{'orders': field_key\('...'\)\} with the field, or"
    with pytest.raises(UsageError, match=advice), open_sender(shop):
        raise AssertionError
    with open_sender(shop, keys={"orders": None}):
        pass
    (shop / "broken.sql").write_text("CREATE STREAM")
    with pytest.raises(DefinitionError), open_sender(shop, keys={"orders": None}):
        raise AssertionError


def test_a_record_that_is_too_large_with_its_key_fails_alone(shop: Path) -> None:
    define(shop, stream("orders", "id STRING", "key = 'id'"))
    log = EmbeddedLog(shop / ".headrace" / "log")
    log.create_topic("orders", partitions=1)
    large = '{"id": "' + "x" * (MAX_RECORD_BYTES // 2 + 1) + '"}'
    with Sender(log, keys=declared_keys(read_definitions(shop).streams)) as sender:
        sent = [sender.send("orders", value) for value in ('{"id": "a"}', large, '{"id": "b"}')]
    with pytest.raises(RecordTooLarge, match="orders: this record has"):
        sent[1].result(0)
    assert [sent[n].result(0).offset for n in (0, 2)] == [0, 1]
    assert (sender.status().sent_records, sender.status().failed_records) == (2, 1)
    log.close()


CARDS = (
    "CREATE TABLE cards (card STRING, part INT, PRIMARY KEY (card, part)) WITH (topic = 'orders');"
)


def test_rows_of_a_table_are_appended_and_deleted_by_its_key(headrace: Run, shop: Path) -> None:
    (shop / "cards.sql").write_text(CARDS)
    rows_ = ['{"card": "a", "part": 1}', '{"part": "2", "card": "b"}']
    assert append(headrace, shop, rows_).code == 0
    assert append(headrace, shop, rows_[:1], "--delete").code == 0
    assert {(key, value) for _, key, value in stored(shop)} == {
        (b'{"card":"a","part":1}', rows_[0].encode()),
        (b'{"card":"b","part":2}', rows_[1].encode()),
        (b'{"card":"a","part":1}', None),
    }
    assert len(stored(shop)) == 3
    refused = append(headrace, shop, ['{"card": "a", "part": 1}', '{"card": "b"}'], "--delete")
    assert refused.code == 2
    assert "line 2: to delete a row its whole primary key is needed" in refused.err
    assert len(stored(shop)) == 3


def test_only_rows_of_a_table_are_deleted(headrace: Run, shop: Path) -> None:
    define(shop, stream("plain", "id STRING", "key = 'id'"))
    refused = append(headrace, shop, ['{"id": "a"}'], "--delete")
    assert refused.code == 2
    assert "no table of format 'upsert' reads this topic" in refused.err
    refused = append(headrace, shop, ['{"id": "a"}'], "--delete", "--key", "a")
    assert "--delete takes the primary key from each record" in refused.err
