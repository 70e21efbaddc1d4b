"""Which path a record takes never shows: the fast path agrees with the strict one.

Method: random near-valid records (json_nasty) through both, batch after batch with one decoder, so
that shapes learnt earlier meet later records; then the edges of the decoder by hand.
"""

import pickle
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest
from json_nasty import make_record

from headrace.schema import Column, DataType, JsonDecoder, json_fast, parse_type
from headrace.schema.json_places import parse_place
from headrace.schema.json_strict import Dead, decode_strict

ALL_TYPES = [
    *("STRING", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,2)"),
    *("DECIMAL(4,4)", "DECIMAL(38,10)", "DECIMAL(38,0)", "BOOLEAN", "DATE", "TIMESTAMP"),
    *("ARRAY<BIGINT>", "ARRAY<DECIMAL(8,2)>", "STRUCT<x: INT, y: STRING>", "ARRAY<STRING>"),
]
SCHEMAS: list[tuple[list[str], str | None]] = [
    (ALL_TYPES, None),
    (["TIMESTAMP", "DATE", "STRUCT<x: TIMESTAMP, y: FLOAT>"], None),
    (["STRING", "BOOLEAN", "ARRAY<STRUCT<x: INT>>"], None),
    (["DOUBLE", "FLOAT", "ARRAY<DOUBLE>"], None),
    (["DECIMAL(12,2)", "DECIMAL(38,18)", "DECIMAL(15,15)"], None),
    (["BIGINT", "INT", "TINYINT"], None),
    (["TIMESTAMP", "BIGINT"], "seconds"),
    (["TIMESTAMP", "ARRAY<TIMESTAMP>"], "millis"),
    (["TIMESTAMP"], "micros"),
    (["MAP<INT, STRING>", "BINARY", "INT"], None),
    (
        [
            *("ARRAY<BIGINT NOT NULL>", "STRUCT<x: INT NOT NULL, y: STRING>", "STRING"),
            *(
                "ARRAY<STRUCT<x: INT, y: STRING NOT NULL> NOT NULL>",
                "STRUCT<x: ARRAY<INT NOT NULL>>",
            ),
        ],
        None,
    ),
]
BATCHES = 4
BATCH_RECORDS = 300
PAYMENTS = [
    Column("id", parse_type("STRING"), nullable=False),
    Column("amount", parse_type("DECIMAL(12,2)")),
    Column("ts", parse_type("TIMESTAMP"), nullable=False),
]


def payment(number: int, amount: str = "12.34") -> bytes:
    return f'{{"id":"e{number}","amount":{amount},"ts":"2026-01-01T00:00:00Z"}}'.encode()


def binary(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.binary())


class Agreed(NamedTuple):
    tried: int
    fast: int
    dead: int


def agree(
    generator: random.Random,
    columns: list[Column],
    named: Mapping[str, DataType],
    timestamp_format: str | None,
) -> Agreed:
    """Compare both paths on random records whose members are `named`."""
    decoder = JsonDecoder(columns, timestamp_format=timestamp_format)
    dead_count = 0
    for _ in range(BATCHES):
        values = [
            make_record(generator, named, epoch=timestamp_format is not None)
            for _ in range(BATCH_RECORDS)
        ]
        rows: list[dict[str, object]] = []
        dead: list[int] = []
        reasons: list[str] = []
        for index, value in enumerate(values):
            try:
                rows.append(decode_strict(columns, value, timestamp_format))
            except Dead as error:
                dead.append(index)
                reasons.append(error.reason)
                rows.append({column.name: None for column in columns})
        decoded = decoder.decode(binary(values))
        assert decoded.dead.to_pylist() == dead
        assert decoded.reasons.to_pylist() == reasons
        for column in columns:
            expected = pa.array([row[column.name] for row in rows], column.type.arrow)
            actual = decoded.rows.column(column.name)
            assert actual.type == expected.type
            for at, (ours, theirs) in enumerate(
                zip(actual.to_pylist(), expected.to_pylist(), strict=True)
            ):
                assert repr(ours) == repr(theirs), (column, values[at])
        dead_count += len(dead)
    return Agreed(BATCHES * BATCH_RECORDS, decoder.fast_count, dead_count)


