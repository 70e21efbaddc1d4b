"""Codec `debezium`: what events say, and that a batch says what its events say one by one.

Method: Debezium's ways of writing values are listed with the values they mean; random events, with
and without schemas, are decoded in batches and strictly, each by itself.
"""

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schema import Column, parse_type
from headrace.schema.codec import Change, Encoding, Operation
from headrace.schema.debezium_values import UNSENT_TEXT
from headrace.schema.formats import decode_record, make_codec
from headrace.schema.json_text import Dead

TIME, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
AT = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
MICROS = int(AT.timestamp()) * 1_000_000 + 123456
MILLIS = MICROS // 1000
AT_MILLIS = AT.replace(microsecond=123000)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONED = "2026-01-02T04:04:05.123456+01:00"


def encoding(*columns: tuple[str, str], **options: Any) -> Encoding:
    found = [Column("id", parse_type("INT"), nullable=False)]
    found += [Column(name, parse_type(type)) for name, type in columns]
    return Encoding("debezium", tuple(found), key=("id",), **options)


def field(name: str, type: str, means: str | None = None, **parameters: str) -> dict[str, object]:
    found: dict[str, object] = {"field": name, "type": type, "optional": True}
    found |= {"name": means} if means else {}
    return found | ({"parameters": parameters} if parameters else {})


def with_schema(envelope: dict[str, object], *fields: dict[str, object]) -> bytes:
    row = {"type": "struct", "fields": [field("id", "int32"), *fields]}
    parts = [{**row, "field": "before"}, {**row, "field": "after"}, field("op", "string")]
    whole = {"schema": {"type": "struct", "fields": parts}, "payload": envelope}
    return json.dumps(whole, separators=(",", ":")).encode()


def decimal(scale: str) -> dict[str, object]:
    return field("v", "bytes", CONNECT + "Decimal", scale=scale)


def event(
    op: str, before: object = None, after: object = None, **more: object
) -> dict[str, object]:
    return {"before": before, "after": after, "op": op, "ts_ms": 0, **more}


def text(envelope: dict[str, object]) -> bytes:
    return json.dumps(envelope).encode()


def base64_of(number: int) -> str:
    return base64.b64encode(number.to_bytes(3, "big", signed=True)).decode()


