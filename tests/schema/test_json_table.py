"""The decoding table, lossless or dead: every case by itself, and amid other records.

Method: each case of json_cases runs on the strict path, alone through the decoder, and in a batch
large enough for the fast path, once among plain neighbours and once repeated, so that the decoder
also learns from it.
"""

from functools import lru_cache

import pyarrow as pa
import pytest
from json_cases import CASES, PLAIN, Case, Reason

from headrace.schema import Column, JsonDecoder, parse_type
from headrace.schema.json_strict import Dead, decode_strict

NEIGHBOURS = 220

RECORDS = [
    (None, "no value"),
    (b"", "not JSON: it ends at byte 0"),
    (b" ", "not JSON: it ends at byte 1"),
    (b"abc", "not JSON: unexpected abc at byte 0"),
    (b'{"a":1', "not JSON: it ends at byte 6"),
    (b'{"a":1}}', "not JSON: unexpected } at byte 7"),
    (b'{"a":1,}', "not JSON"),
    (b'{"a":1}//', "not JSON: unexpected // at byte 7"),
    (b"{a:1}", "not JSON: unexpected a:1} at byte 1"),
    ('{"ä":1 x}'.encode(), "not JSON: unexpected x} at byte 8"),
    (b'\xef\xbb\xbf{"a":1}', "not JSON"),
    (b'{"a":1}\x00', "not JSON"),
    (b'{"a":\x0b1}', "not JSON"),
    (b"[1]", "not a JSON object: [1]"),
    (b"null", "not a JSON object: null"),
    (b'"a"', 'not a JSON object: "a"'),
    (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
    (b'{"a":"\xed\xa0\x80"}', "not UTF-8 at byte 6"),
    (b'{"a":"\xc0\x80"}', "not UTF-8 at byte 6"),
    (b'{"b":"\\ud800","a":1}', "surrogate"),
    (b'{"\\udc00":1,"a":1}', "surrogate"),
    (b'{"b":NaN,"a":1}', "not JSON: NaN is not a JSON number"),
    (b'{"b":-Infinity,"a":1}', "not JSON: -Infinity is not a JSON number"),
    (b"[" * 100_000, "nested more than 128 deep"),
    (b'{"a":1,"b":' + b"[" * 128 + b"]" * 128 + b"}", "nested more than 128 deep"),
    (b'{"a":1,"b":"' + b"x" * (1 << 20) + b'"}', "the value has 1048590 bytes"),
    (b"{}", "a: is missing, and the column is NOT NULL"),
    (b'{"A":1}', "a: is missing, and the column is NOT NULL"),
    (b'{"a":null}', "a: is null, and the column is NOT NULL"),
    (b'{"a":1,"a":null}', "a: is null, and the column is NOT NULL"),
]

READABLE = [
    (b'{"a":1}', 1),
    (b' \t\r\n{ "a" :\n1 } \n', 1),
    (b'{"a":1,"a":2}', 2),
    (b'{"a":"x","\\u0061":3}', 3),
    (b'{"A":1,"a":2}', 2),
    (b'{"a":2,"A":1}', 2),
    (b'{"a":4,"b":{"c":[1,{"d":null}]}}', 4),
    (b'{"a":5,"b":' + b"9" * 5000 + b"}", 5),
    (b'{"a":5,"b":1e999}', 5),
    (b'{"a":6,"b":' + b"[" * 127 + b"]" * 127 + b"}", 6),
    (b'{"a":7,"b":"' + b"[" * 1000 + b'\\""}', 7),
    (b'{"a":8,"b":"' + b"x" * ((1 << 20) - 14) + b'"}', 8),
]


@lru_cache
def decoder_of(type: str, timestamp_format: str | None) -> JsonDecoder:
    """One for all cases of a type: what it learnt from one must not show in another."""
    return JsonDecoder([Column("a", parse_type(type))], timestamp_format=timestamp_format)


def assert_same(actual: object, expected: object) -> None:
    assert actual == expected
    if isinstance(expected, float):
        assert repr(actual) == repr(expected), "the sign of zero counts"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.json[:40]}")
def test_every_case_of_the_table_on_every_path(case: Case) -> None:
    decoder = decoder_of(case.type, case.timestamp_format)
    columns = decoder.columns
    value = f'{{"a":{case.json}}}'.encode()
    plain_json = "1" if case.timestamp_format and case.type == "TIMESTAMP" else None
    plain_json = "null" if "NOT NULL" in case.type else plain_json
    plain_json = plain_json or PLAIN[case.type.partition("<")[0].partition("(")[0]]
    plain = f'{{"a":{plain_json}}}'.encode()
    expected_row = None if isinstance(case.expected, Reason) else case.expected
    if isinstance(case.expected, Reason):
        with pytest.raises(Dead) as caught:
            decode_strict(columns, value, case.timestamp_format)
        assert case.expected in caught.value.reason
    else:
        assert_same(decode_strict(columns, value, case.timestamp_format)["a"], case.expected)

    amid = [plain] * NEIGHBOURS + [value] + [plain]
    repeated = [value] * NEIGHBOURS + [plain] * NEIGHBOURS
    for batch in ([value], amid, repeated, amid):  # the last with what the repeated one taught
        decoded = decoder.decode(pa.array(batch, pa.binary()))
        rows = decoded.rows.column("a").to_pylist()
        positions = [index for index, each in enumerate(batch) if each == value]
        for index in positions:
            assert_same(rows[index], expected_row)
        dead = positions if isinstance(case.expected, Reason) else []
        assert decoded.dead.to_pylist() == dead
        assert len(decoded.reasons) == len(dead)
        for reason in set(decoded.reasons.to_pylist()):
            assert str(case.expected) in reason


@pytest.mark.parametrize(("value", "reason"), RECORDS, ids=lambda value: repr(value)[:40])
def test_a_record_that_is_not_readable_is_dead_and_harms_no_neighbour(
    value: bytes | None, reason: str
) -> None:
    decoder = JsonDecoder([Column("a", parse_type("INT"), nullable=False)])
    batch = [b'{"a":7}'] * NEIGHBOURS + [value] + [b'{"a":8}']
    decoded = decoder.decode(pa.array(batch, pa.binary()))
    assert decoded.rows.column("a").to_pylist() == [7] * NEIGHBOURS + [None, 8]
    assert decoded.dead.to_pylist() == [NEIGHBOURS]
    assert reason in decoded.reasons[0].as_py()
    assert len(decoded.reasons[0].as_py()) < 150


@pytest.mark.parametrize(("value", "expected"), READABLE, ids=lambda value: repr(value)[:40])
def test_a_record_that_is_readable_is_read(value: bytes, expected: int) -> None:
    decoder = JsonDecoder([Column("a", parse_type("INT"), nullable=False)])
    batches = [[value], [b'{"a":7}'] * NEIGHBOURS + [value]]
    if len(value) < 10_000:  # a batch of megabytes proves nothing more
        batches.append([value] * NEIGHBOURS)
    for batch in batches:
        decoded = decoder.decode(pa.array(batch, pa.binary()))
        assert decoded.rows.column("a")[-1].as_py() == expected
        assert len(decoded.dead) == 0


def test_there_are_a_hundred_cases_and_more() -> None:
    assert len(CASES) >= 100