def test_the_fast_path_agrees_with_the_strict_path_on_random_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # These only choose the path; so set, the fast one takes whatever it dares to.
    monkeypatch.setattr(json_fast, "MIN_SHAPE_RECORDS", 1)
    monkeypatch.setattr(json_fast, "MAX_LESSONS", 20)
    tried = fast = dead_count = 0
    for seed, (types, timestamp_format) in enumerate(SCHEMAS):
        generator = random.Random(seed)
        columns = [
            Column(f"a{index}", parse_type(text), nullable=index != 1)
            for index, text in enumerate(types)
        ]
        named = {column.name: column.type for column in columns}
        agreed = agree(generator, columns, named, timestamp_format)
        tried += agreed.tried
        dead_count += agreed.dead
        fast += agreed.fast
    assert tried == len(SCHEMAS) * BATCHES * BATCH_RECORDS >= 10_000
    # Otherwise the test would compare the strict path with itself.
    assert fast >= tried // 4
    assert dead_count >= tried // 10


# Members of the record, and columns that stand somewhere in them.
PLACES: list[tuple[dict[str, str], list[tuple[str, str, bool]]]] = [
    (
        {"meta": "STRUCT<x: INT, y: STRING>", "@t": "TIMESTAMP", "n": "BIGINT"},
        [("INT", "$.meta.x", True), ("STRING", "$.meta.y", False), ("TIMESTAMP", "@t", True)],
    ),
    # Several columns from one key.
    (
        {"t": "TIMESTAMP", "d": "DATE", "meta": "STRUCT<x: STRUCT<y: DECIMAL(8,2)>>"},
        [
            *(("TIMESTAMP", "t", False), ("STRING", "t", True), ("DATE", "d", True)),
            *(("STRING", "d", True), ("DECIMAL(8,2)", "$.meta.x.y", True)),
            ("DECIMAL(8,2)", "$.meta.x.y", False),
        ],
    ),
    (
        {"n": "BIGINT", "l": "ARRAY<STRUCT<x: INT>>", "s": "STRUCT<x: INT>", "t": "STRING"},
        [
            *(("BIGINT", "n", True), ("STRING", "n", True), ("INT", "$.l[0].x", True)),
            *(("INT", "$.l[1].x", False), ("STRUCT<x: INT>", "s", True), ("INT", "$.s.x", True)),
        ],
    ),
]


def test_the_paths_agree_wherever_columns_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_fast, "MIN_SHAPE_RECORDS", 1)
    monkeypatch.setattr(json_fast, "MAX_LESSONS", 20)
    fast = []
    for seed, (members, places) in enumerate(PLACES):
        columns = [
            Column(f"c{index}", parse_type(type_), nullable, parse_place(place))
            for index, (type_, place, nullable) in enumerate(places)
        ]
        named = {name: parse_type(text) for name, text in members.items()}
        agreed = agree(random.Random(seed), columns, named, None)
        assert 0 < agreed.dead < agreed.tried
        fast.append(agreed.fast / agreed.tried)
    # The last wants elements of arrays, and parts of a value that is also wanted as a whole.
    assert min(fast[:2]) > 0.25
    assert fast[2] < 0.1


