"""Pages of records over HTTP: no record is left out or comes twice, and a page is bounded.

Method: a served embedded log; what a page may hold is made small where it has to be reached.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.log.base import APPENDS, Partition
from headrace.log.records import records
from headrace.serve.tailing import pages
from headrace.serve.tailing.pages import MAX_PAGE_BYTES, Page, read_after, read_last
from serve.topics_served import Served, put, read, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


def test_topics_are_listed_with_what_they_hold(served: Served) -> None:
    put(served, "{}", "{}")
    (found,) = [each for each in read(served, "/v1/topics")["topics"] if each["name"] == "clicks"]
    assert found == {
        "name": "clicks",
        "partitions": [
            {"partition": 0, "first_offset": 0, "end_offset": 2},
            {"partition": 1, "first_offset": 0, "end_offset": 0},
        ],
        "records": 2,
        "bytes": found["bytes"],
    }
    assert found["bytes"] > 100


def test_the_newest_records_come_in_the_order_of_arrival(served: Served) -> None:
    for number in range(10):
        put(served, json.dumps({"n": number}), partition=number % 2)
    page = read(served, last=5)
    assert [json.loads(each["value"])["n"] for each in page["records"]] == [5, 6, 7, 8, 9]
    assert (page["topic"], page["position"]) == ("clicks", "clicks/0@5,clicks/1@5")
    put(served, '{"n": 10}', partition=1)
    after = read(served, after=page["position"])
    assert [each["value"] for each in after["records"]] == ['{"n": 10}']
    assert after["position"] == "clicks/0@5,clicks/1@6"
    assert read(served, after=after["position"])["records"] == []


def test_bytes_that_are_no_text_come_in_base64(served: Served) -> None:
    table = records(
        [b"\xff\x00", None], keys=[b"\xfe", "k"], headers=[None, {"h": b"\xfd", "n": None}]
    )
    served.log.append("clicks", table, partition=0)
    first, second = read(served)["records"]
    assert first == {
        "partition": 0,
        "offset": 0,
        "arrival_us": first["arrival_us"],
        "key": None,
        "key_base64": "/g==",
        "value": None,
        "value_base64": "/wA=",
        "headers": {},
    }
    assert (second["key"], second["value"]) == ("k", None)
    assert second["headers"] == {"h": "\ufffd", "n": None}
    assert "value_base64" not in second


def test_pages_hold_every_record_once(served: Served) -> None:
    for number in range(6):
        values = [json.dumps({"n": number * 100 + at}) for at in range(100)]
        put(served, *values, partition=number % 2)
    for limit in (1_000, 250, 70):
        found: list[int] = []
        position = "clicks/0@0,clicks/1@0"
        while True:
            page = read(served, after=position, limit=limit)
            if not page["records"]:
                break
            assert len(page["records"]) <= limit
            found += [json.loads(each["value"])["n"] for each in page["records"]]
            position = page["position"]
        assert sorted(found) == list(range(600))
    assert len(read(served, after="clicks/1@250")["records"]) == 350  # the other one from its start


def test_a_page_is_bounded_in_bytes(served: Served) -> None:
    for number in range(20):
        put(served, json.dumps({"n": number, "x": "x" * 900_000}), partition=number % 2)
    last = read(served, last=1_000)
    assert 1 <= len(last["records"]) < 20
    assert json.loads(last["records"][-1]["value"])["n"] == 19
    found: list[int] = []
    position = "clicks/0@0,clicks/1@0"
    while True:
        page = read(served, after=position)
        if not page["records"]:
            break
        assert len(json.dumps(page)) < 8 << 20
        found += [json.loads(each["value"])["n"] for each in page["records"]]
        position = page["position"]
    assert sorted(found) == list(range(20))


def bytes_of(page: Page) -> int:
    return sum(
        len(each["value"] or "") + sum(len(text) for text in each["headers"].values())
        for each in page.records
    )


@pytest.mark.parametrize("in_headers", [False, True])
def test_a_page_takes_no_more_of_a_batch_than_fits(served: Served, in_headers: bool) -> None:
    """Ten records of 1 MB are one batch of the log, of each partition."""
    large = "x" * 1_000_000
    one = {"key": None, "value": large.encode(), "headers": None}
    if in_headers:
        header = {"name": "h", "value": large.encode()}
        one |= {"value": b"{}", "headers": [header]}
    for partition in range(4):
        batch = pa.Table.from_pylist([one] * 10, schema=APPENDS)
        served.log.append("payments", batch, partition=partition)
    position = {Partition("payments", number): 0 for number in range(4)}
    found: list[tuple[int, int]] = []
    while (page := read_after(served.log, "payments", position, 1_000)).records:
        assert bytes_of(page) <= MAX_PAGE_BYTES
        found += [(each["partition"], each["offset"]) for each in page.records]
        position = dict(page.position)
    assert sorted(found) == [(number, offset) for number in range(4) for offset in range(10)]
    last = read_last(served.log, "payments", 1_000)
    assert bytes_of(last) <= MAX_PAGE_BYTES
    assert {(each["partition"], each["offset"]) for each in last.records} == {
        (number, 9) for number in range(4)
    }


def test_small_records_at_the_end_do_not_draw_large_ones_in(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many are read grows by their size so far; those before them may be larger."""
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 100_000)
    put(served, *["x" * 10_000] * 300)
    put(served, *["y"] * 20)
    held: list[int] = []

    def rows(place: Partition, batches: list[pa.RecordBatch]) -> Any:
        held.append(sum(batch.num_rows for batch in batches))
        return made(place, batches)

    made = pages._rows
    monkeypatch.setattr(pages, "_rows", rows)
    last = read_last(served.log, "clicks", 1_000)
    assert [len(each["value"]) for each in last.records] == [10_000] * 4 + [1] * 20
    assert held == [24, 0]  # half of the bytes for each partition