WAYS = [
    ("TIMESTAMP", field("v", "int64", TIME + "Timestamp"), MILLIS, AT_MILLIS),
    ("TIMESTAMP", field("v", "int64", TIME + "MicroTimestamp"), MICROS, AT),
    ("TIMESTAMP", field("v", "int64", TIME + "NanoTimestamp"), MICROS * 1000, AT),
    ("TIMESTAMP", field("v", "int64", TIME + "NanoTimestamp"), 0, EPOCH),
    ("TIMESTAMP", field("v", "string", TIME + "ZonedTimestamp"), ZONED, AT),
    ("TIMESTAMP", field("v", "int64", CONNECT + "Timestamp"), MILLIS, AT_MILLIS),
    ("DATE", field("v", "int32", TIME + "Date"), 20_455, date(2026, 1, 2)),
    ("DATE", field("v", "int32", CONNECT + "Date"), -1, date(1969, 12, 31)),
    ("DATE", field("v", "string", TIME + "IsoDate"), "2026-01-02Z", date(2026, 1, 2)),
    ("DECIMAL(10,2)", decimal("2"), base64_of(-12345), Decimal("-123.45")),
    ("DECIMAL(10,2)", decimal("0"), base64_of(7), Decimal("7.00")),
    ("DECIMAL(10,2)", field("v", "struct", "io.debezium.data.VariableScaleDecimal"),
     {"scale": 1, "value": base64_of(15)}, Decimal("1.50")),
    ("DECIMAL(10,2)", field("v", "string"), "1.50", Decimal("1.50")),
    ("DECIMAL(10,2)", field("v", "double"), 1.5, Decimal("1.50")),
    ("BINARY", field("v", "bytes"), base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
    ("STRING", field("v", "string", "io.debezium.data.Json"), '{"a": 1}', '{"a": 1}'),
    ("ARRAY<STRING>", field("v", "array"), ["a", None], ["a", None]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "part", "written", "value"), WAYS)
def test_a_schema_says_how_a_value_is_written(
    type: str, part: dict[str, object], written: object, value: object
) -> None:
    record = with_schema(event("c", after={"id": 1, "v": written}), part)
    for found in both_ways(encoding(("v", type)), b"", record):
        assert found == ("UPSERT", {"id": 1, "v": value, "_deleted": False, "_unsent": None}, None)


@pytest.mark.parametrize(
    ("type", "options", "written", "value"),
    [
        ("TIMESTAMP", {"timestamp_format": "micros"}, MICROS, AT),
        ("TIMESTAMP", {"timestamp_format": "micros"}, "2026-01-02T03:04:05.123456Z", AT),
        ("TIMESTAMP", {}, "2026-01-02T03:04:05.123456Z", AT),
        ("TIMESTAMP", {}, MICROS, f"after.v: {MICROS} is a number, and the envelope has no schema"),
        ("DATE", {}, 20_455, date(2026, 1, 2)),
        ("DATE", {}, "2026-01-02", date(2026, 1, 2)),
        ("DATE", {}, 10**7, "after.v: 10000000 days are outside the years 0001 to 9999"),
        ("DECIMAL(10,2)", {}, 1.5, Decimal("1.50")),
        ("DECIMAL(10,2)", {}, "1234", 'after.v: "1234" is a text, and the envelope has no schema'),
        ("DECIMAL(10,2)", {"decimal_format": "text"}, "1234", Decimal("1234.00")),
        ("DECIMAL(10,2)", {"decimal_format": "base64"}, base64_of(1234), Decimal("12.34")),
        ("DECIMAL(4,2)", {"decimal_format": "base64"}, base64_of(123456), "does not fit DECI"),
        ("DECIMAL(4,2)", {"decimal_format": "base64"}, "x!", "is not the base64 of a decimal"),
        ("DECIMAL(4,2)", {"decimal_format": "text"}, "1.234", "has more than 2 decimals"),
    ],
)  # fmt: skip
def test_without_a_schema_the_definition_says_it(
    type: str, options: dict[str, str], written: object, value: object
) -> None:
    record = text(event("c", after={"id": 1, "v": written}))
    for found in both_ways(encoding(("v", type), **options), b"", record):
        if isinstance(value, str):
            assert isinstance(found, str)
            assert value in found
        else:
            assert found == (
                "UPSERT", {"id": 1, "v": value, "_deleted": False, "_unsent": None}, None
            )  # fmt: skip


A, B = {"id": 1, "v": "a"}, {"id": 2, "v": "b"}
ROW = {"id": 1, "v": "a", "_deleted": False, "_unsent": None}
GONE = {"id": 1, "v": None, "_deleted": True, "_unsent": None}
NO_ROW = dict.fromkeys(ROW)
EVENTS: list[tuple[bytes | None, bytes | None, Any]] = [
    (None, text(event("c", after=A)), ("UPSERT", ROW, None)),
    (None, text(event("r", after=A)), ("UPSERT", ROW, None)),
    (None, text(event("u", B | {"id": 1}, A)), ("UPSERT", ROW, None)),
    (None, text(event("u", None, A)), ("UPSERT", ROW, None)),
    (None, text(event("u", {"id": 7, "v": "x"}, A)), ("UPSERT", ROW, GONE | {"id": 7})),
    (None, text(event("d", A)), ("DELETE", GONE, None)),
    (b'{"id": 1}', text(event("d", None)), ("DELETE", GONE, None)),
    (b"1", text(event("d", {"id": None, "v": ""})), ("DELETE", GONE, None)),
    (b'{"id": 1}', None, ("IGNORE", NO_ROW, None)),
    (None, b'{"schema": {}, "payload": null}', ("IGNORE", NO_ROW, None)),
    (None, text({"op": "m", "message": {}}), ("IGNORE", NO_ROW, None)),
    (None, text(event("t")), ("TRUNCATE", NO_ROW, None)),
    (None, text({"payload": event("c", after=A)}), ("UPSERT", ROW, None)),
    (
        None,
        text(event("u", None, {"id": 1, "v": UNSENT_TEXT})),
        ("UPSERT", ROW | {"v": None, "_unsent": ["v"]}, None),
    ),
    (None, b'{"id": 1}', "no op: this is no change event of Debezium"),
    (None, text(event("x", A)), 'op "x" is not known; it is one of c, r, u, d, t, m'),
    (None, text(event("c", A)), 'after is null, and op is "c"'),
    (None, text(event("c", after=[])), "after is not an object: []"),
    (None, text(event("c", after={"v": "a"})), "after.id: is missing, and the column is NOT NULL"),
    (None, text(event("c", after={"id": "x"})), 'after.id: "x" is not a whole number'),
    (None, text(event("d", None)), "the record has no key"),
    (None, b"[]", "not a JSON object: []"),
    (None, text({"payload": 3}), "payload is no envelope: 3"),
]


@pytest.mark.parametrize(("key", "value", "expected"), EVENTS)
def test_an_event_says_what_becomes_of_a_row(
    key: bytes | None, value: bytes | None, expected: object
) -> None:
    for found in both_ways(encoding(("v", "STRING")), key, value):
        assert found == expected


def test_events_of_another_table_are_dead() -> None:
    source = {"db": "shop", "schema": "public", "table": "orders"}
    record = text(event("c", after=A, source=source))
    for name in ("orders", "public.orders"):
        chosen = encoding(("v", "STRING"), source_table=name)
        assert [each[0] for each in both_ways(chosen, None, record)] == ["UPSERT", "UPSERT"]
    reason = "it is a change of public.orders, not of public.items"
    chosen = encoding(("v", "STRING"), source_table="public.items")
    assert both_ways(chosen, None, record) == [reason, reason]


IDS = st.sampled_from([1, 2, "2", 2.5, None, 10**12])
DATES = st.sampled_from([0, 20_455, "2026-01-02", "3", 10**8, None])
ROWS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"id": IDS},
        optional={
            "name": st.sampled_from(["a", "é", UNSENT_TEXT, None, 5]),
            "tags": st.sampled_from([["a"], [UNSENT_TEXT], [], [None], None, "x"]),
            "at": st.sampled_from([MICROS, MILLIS, "2026-01-02T03:04:05Z", None]),
            "day": DATES,
            "amount": st.sampled_from(["1.5", 2, 2.345, base64_of(9), None]),
            "more": st.just({"x": [1]}),
        },
    ),
)
SOURCES = st.sampled_from([{"table": "orders", "schema": "public"}, {"table": "other"}, None])
ENVELOPES = st.builds(
    event,
    st.sampled_from(["c", "u", "u", "u", "r", "d", "t", "m", "z"]),
    ROWS,
    ROWS,
    source=SOURCES,
)
FIELDS = [
    [],
    [field("at", "int64", TIME + "MicroTimestamp"), field("amount", "string")],
    [field("at", "int64", TIME + "NanoTimestamp")],
    [field("amount", "bytes", CONNECT + "Decimal", scale="1")],
    [field("amount", "bytes", CONNECT + "Decimal")],
]
VALUES = st.one_of(
    st.sampled_from([None, b"{", b'{"schema":{},"payload":1}', b'{"schema":']),
    ENVELOPES.map(text),
    ENVELOPES.map(text),
    ENVELOPES.flatmap(
        lambda envelope: st.sampled_from(FIELDS).map(lambda parts: with_schema(envelope, *parts))
    ),
    ENVELOPES.map(lambda envelope: with_schema(envelope) + b" "),
)
RECORDS = st.tuples(st.sampled_from([None, b"2", b'{"id":1}']), VALUES)
CHOSEN = [
    encoding(("name", "STRING"), ("tags", "ARRAY<STRING>"), ("at", "TIMESTAMP")),
    encoding(("at", "TIMESTAMP"), ("day", "DATE"), timestamp_format="micros"),
    encoding(("amount", "DECIMAL(5,2)"), ("name", "STRING"), decimal_format="text"),
    encoding(("amount", "DECIMAL(5,2)"), decimal_format="base64", source_table="orders"),
    encoding(("name", "STRING"), source_table="public.orders"),
]


