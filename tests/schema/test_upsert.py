"""Codec `upsert`: all records of a batch together say what each says by itself.

Method: random records, mostly of few shapes so that the fast paths take them, decoded as batches
of all sizes and one by one by the strict path, which defines what decoding means.
"""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schema import Column, parse_type
from headrace.schema.codec import Encoding, Operation
from headrace.schema.formats import decode_record, make_codec
from headrace.schema.json_text import Dead

VALUE = (
    Column("name", parse_type("STRING"), nullable=False),
    Column("n", parse_type("INT")),
    Column("at", parse_type("TIMESTAMP"), format="millis"),
)


def encoding(key: list[tuple[str, str]], **options: Any) -> Encoding:
    columns = [Column(name, parse_type(type), nullable=False) for name, type in key]
    return Encoding("upsert", (*columns, *VALUE), key=tuple(name for name, _ in key), **options)


ENCODINGS = [
    encoding([("id", "STRING")]),
    encoding([("id", "BIGINT")]),
    encoding([("id", "TINYINT")]),
    encoding([("id", "BINARY")]),
    encoding([("id", "DECIMAL(5,2)")]),
    encoding([("id", "TIMESTAMP")], timestamp_format="seconds"),
    encoding([("id", "BOOLEAN")]),
    encoding([("id", "STRING"), ("part", "INT")]),
    encoding([("id", "STRING")], key_from="value"),
    encoding([("part", "INT"), ("id", "DATE")], key_from="value"),
]
KEYS = st.one_of(
    st.sampled_from(
        [None, b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"-0", b"1.0", b"1e2", b"007"]
    ),
    st.integers(-200, 10**20).map(lambda number: str(number).encode()),
    st.sampled_from([b"true", b"2026-01-01", b"1.25", b'{"id": null}', b'{"payload": 7}', b"{}"]),
    st.fixed_dictionaries(
        {"id": st.sampled_from(["a", "é", 5, "5", "2026-01-01", True, None, {"x": 1}])},
        optional={"part": st.sampled_from([1, "2", 2.5, None]), "other": st.just([1])},
    ).flatmap(
        lambda key: st.sampled_from([key, {"schema": {}, "payload": key}]).map(
            lambda each: json.dumps(each).encode()
        )
    ),
)
VALUES = st.one_of(
    st.sampled_from([None, None, b"", b"[]", b"{}", b"\xff", b"null"]),
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", 1, None])},
        optional={
            "id": st.sampled_from(["a", 7, "2026-01-01", None]),
            "part": st.sampled_from([1, "x", None]),
            "n": st.sampled_from([1, 2.5, "3", None]),
            "at": st.sampled_from([0, 1_000, "soon"]),
        },
    ).map(lambda value: json.dumps(value).encode()),
)
RECORDS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=12)


@pytest.mark.parametrize("number", range(len(ENCODINGS)))
@settings(max_examples=60, deadline=None)
@given(
    records=RECORDS,
    copies=st.sampled_from([1, 80]),
    wanted=st.sampled_from([None, {"name"}, {"_deleted", "n"}]),
)
def test_a_batch_says_what_its_records_say(
    number: int,
    records: list[tuple[bytes | None, bytes | None]],
    copies: int,
    wanted: set[str] | None,
) -> None:
    chosen = ENCODINGS[number]
    many = records * copies  # enough for shapes to be learnt
    table = pa.table(
        {
            "key": pa.array([key for key, _ in many], pa.binary()),
            "value": pa.array([value for _, value in many], pa.binary()),
        }
    )
    decoded = make_codec(chosen, wanted).decode(table)
    expected = [_strictly(chosen, key, value) for key, value in records]
    assert decoded.operations is not None
    found = dict(zip(decoded.dead.to_pylist(), decoded.reasons.to_pylist(), strict=True))
    for at, row in enumerate(decoded.rows.to_pylist()):
        change = expected[at % len(records)]
        if isinstance(change, str):
            assert found[at] == change
            continue
        assert at not in found
        assert {name: change.values[name] for name in row} == row
        assert decoded.operations[at] == change.operation


def _strictly(chosen: Encoding, key: bytes | None, value: bytes | None) -> Any:
    try:
        return decode_record(chosen, key, value)
    except Dead as dead:
        return dead.reason


def test_keys_that_mean_the_same_are_one_key() -> None:
    chosen = encoding([("id", "INT")])
    for key in (b"7", b"7.0", b'"7"', b'{"id": 7}', b'{"id": "7"}', b'{"payload": {"id": 7}}'):
        change = decode_record(chosen, key, b'{"name": "a"}')
        assert (change.operation, change.values["id"]) == (Operation.UPSERT, 7), key