def test_a_record_larger_than_a_page_is_a_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 10)
    put(served, "a" * 100, "b" * 100, "c")
    position = {Partition("clicks", number): 0 for number in range(2)}
    found = []
    while (page := read_after(served.log, "clicks", position, 10)).records:
        found.append([each["value"][0] for each in page.records])
        position = dict(page.position)
    assert found == [["a"], ["b"], ["c"]]
    assert [each["value"] for each in read_last(served.log, "clicks", 2).records] == ["c"]


def test_a_stream_is_read_by_its_name(served: Served) -> None:
    put(served, "{}", topic="payments")
    assert read(served, "/v1/streams/payments/records")["topic"] == "payments"
    answer = served.ask("GET", "/v1/streams/payment/records")
    assert answer.status_code == 404
    assert "there are clicks, payments, refunds, returns" in answer.json()["message"]


@pytest.mark.parametrize(
    ("params", "status", "problem"),
    [
        ({"last": 0}, 400, "last"),
        ({"last": 1_001}, 400, "last"),
        ({"last": "x"}, 400, "last"),
        ({"limit": 0, "after": "clicks/0@0"}, 400, "limit"),
        ({"after": ""}, 400, "is no position"),
        ({"after": "clicks"}, 400, "is no position"),
        ({"after": "clicks/0@-1"}, 400, "is no position"),
        ({"after": "clicks/7@0"}, 400, "no such partition"),
        ({"after": "payments/0@0"}, 400, "no such partition"),
        ({"after": "clicks/0@5"}, 410, "begins at 0 and ends at 1"),
        ({"after": "clicks/0@0", "last": 1}, 400, "exclude each other"),
        ({"offset": 1}, 400, "unknown parameters: offset"),
    ],
)
def test_bad_pages_are_refused(
    served: Served, params: dict[str, Any], status: int, problem: str
) -> None:
    put(served, "{}")
    answer = served.ask("GET", "/v1/topics/clicks/records", params=params)
    assert (answer.status_code, problem in answer.json()["message"]) == (status, True), answer.text
