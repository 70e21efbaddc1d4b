"""Rows of tables are appended under their primary key, and deleted by it.

Method: bodies as a producer sends them go through the code of the API into a real log, from which
the records are read; the keys are those that a sink of a view with the same rows writes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import UsageError
from headrace.log import EmbeddedLog, Range
from headrace.model.definitions import Project
from headrace.project.keys import declared_key
from headrace.schema.json_rows import json_object
from headrace.scratch import calculate
from headrace.serve.ingest.appending import Ingest
from headrace.serve.ingest.decoding import Body, Kind, decode
from headrace.sql import parse_project

SHOP = """
CREATE TABLE cards (card STRING PRIMARY KEY, holder STRING) WITH (topic = 'cards');
CREATE TABLE places (shop BIGINT, day DATE, seats INT, PRIMARY KEY (day, shop))
WITH (key_from = 'value');
CREATE TABLE orders (id INT PRIMARY KEY) WITH (format = 'debezium');
CREATE STREAM clicks (id STRING) WITH (key = 'id');
"""
PROJECT = parse_project({"shop.sql": SHOP})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    for stream in PROJECT.streams:
        log.create_topic(stream.topic, partitions=1)
    yield log
    log.close()


def append(log: EmbeddedLog, topic: str, *rows: object, **how: bool) -> None:
    body = Body(json.dumps(rows).encode(), Kind.JSON, **how)
    Ingest(log, lambda: PROJECT).append(topic, decode(body))


def stored(log: EmbeddedLog, topic: str) -> list[tuple[bytes | None, object]]:
    found = []
    for partition, extent in log.extents(topic).items():
        for batch in log.read(Range(partition, *extent)):
            for row in batch.to_pylist():
                found.append((row["key"], row["value"] and json.loads(row["value"])))
    return found


def test_a_row_goes_under_its_primary_key(log: EmbeddedLog) -> None:
    append(log, "cards", {"holder": "Ann", "card": 7}, {"card": 'a "quote"'}, {"holder": "x"})
    assert stored(log, "cards") == [
        (b'{"card":"7"}', {"holder": "Ann", "card": 7}),
        (b'{"card":"a \\"quote\\""}', {"card": 'a "quote"'}),
        (None, {"holder": "x"}),  # it will be dead, with the reason
    ]
    append(log, "places", {"shop": "12", "day": "2026-01-01", "seats": 4})
    assert [key for key, _ in stored(log, "places")] == [b'{"day":"2026-01-01","shop":12}']


def test_a_key_is_the_text_that_sinks_write() -> None:
    values = {"shop": [12, -3], "day": ["2026-01-01", "1999-12-31"]}
    table = next(each for each in PROJECT.streams if each.name == "places")
    types = {each.name: each.type for each in table.columns}
    rows = pa.table({name: pa.array(each) for name, each in values.items()})
    rows = rows.cast(pa.schema([(name, types[name].arrow) for name in values]))
    members = [(name, name, types[name]) for name in table.primary_key]
    written = calculate(f"SELECT {json_object(members)} AS key FROM rows", {"rows": rows})
    records = [
        json.dumps(dict(zip(values, row, strict=True)))
        for row in zip(*values.values(), strict=True)
    ]
    reader = declared_key([table], "places")
    assert reader is not None
    found = reader(pa.array([each.encode() for each in records]))
    assert [key.decode() for key in found.to_pylist()] == written["key"].to_pylist()


def test_a_row_is_deleted_by_its_key(log: EmbeddedLog) -> None:
    append(log, "cards", {"card": "a"}, {"card": "b", "holder": "ignored"}, deletes=True)
    assert stored(log, "cards") == [(b'{"card":"a"}', None), (b'{"card":"b"}', None)]


def test_an_envelope_may_delete_a_row(log: EmbeddedLog) -> None:
    append(
        log,
        "cards",
        {"value": {"card": "a"}, "delete": True},
        {"value": {"card": "b"}, "delete": False},
        {"key": "own", "value": {"card": "c"}, "delete": True},
        enveloped=True,
    )
    assert stored(log, "cards") == [
        (b'{"card":"a"}', None),
        (b'{"card":"b"}', {"card": "b"}),
        (b"own", None),
    ]


@pytest.mark.parametrize(
    ("topic", "row", "how", "told"),
    [
        ("cards", {"holder": "x"}, {"deletes": True}, "record 1: to delete a row send its"),
        ("places", {"shop": 1}, {"deletes": True}, "send its primary key, day, shop"),
        ("clicks", {"id": "x"}, {"deletes": True}, "clicks: no table of format"),
        ("orders", {"id": 1}, {"deletes": True}, "orders: no table of format"),
        ("cards", {"value": None, "delete": True}, {"enveloped": True}, 'key as "value"'),
        ("cards", {"value": {}, "delete": 1}, {"enveloped": True}, '"delete" is neither'),
        ("cards", {"value": {}}, {"enveloped": True, "deletes": True}, "delete=true takes rows"),
    ],
)  # fmt: skip
def test_what_deletes_no_row_is_refused(
    log: EmbeddedLog, topic: str, row: object, how: dict[str, bool], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        append(log, topic, row, **how)
    assert stored(log, topic) == []


def test_tables_that_differ_in_their_key_have_none() -> None:
    both = parse_project(
        {
            "a.sql": "CREATE TABLE a (x INT PRIMARY KEY, y INT) WITH (topic = 't');"
            "CREATE TABLE b (x INT, y INT PRIMARY KEY) WITH (topic = 't');"
        }
    )
    with pytest.raises(UsageError, match="table a has the primary key x and table b has y"):
        declared_key(both.streams, "t")
    assert isinstance(both, Project)
