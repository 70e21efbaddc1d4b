"""Bodies in Arrow and in envelopes are decoded within bounds, and as they would be one by one.

Method: tables in which few bytes stand for many; memory as Python counts it.
"""

import json
import threading
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import RecordTooLarge
from headrace.serve.ingest import arrow, decoding
from headrace.serve.ingest.decoding import MAX_DECODING, Body, Kind, Sent, decode

MB = 1 << 20


def body_of(table: pa.Table) -> Body:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Body(sink.getvalue().to_pybytes(), Kind.ARROW)


def bits(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bytes(count // 8))])


def a_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays([0, len(values)], values)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pa.table({"x" * 200_000: pa.nulls(50_000)}), "more than 32 MB as JSON objects"),
        (pa.table({"x": a_list(bits(60 * MB))}), "record 1: more than 1048576 bytes"),
        (pa.table({"x": a_list(a_list(bits(60 * MB)))}), "record 1: more than 1048576 bytes"),
        (
            pa.table({"x": pa.StructArray.from_arrays([a_list(bits(60 * MB))], ["y"])}),
            "record 1: more than 1048576 bytes",
        ),
    ],
    ids=["a long name", "bits", "bits in lists", "bits in a struct"],
)
def test_few_bytes_of_arrow_do_not_become_many(table: pa.Table, told: str) -> None:
    body = body_of(table)
    assert len(body.content) < 8 * MB
    tracemalloc.start()
    try:
        with pytest.raises(RecordTooLarge, match=told):
            decode(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * MB


def values(sent: Sent) -> list[Any]:
    return [json.loads(value) for value in sent.records.column("value").to_pylist()]


def test_slices_of_rows_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"n": n, "l": [{"a": [n] * (n % 5), "b": None}] * (n % 3), "m": {"k": n}, "s": {"t": "x"}}
        for n in range(50)
    ]
    rows[7]["l"] = rows[8]["m"] = rows[9]["s"] = None
    inner = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.bool_())])
    columns = {"n": pa.int64(), "l": pa.list_(inner), "m": pa.map_(pa.string(), pa.int64())}
    schema = pa.schema([*columns.items(), ("s", pa.struct([("t", pa.string())]))])
    table = pa.Table.from_pylist(
        [{**row, "m": row["m"] and list(row["m"].items())} for row in rows], schema
    )
    monkeypatch.setattr(arrow, "_SLICE_VALUES", 20)
    assert values(decode(body_of(table))) == rows


def test_parts_of_envelopes_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    envelopes: list[dict[str, Any]] = [
        {"value": {"n": n}, "headers": {f"h{at}": "x" for at in range(n % 4)}} for n in range(50)
    ]
    for each in envelopes[::3]:
        each["key"] = "k"
    body = Body("\n".join(map(json.dumps, envelopes)).encode(), Kind.LINES, enveloped=True)
    whole = decode(body)
    monkeypatch.setattr(decoding, "_OPENED_BYTES", 100)
    parts = decode(body)
    assert parts.records == whole.records
    assert parts.keyed == whole.keyed
    assert values(parts) == [each["value"] for each in envelopes]


def test_a_few_bodies_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = threading.Semaphore(0)
    go = threading.Event()

    def slow(_: bytes) -> Any:
        entered.release()
        go.wait(10)
        raise RecordTooLarge("enough")

    def ask() -> None:
        with pytest.raises(RecordTooLarge):
            decode(Body(b"{}", Kind.JSON))

    monkeypatch.setattr(decoding, "cut_json", slow)
    threads = [threading.Thread(target=ask) for _ in range(MAX_DECODING + 1)]
    for thread in threads:
        thread.start()
    for _ in range(MAX_DECODING):
        assert entered.acquire(timeout=10)
    assert not entered.acquire(timeout=0.05)
    go.set()
    for thread in threads:
        thread.join()
    assert entered.acquire(timeout=10)