@pytest.mark.parametrize("number", range(len(CHOSEN)))
@settings(max_examples=80, deadline=None)
@given(
    records=st.lists(RECORDS, min_size=1, max_size=12),
    copies=st.sampled_from([1, 80]),
    wanted=st.sampled_from([None, {"id", "_deleted"}, {"name", "_unsent"}]),
    start=st.integers(0, 5),
)  # fmt: skip
def test_a_batch_says_what_its_events_say(
    number: int,
    records: list[tuple[bytes | None, bytes | None]],
    copies: int,
    wanted: set[str] | None,
    start: int,
) -> None:
    chosen = CHOSEN[number]
    many = records * copies
    expected = [strictly(chosen, key, value) for key, value in records] * copies
    codec = make_codec(chosen, wanted)
    decoded = codec.decode(table_of(many))
    assert decoded.rows.schema == codec.schema
    assert as_told(decoded) == [told(each, codec.schema.names) for each in expected]
    part = decoded.slice(start, len(many) - start) if start < len(many) else decoded
    left = expected[start:] if start < len(many) else expected
    assert as_told(part) == [told(each, codec.schema.names) for each in left]


STREAM = Encoding(
    "debezium",
    (
        Column("op", parse_type("STRING"), nullable=False),
        Column("after", parse_type("STRUCT<id: INT, name: STRING>")),
        Column("id", parse_type("INT"), path=("before", "id")),
        Column("at", parse_type("TIMESTAMP"), path=("ts_ms",), format="millis"),
    ),
)