def test_each_column_may_have_its_own_format() -> None:
    columns = [
        Column("a", parse_type("TIMESTAMP"), format="seconds"),
        Column("b", parse_type("TIMESTAMP"), path=("a",)),
        Column("c", parse_type("TIMESTAMP"), format="iso8601"),
        Column("d", parse_type("STRUCT<x: TIMESTAMP>"), format="iso8601"),
        Column("e", parse_type("TIMESTAMP")),
    ]
    record = (
        b'{"a":1767225600,"c":"2026-01-01T00:00:00Z","d":{"x":"2026-01-01T00:00:00Z"},'
        b'"e":1767225600000}'
    )
    at = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"a": at, "b": at, "c": at, "d": {"x": at}, "e": at}
    for wanted in (columns[:1] + columns[2:], columns):
        decoder = JsonDecoder(wanted, timestamp_format="millis")
        rows = decoder.decode(binary([record] * 300)).rows.to_pylist()
        expected = {each.name: row[each.name] for each in wanted}
        expected |= {"b": datetime(1970, 1, 21, 10, 53, 45, 600000, UTC)} if "b" in expected else {}
        assert rows == [expected] * 300
        assert (decoder.strict_count == 0) is ("b" not in expected)


def test_plain_records_take_the_fast_path_all_of_them() -> None:
    decoder = JsonDecoder(PAYMENTS)
    for _ in range(3):
        decoded = decoder.decode(binary([payment(number) for number in range(2_000)]))
        assert len(decoded.dead) == 0
    assert (decoder.fast_count, decoder.strict_count) == (6_000, 0)


def test_spaces_missing_fields_nulls_and_unknown_fields_stay_on_the_fast_path() -> None:
    shapes = [
        '{"id": "1", "amount": "12.34", "ts": "2026-01-01 00:00:00+00:00"}\n',
        '{"id":"2","ts":"2026-01-01T00:00:00"}',
        '{"id":"3\\n\\u00e9","amount":null,"ts":"2026-01-01T00:00:00.5Z"}',
        '{"id":"4","amount":-1,"ts":"2024-02-29T00:00:00Z","x":[1,{"y":null}],"z":"é"}',
    ]
    decoder = JsonDecoder(PAYMENTS)
    decoded = decoder.decode(binary([text.encode() for text in shapes] * 200))
    assert len(decoded.dead) == 0
    assert decoder.strict_count == 0
    ids = decoded.rows.column("id").to_pylist()
    assert ids == ["1", "2", "3\né", "4"] * 200


def test_timestamps_with_zones_take_the_fast_path_once_they_were_seen() -> None:
    zones = {"Z": 12, "": 12, "+02:00": 10, "-0530": 17}
    texts = [
        f'{{"id":"1","amount":1,"ts":"2026-01-01T12:{minute:02d}:00{zone}"}}'
        for minute in range(60)
        for zone in zones
    ]
    expected = [
        datetime(2026, 1, 1, hour, minute, tzinfo=UTC) + timedelta(minutes=30 * (hour == 17))
        for minute in range(60)
        for hour in zones.values()
    ]
    decoder = JsonDecoder(PAYMENTS)
    for values in ([payment(0)] * 300, [text.encode() for text in texts] * 2):
        decoded = decoder.decode(binary(values))
    assert decoded.rows.column("ts").to_pylist() == expected * 2
    assert decoder.strict_count == 0


def test_suspects_alone_take_the_strict_path() -> None:
    values = [payment(number) for number in range(1_000)]
    values[10] = payment(10, "1e1")
    values[20] = payment(20, "12.349")
    decoder = JsonDecoder(PAYMENTS)
    decoded = decoder.decode(binary(values))
    assert decoder.strict_count == 2
    assert decoded.dead.to_pylist() == [20]
    assert decoded.reasons.to_pylist() == [
        "amount: 12.349 has more than 2 decimals (DECIMAL(12,2))"
    ]
    assert decoded.rows.slice(20, 1).to_pylist() == [{"id": None, "amount": None, "ts": None}]
    assert decoded.rows.column("id").to_pylist() == [
        None if number == 20 else f"e{number}" for number in range(1_000)
    ]


def test_ever_new_shapes_are_not_kept_for_ever() -> None:
    decoder = JsonDecoder([Column("a", parse_type("INT"))])
    for number in range(30):
        values = [f'{{"a":1,"x{number}":2}}'.encode()] * 300
        assert decoder.decode(binary(values)).rows.column("a").to_pylist() == [1] * 300
    assert len(decoder._fast_path._shapes) <= json_fast.MAX_SHAPES
    assert decoder.strict_count == 0


