"""Tables on their way into the log: built from lists, measured, shared out in order."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, lists, none, tuples

from headrace.errors import RecordTooLarge, UsageError
from headrace.log import APPENDS, MAX_RECORD_BYTES, partition_of, records
from headrace.log.records import check_records, record_bytes, share_out


def test_records_takes_text_bytes_and_none() -> None:
    table = records(["ä", None], keys=[b"k", None], headers=[{"h": "x"}, [("a", None), ("a", b"")]])
    assert table.schema == APPENDS
    assert table.to_pylist() == [
        {"key": b"k", "value": "ä".encode(), "headers": [{"name": "h", "value": b"x"}]},
        {
            "key": None,
            "value": None,
            "headers": [{"name": "a", "value": None}, {"name": "a", "value": b""}],
        },
    ]


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="2 values but 1 key;"):
        records(["a", "b"], keys=["k"])


def test_text_columns_and_chunks_are_taken() -> None:
    pieces = [pa.table({"value": [v], "headers": [None], "key": ["k"]}) for v in ("a", "b")]
    batch = check_records(pa.concat_tables(pieces), topic="t")
    assert batch.schema == APPENDS
    assert batch.column("value").to_pylist() == [b"a", b"b"]


def test_columns_that_cannot_be_bytes_are_refused() -> None:
    table = pa.table({"key": [1.5], "value": [b"x"], "headers": [None]})
    with pytest.raises(UsageError, match="cannot append columns of these types"):
        check_records(table, topic="t")


HEADERS = none() | lists(tuples(binary(max_size=3).map(bytes.hex), none() | binary(max_size=5)))


@settings(max_examples=60, deadline=None)
@given(rows=lists(tuples(none() | binary(), none() | binary(), HEADERS), min_size=3))
def test_the_bytes_of_a_record_are_those_of_key_value_and_headers(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]],
) -> None:
    keys, values, headers = (list(column) for column in zip(*rows, strict=True))
    batch = records(values, keys=keys, headers=headers).to_batches()[0].slice(1)
    assert record_bytes(batch).tolist() == [
        len(key or b"")
        + len(value or b"")
        + sum(len(name) + len(each or b"") for name, each in header or [])
        for key, value, header in rows[1:]
    ]


def test_the_limit_of_a_record_holds_to_the_byte() -> None:
    check_records(records([b"x" * MAX_RECORD_BYTES]), topic="t")
    with pytest.raises(RecordTooLarge, match=f"t: record 1 of .* has {MAX_RECORD_BYTES + 1} bytes"):
        check_records(records([b"x", b"x" * MAX_RECORD_BYTES], keys=[None, "k"]), topic="t")


@settings(max_examples=60, deadline=None)
@given(keys=lists(none() | binary(max_size=2), min_size=1))
def test_sharing_out_keeps_every_row_once_and_in_order(keys: list[bytes | None]) -> None:
    batch = records([str(n) for n in range(len(keys))], keys=keys).to_batches()[0]
    shares = dict(share_out(batch, partitions=3, keyless=1))
    numbers = [
        1 if key is None else int(partition_of(pa.array([key], pa.binary()), 3)[0]) for key in keys
    ]
    for number in range(3):
        expected = [str(n).encode() for n, at in enumerate(numbers) if at == number]
        got = shares[number].column("value").to_pylist() if number in shares else []
        assert got == expected