@settings(max_examples=80, deadline=None)
@given(
    records=st.lists(RECORDS, min_size=1, max_size=12),
    copies=st.sampled_from([1, 80]),
    wanted=st.sampled_from([None, {"op"}, {"after", "at"}]),
)
def test_a_batch_of_a_stream_says_what_its_events_say(
    records: list[tuple[bytes | None, bytes | None]], copies: int, wanted: set[str] | None
) -> None:
    many = records * copies
    codec = make_codec(STREAM, wanted)
    expected = [strictly(STREAM, key, value) for key, value in records] * copies
    decoded = codec.decode(table_of(many))
    assert as_told(decoded) == [told(each, codec.schema.names) for each in expected]


def test_events_of_a_stream_are_what_is_in_the_envelope() -> None:
    record = with_schema(event("c", after={"id": 1, "name": "a"}))
    change = decode_record(STREAM, None, record)
    assert change.values == {"op": "c", "after": {"id": 1, "name": "a"}, "id": None, "at": EPOCH}
    assert decode_record(STREAM, b"1", None).operation is Operation.IGNORE
    with pytest.raises(Dead, match="no op: this is no change event"):
        decode_record(STREAM, None, b'{"id": 1}')


def table_of(records: list[tuple[bytes | None, bytes | None]]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([key for key, _ in records], pa.binary()),
            "value": pa.array([value for _, value in records], pa.binary()),
        }
    )


def strictly(chosen: Encoding, key: bytes | None, value: bytes | None) -> Change | str:
    try:
        return decode_record(chosen, key, value)
    except Dead as dead:
        return dead.reason


def told(found: Change | str, names: list[str]) -> Any:
    if isinstance(found, str):
        return found
    rows = [None if row is None else {name: row[name] for name in names}
            for row in (found.values, found.moved)]  # fmt: skip
    return (found.operation.name, rows[0] if found.operation.has_row else None, rows[1])


def as_told(decoded: Any) -> list[Any]:
    """Return what a batch says of each of its records, as `told` does."""
    rows = decoded.rows.to_pylist()
    dead = dict(zip(decoded.dead.to_pylist(), decoded.reasons.to_pylist(), strict=True))
    moved = dict(zip(decoded.moved.tolist(), rows[decoded.count :], strict=True))
    found: list[Any] = []
    for at in range(decoded.count):
        operation = Operation(int(decoded.operations[at]))
        row = rows[at] if operation.has_row else None
        found.append(dead.get(at) or (operation.name, row, moved.get(at)))
    return found


def both_ways(chosen: Encoding, key: bytes | None, value: bytes | None) -> list[Any]:
    """Return what a record says by itself, and among many like it."""
    one = strictly(chosen, key, value)
    batch = as_told(make_codec(chosen).decode(table_of([(key, value)] * 300)))
    assert batch == [batch[0]] * 300
    alone = one if isinstance(one, str) else (one.operation.name, one.values, one.moved)
    if not isinstance(batch[0], str) and batch[0][1] is None and not isinstance(one, str):
        batch[0] = (batch[0][0], one.values, batch[0][2])  # a batch has no row for it
    return [alone, batch[0]]