@pytest.mark.parametrize(
    "name",
    [
        *("a.b", "a b", "$", "*", "a'b", "(x|y)+", "[0]", "é", "a-b", "^a", "{a}", "select", "_x"),
        *('quo"te', "back\\slash", "tab\t", "a/b", "#", "0", "%s", "\x7f", "😀"),
    ],
)
def test_a_column_of_any_name_is_read(name: str) -> None:
    columns = [Column(name, parse_type("INT")), Column("other", parse_type("STRING"))]
    key = name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    values = [f'{{"{key}":{number},"other":"o"}}'.encode() for number in range(300)]
    rows = JsonDecoder(columns).decode(binary(values)).rows
    assert rows.to_pylist() == [{name: number, "other": "o"} for number in range(300)]


def test_case_counts_in_names() -> None:
    columns = [Column("id", parse_type("INT")), Column("ID", parse_type("INT"))]
    values = binary([b'{"ID":1,"id":2}', b'{"id":3}', b'{"Id":4}'] * 100)
    rows = JsonDecoder(columns).decode(values).rows.to_pylist()
    assert rows[:3] == [{"id": 2, "ID": 1}, {"id": 3, "ID": None}, {"id": None, "ID": None}]
    alone = JsonDecoder(columns[:1]).decode(values).rows.column("id").to_pylist()
    assert alone == [2, 3, None] * 100


def test_records_without_any_known_field_are_rows_of_nulls() -> None:
    decoder = JsonDecoder([Column("a", parse_type("INT"))])
    for value in (b"{}", b'{"b":1}'):
        decoded = decoder.decode(binary([value] * 300))
        assert decoded.rows.column("a").to_pylist() == [None] * 300
        assert len(decoded.dead) == 0


def test_a_batch_may_be_empty_chunked_sliced_or_large() -> None:
    decoder = JsonDecoder(PAYMENTS)
    values = binary([payment(number) for number in range(1_000)])
    expected = [f"e{number}" for number in range(1_000)]
    empty = pa.chunked_array([], pa.binary())
    for batch, ids in (
        (values, expected),
        (values.slice(0, 0), []),
        (empty, []),
        (pa.chunked_array([values.slice(0, 333), values.slice(333)]), expected),
        (values.slice(500, 400), expected[500:900]),
        (values.cast(pa.large_binary()), expected),
    ):
        rows = decoder.decode(batch).rows
        assert rows.schema == decoder.schema
        assert rows.column("id").to_pylist() == ids
    assert decoder.decode(pa.nulls(300, pa.binary())).dead.to_pylist() == list(range(300))


def test_a_decoder_travels_to_workers_with_what_it_learnt() -> None:
    decoder = JsonDecoder(PAYMENTS)
    values = binary([payment(number) for number in range(300)])
    expected = decoder.decode(values).rows
    copy = pickle.loads(pickle.dumps(decoder))
    assert copy.decode(values).rows.equals(expected)
    assert copy._fast_path._shapes.keys() == decoder._fast_path._shapes.keys()


def test_where_duckdb_fails_the_strict_path_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(json_fast.FastPath, "_convert", fail)
    decoder = JsonDecoder(PAYMENTS)
    rows = decoder.decode(binary([payment(number) for number in range(300)])).rows
    assert rows.column("id").to_pylist() == [f"e{number}" for number in range(300)]
    assert decoder.strict_count == 300


@pytest.mark.parametrize(
    ("columns", "timestamp_format", "message"),
    [
        ([], None, "at least one column"),
        (PAYMENTS + PAYMENTS[:1], None, "two columns have the same name"),
        (PAYMENTS, "nanos", "write one of seconds, millis, micros"),
    ],
)
def test_a_decoder_that_cannot_work_is_refused(
    columns: list[Column], timestamp_format: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        JsonDecoder(columns, timestamp_format=timestamp_format)
